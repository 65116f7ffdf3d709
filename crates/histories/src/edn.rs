//! A reader for EDN: whatever an operation may hold.

use crate::form::Form;

/// Why there is no form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    /// The text ends before the form does.
    Incomplete,
    /// What is wrong, and where.
    At(usize, String),
}

/// Forms inside of forms, before it is taken for garbage.
const DEEPEST: usize = 100;

pub(crate) struct Reader<'a> {
    text: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8], at: usize) -> Reader<'a> {
        Reader { text, at }
    }

    /// The next form, after white space, comments and what is discarded.
    pub(crate) fn form(&mut self) -> Result<Form, Unreadable> {
        self.nested(0)
    }

    fn wrong<T>(&self, problem: impl Into<String>) -> Result<T, Unreadable> {
        Err(Unreadable::At(self.at, problem.into()))
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | 0x0c => self.at += 1,
                b';' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn nested(&mut self, depth: usize) -> Result<Form, Unreadable> {
        if depth > DEEPEST {
            return self.wrong("too many brackets inside of each other");
        }
        loop {
            self.skip_blanks();
            let Some(byte) = self.text.get(self.at) else { return Err(Unreadable::Incomplete) };
            match byte {
                b'{' => {
                    let begin = self.at;
                    let mut forms = self.until(b'}', depth)?.into_iter();
                    if forms.len() % 2 == 1 {
                        self.at = begin;
                        return self.wrong("this map has a key without a value");
                    }
                    let mut pairs = Vec::with_capacity(forms.len() / 2);
                    while let (Some(key), Some(value)) = (forms.next(), forms.next()) {
                        pairs.push((key, value));
                    }
                    return Ok(Form::Map(pairs));
                }
                b'[' => return Ok(Form::Sequence(self.until(b']', depth)?)),
                b'(' => return Ok(Form::Sequence(self.until(b')', depth)?)),
                b'"' => return self.string(),
                b'\\' => return self.character(),
                b'}' | b']' | b')' => {
                    return self.wrong(format!("`{}` closes nothing", char::from(*byte)));
                }
                b'#' => match self.text.get(self.at + 1) {
                    None => return Err(Unreadable::Incomplete),
                    Some(b'{') => {
                        self.at += 1;
                        return Ok(Form::Sequence(self.until(b'}', depth)?));
                    }
                    Some(b'_') => {
                        self.at += 2;
                        self.nested(depth + 1)?;
                    }
                    Some(b'#') => return self.word(),
                    // A tag: what it means for its value is nothing to us.
                    Some(_) => {
                        self.at += 1;
                        self.word()?;
                        return self.nested(depth + 1);
                    }
                },
                _ => return self.word(),
            }
        }
    }

    fn until(&mut self, end: u8, depth: usize) -> Result<Vec<Form>, Unreadable> {
        self.at += 1;
        let mut forms = Vec::new();
        loop {
            self.skip_blanks();
            match self.text.get(self.at) {
                None => return Err(Unreadable::Incomplete),
                Some(byte) if *byte == end => {
                    self.at += 1;
                    return Ok(forms);
                }
                // What is discarded at the end is no form.
                Some(b'#') if self.text.get(self.at + 1) == Some(&b'_') => {
                    self.at += 2;
                    self.nested(depth + 1)?;
                }
                Some(_) => forms.push(self.nested(depth + 1)?),
            }
        }
    }

    fn string(&mut self) -> Result<Form, Unreadable> {
        let mut bytes = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.text.get(at) {
                None => return Err(Unreadable::Incomplete),
                Some(b'"') => break,
                Some(b'\\') => {
                    let Some(escaped) = self.text.get(at + 1) else {
                        return Err(Unreadable::Incomplete);
                    };
                    at += 2;
                    match escaped {
                        b'n' => bytes.push(b'\n'),
                        b't' => bytes.push(b'\t'),
                        b'r' => bytes.push(b'\r'),
                        b'b' => bytes.push(8),
                        b'f' => bytes.push(12),
                        b'u' => {
                            let Some(digits) = self.text.get(at..at + 4) else {
                                return Err(Unreadable::Incomplete);
                            };
                            let digits = std::str::from_utf8(digits).ok();
                            let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
                            let Some(code) = code else {
                                return self.wrong("`\\u` needs four hexadecimal digits");
                            };
                            let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                            bytes.extend(c.to_string().bytes());
                            at += 4;
                        }
                        other => bytes.push(*other),
                    }
                }
                Some(byte) => {
                    bytes.push(*byte);
                    at += 1;
                }
            }
        }
        self.at = at + 1;
        Ok(Form::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn character(&mut self) -> Result<Form, Unreadable> {
        let begin = self.at;
        // The character after the backslash may be one that ends words.
        self.at += 2;
        if self.at > self.text.len() {
            self.at = begin;
            return Err(Unreadable::Incomplete);
        }
        self.skip_word();
        Ok(Form::Other(String::from_utf8_lossy(&self.text[begin..self.at]).into_owned()))
    }

    fn skip_word(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' | 0x0c | b'{' | b'}' | b'[' | b']' | b'('
                | b')' | b'"' | b';' => return,
                _ => self.at += 1,
            }
        }
    }

    /// A number, keyword or symbol.
    fn word(&mut self) -> Result<Form, Unreadable> {
        let begin = self.at;
        self.skip_word();
        let word = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        if word.is_empty() {
            return self.wrong("nothing stands here");
        }
        if let Some(name) = word.strip_prefix(':') {
            return Ok(Form::Keyword(name.into()));
        }
        let digits = word.strip_prefix(['-', '+']).unwrap_or(&word);
        let whole = digits.strip_suffix('N').unwrap_or(digits);
        if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
            let sign = if word.starts_with('-') { "-" } else { "" };
            return Ok(Form::Integer(format!("{sign}{whole}")));
        }
        Ok(if word == "nil" { Form::Nil } else { Form::Other(word) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Form, Unreadable> {
        Reader::new(text.as_bytes(), 0).form()
    }

    fn written(text: &str) -> String {
        read(text).unwrap().write()
    }

    #[test]
    fn forms_of_every_kind_are_read() {
        assert_eq!(written("[1 -2 3N +4 nil true 1.5 2/3]"), "[1 -2 3 4 nil true 1.5 2/3]");
        assert_eq!(written("{:a/b \"x\\n\\u00e9\", sym \\newline}"), "{:a/b x\né sym \\newline}");
        assert_eq!(written("#{1 2} "), "[1 2]");
        assert_eq!(written("(1 \\( 2)"), "[1 \\( 2]");
        assert_eq!(written("#jepsen.history.Op{:index 0}"), "{:index 0}");
        assert_eq!(written("#inst \"2020-01-01\""), "2020-01-01");
    }

    #[test]
    fn comments_and_what_is_discarded_are_nothing() {
        assert_eq!(written("; a\n #_ {:x [1]} [1 ; two 2\n 3 #_4]"), "[1 3]");
        assert_eq!(written("#_ #_ 1 2 3"), "3");
    }

    #[test]
    fn a_text_that_ends_early_is_incomplete() {
        let whole = "{:a [\"x\\\"\" #{1} \\a], :b #tag (1)}";
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Err(Unreadable::Incomplete), "{}", &whole[..end]);
        }
        assert!(read(whole).is_ok());
    }

    #[test]
    fn what_cannot_be_a_form_is_named() {
        assert!(matches!(read(" ]"), Err(Unreadable::At(1, _))));
        assert!(matches!(read("{:a}"), Err(Unreadable::At(0, _))));
        assert!(matches!(read("\"\\uzzzz\""), Err(Unreadable::At(..))));
        assert!(matches!(read(&"[".repeat(5000)), Err(Unreadable::At(..))));
    }
}

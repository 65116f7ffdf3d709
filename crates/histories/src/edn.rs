//! A reader for EDN (extensible data notation), complete enough for every operation of a history.

use crate::form::Form;

/// Why no form could be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ParseError {
    /// The text ends before the form does.
    Incomplete,
    /// A syntax error at this offset.
    At(usize, String),
}

/// The deepest nesting that is accepted.
const DEEPEST: usize = 100;

pub(crate) struct Reader<'a> {
    text: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a [u8], at: usize) -> Reader<'a> {
        Reader { text, at }
    }

    /// The next form, after white space, comments and discarded forms.
    pub(crate) fn form(&mut self) -> Result<Form, ParseError> {
        self.nested(0)
    }

    fn error<T>(&self, problem: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError::At(self.at, problem.into()))
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

    fn nested(&mut self, depth: usize) -> Result<Form, ParseError> {
        if depth > DEEPEST {
            return self.error("the brackets are nested too deeply");
        }
        loop {
            self.skip_blanks();
            let Some(byte) = self.text.get(self.at) else { return Err(ParseError::Incomplete) };
            match byte {
                b'{' => {
                    let begin = self.at;
                    let mut forms = self.until(b'}', depth)?.into_iter();
                    if forms.len() % 2 == 1 {
                        self.at = begin;
                        return self.error("this map has a key without a value");
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
                    return self.error(format!("`{}` closes nothing", char::from(*byte)));
                }
                b'#' => match self.text.get(self.at + 1) {
                    None => return Err(ParseError::Incomplete),
                    Some(b'{') => {
                        self.at += 1;
                        return Ok(Form::Sequence(self.until(b'}', depth)?));
                    }
                    Some(b'_') => {
                        self.at += 2;
                        self.nested(depth + 1)?;
                    }
                    Some(b'#') => return self.word(),
                    // A tag: its meaning does not matter here.
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

    fn until(&mut self, end: u8, depth: usize) -> Result<Vec<Form>, ParseError> {
        self.at += 1;
        let mut forms = Vec::new();
        loop {
            self.skip_blanks();
            match self.text.get(self.at) {
                None => return Err(ParseError::Incomplete),
                Some(byte) if *byte == end => {
                    self.at += 1;
                    return Ok(forms);
                }
                // A discarded form at the end is not an element.
                Some(b'#') if self.text.get(self.at + 1) == Some(&b'_') => {
                    self.at += 2;
                    self.nested(depth + 1)?;
                }
                Some(_) => forms.push(self.nested(depth + 1)?),
            }
        }
    }

    fn string(&mut self) -> Result<Form, ParseError> {
        let mut bytes = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.text.get(at) {
                None => return Err(ParseError::Incomplete),
                Some(b'"') => break,
                Some(b'\\') => {
                    let Some(escaped) = self.text.get(at + 1) else {
                        return Err(ParseError::Incomplete);
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
                                return Err(ParseError::Incomplete);
                            };
                            let digits = std::str::from_utf8(digits).ok();
                            let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
                            let Some(code) = code else {
                                return self.error("`\\u` needs four hexadecimal digits");
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

    fn character(&mut self) -> Result<Form, ParseError> {
        let begin = self.at;
        // The character after the backslash may be a delimiter.
        self.at += 2;
        if self.at > self.text.len() {
            self.at = begin;
            return Err(ParseError::Incomplete);
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

    /// Reads a number, keyword or symbol.
    fn word(&mut self) -> Result<Form, ParseError> {
        let begin = self.at;
        self.skip_word();
        let word = String::from_utf8_lossy(&self.text[begin..self.at]).into_owned();
        if word.is_empty() {
            return self.error("a form is expected here");
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

    fn read(text: &str) -> Result<Form, ParseError> {
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
    fn comments_and_discarded_forms_are_skipped() {
        assert_eq!(written("; a\n #_ {:x [1]} [1 ; two 2\n 3 #_4]"), "[1 3]");
        assert_eq!(written("#_ #_ 1 2 3"), "3");
    }

    #[test]
    fn a_text_that_ends_early_is_incomplete() {
        let whole = "{:a [\"x\\\"\" #{1} \\a], :b #tag (1)}";
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Err(ParseError::Incomplete), "{}", &whole[..end]);
        }
        assert!(read(whole).is_ok());
    }

    #[test]
    fn syntax_errors_have_their_offset() {
        assert!(matches!(read(" ]"), Err(ParseError::At(1, _))));
        assert!(matches!(read("{:a}"), Err(ParseError::At(0, _))));
        assert!(matches!(read("\"\\uzzzz\""), Err(ParseError::At(..))));
        assert!(matches!(read(&"[".repeat(5000)), Err(ParseError::At(..))));
    }
}

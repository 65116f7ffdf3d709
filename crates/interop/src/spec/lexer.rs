//! Cuts a spec into names, numbers, SQL blocks and marks, each with its place.

use isolde_model::case::ParseError;

/// Words that are names only when quoted.
pub(super) const KEYWORDS: [&str; 6] =
    ["notices", "permutation", "session", "setup", "step", "teardown"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A plain or quoted name; a plain one may be a keyword.
    Name {
        text: String,
        quoted: bool,
    },
    Number(u64),
    Block(String),
    Mark(char),
    End,
}

pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// The next token and the offset where it starts.
    pub fn next(&mut self) -> Result<(usize, Token), ParseError> {
        self.skip_blanks();
        let start = self.at;
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else { return Ok((start, Token::End)) };
        let token = match first {
            '"' => self.quoted(start)?,
            '{' => self.block(start)?,
            ',' | '(' | ')' | '*' => {
                self.at += 1;
                Token::Mark(first)
            }
            c if c.is_ascii_digit() => {
                let digits = self.take_while(|c| c.is_ascii_digit());
                let number = digits.parse();
                Token::Number(number.map_err(|_| self.error(start, "this number is too large"))?)
            }
            c if starts_name(c) => {
                let text = self.take_while(continues_name).to_string();
                Token::Name { text, quoted: false }
            }
            other => return Err(self.error(start, format!("`{other}` means nothing here"))),
        };
        Ok((start, token))
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n' | '\u{b}' | '\u{c}'));
            if !self.text[self.at..].starts_with('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !fits(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// `"a name"`, with `""` for a quote inside.
    fn quoted(&mut self, start: usize) -> Result<Token, ParseError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != '"' && c != '\n'));
            if !self.text[self.at..].starts_with('"') {
                return Err(self.error(start, "this quote is not closed on its line"));
            }
            self.at += 1;
            if !self.text[self.at..].starts_with('"') {
                return Ok(Token::Name { text, quoted: true });
            }
            text.push('"');
            self.at += 1;
        }
    }

    /// Everything up to the first `}`; SQL that needs one cannot be written.
    fn block(&mut self, start: usize) -> Result<Token, ParseError> {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\u{b}' | '\u{c}');
        let inside = &self.text[start + 1..];
        let Some(end) = inside.find('}') else {
            return Err(self.error(start, "this block is not closed with a }"));
        };
        self.at = start + 1 + end + 1;
        Ok(Token::Block(inside[..end].trim_matches(blank).to_string()))
    }

    pub fn error(&self, offset: usize, message: impl Into<String>) -> ParseError {
        error_at(self.text, offset, message)
    }
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit() || c == '$'
}

/// Whether a name must be quoted to be read back as one.
pub fn is_plain_name(name: &str) -> bool {
    name.chars().next().is_some_and(starts_name)
        && name.chars().all(continues_name)
        && !KEYWORDS.contains(&name)
}

/// The error for a place given as an offset into the whole text.
pub fn error_at(text: &str, offset: usize, message: impl Into<String>) -> ParseError {
    let before = &text[..offset.min(text.len())];
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let source = text[start..].lines().next().unwrap_or("");
    ParseError {
        line: before.matches('\n').count() + 1,
        column: before[start..].chars().count() + 1,
        message: message.into(),
        source_line: source.trim_end().into(),
    }
}

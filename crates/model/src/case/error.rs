//! What is wrong with a file, shown where it is.

use std::fmt;

/// How much of a long line is shown, and how much of it before the caret.
const SHOWN: usize = 120;
const SHOWN_BEFORE: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    pub message: String,
    pub source_line: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gutter = self.line.to_string();
        let blank = " ".repeat(gutter.len());
        // Tabs are kept so that the caret stays in its column. Other control
        // characters must not reach the terminal.
        let seen = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
        let line: Vec<char> = self.source_line.chars().map(seen).collect();
        let place = self.column.saturating_sub(1);
        let start = if line.len() > SHOWN { place.saturating_sub(SHOWN_BEFORE) } else { 0 };
        let end = line.len().min(start + SHOWN);
        let start = start.min(end);
        let left = if start > 0 { "…" } else { "" };
        let right = if end < line.len() { "…" } else { "" };
        let shown: String = line[start..end].iter().collect();
        let before = (start..place).map(|i| if line.get(i) == Some(&'\t') { '\t' } else { ' ' });
        let lead: String = left.chars().map(|_| ' ').chain(before).collect();
        writeln!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        writeln!(f, "{blank} |")?;
        writeln!(f, "{gutter} | {left}{shown}{right}")?;
        write!(f, "{blank} | {lead}^")
    }
}

impl std::error::Error for ParseError {}

/// The bytes of a file as text, or the first place that is none.
pub fn text_of(bytes: Vec<u8>) -> Result<String, ParseError> {
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let at = error.utf8_error().valid_up_to();
        let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |i| at + i);
        ParseError {
            line: bytes[..start].iter().filter(|b| **b == b'\n').count() + 1,
            column: String::from_utf8_lossy(&bytes[start..at]).chars().count() + 1,
            message: format!("the byte 0x{:02x} here is not UTF-8", bytes[at]),
            source_line: String::from_utf8_lossy(&bytes[start..end]).trim_end().into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_only_the_part_around_the_place_is_shown() {
        let source_line = format!("{}!{}", "a".repeat(5000), "b".repeat(5000));
        let message = "what".into();
        let shown = ParseError { line: 3, column: 5001, message, source_line }.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let place = |line: &str, c: char| line.chars().position(|x| x == c);
        assert!(lines.iter().all(|l| l.chars().count() < 140), "{shown}");
        assert_eq!(place(lines[2], '!'), place(lines[3], '^'), "{shown}");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_where_they_are() {
        let error = text_of(b"one\ntwo \xff\x1b[1m three\r\nfour".to_vec()).unwrap_err();
        assert_eq!((error.line, error.column), (2, 5));
        let shown = error.to_string();
        assert!(shown.contains("the byte 0xff"), "{shown}");
        assert!(!shown.contains('\x1b') && shown.ends_with("  |     ^"), "{shown}");
        assert_eq!(text_of("größe".into()).unwrap(), "größe");
    }
}

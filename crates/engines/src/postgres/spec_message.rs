//! Errors and notices as libpq prints them.

use crate::engine::SpecFailure;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;
use std::io;

/// How much of a long line is shown above the caret, and how much of it at
/// least to the right of the position.
const SHOWN: usize = 60;
const SHOWN_RIGHT: usize = 10;

#[derive(Default)]
pub struct Report {
    severity: String,
    code: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
    inner_position: Option<usize>,
    inner_query: Option<String>,
    context: Option<String>,
}

impl Report {
    pub fn read(mut fields: ErrorFields<'_>) -> io::Result<Report> {
        let mut report = Report::default();
        while let Some(field) = fields.next()? {
            let text = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'S' => report.severity = text,
                b'C' => report.code = text,
                b'M' => report.message = text,
                b'D' => report.detail = Some(text),
                b'H' => report.hint = Some(text),
                b'P' => report.position = text.parse().ok(),
                b'p' => report.inner_position = text.parse().ok(),
                b'q' => report.inner_query = Some(text),
                b'W' => report.context = Some(text),
                _ => {}
            }
        }
        Ok(report)
    }

    pub fn failed(&self, query: &str) -> SpecFailure {
        SpecFailure {
            line: format!("{}:  {}", self.severity, self.message),
            full: self.full(query, true),
            rejected: self.code.starts_with("42") || self.code.starts_with("0A"),
            statement: None,
        }
    }

    pub fn notice(&self, query: &str) -> String {
        self.full(query, false)
    }

    /// Context is for errors only: that is libpq's default.
    fn full(&self, query: &str, with_context: bool) -> String {
        let mut text = format!("{}:  {}\n", self.severity, self.message);
        match (self.position, self.inner_position, &self.inner_query) {
            (Some(position), ..) => text.push_str(&point_at(query, position)),
            (None, Some(position), Some(inner)) => text.push_str(&point_at(inner, position)),
            _ => {}
        }
        let context = self.context.as_ref().filter(|_| with_context);
        for (title, part) in [
            ("DETAIL", self.detail.as_ref()),
            ("HINT", self.hint.as_ref()),
            ("QUERY", self.inner_query.as_ref()),
            ("CONTEXT", context),
        ] {
            if let Some(part) = part {
                text.push_str(&format!("{title}:  {part}\n"));
            }
        }
        text
    }
}

/// The line of a query that contains a position, and a caret under it.
fn point_at(query: &str, position: usize) -> String {
    let chars: Vec<char> = query.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
    let Some(place) = position.checked_sub(1).filter(|p| *p <= chars.len()) else {
        return String::new();
    };
    let ends_line = |c: &char| matches!(c, '\n' | '\r');
    let breaks = chars[..place].iter().filter(|c| **c == '\n').count();
    let mut start = chars[..place].iter().rposition(ends_line).map_or(0, |i| i + 1);
    let mut end = chars[place..].iter().position(ends_line).map_or(chars.len(), |i| place + i);
    let (mut cut_left, mut cut_right) = (false, false);
    if end - start > SHOWN {
        if start + SHOWN >= place + SHOWN_RIGHT {
            end = start + SHOWN;
            cut_right = true;
        } else {
            cut_right = place + SHOWN_RIGHT < end;
            end = end.min(place + SHOWN_RIGHT);
            if end - start > SHOWN {
                start = end - SHOWN;
                cut_left = true;
            }
        }
    }
    let dots = |cut: bool| if cut { "..." } else { "" };
    let title = format!("LINE {}: {}", breaks + 1, dots(cut_left));
    let shown: String = chars[start..end].iter().collect();
    let blank = " ".repeat(title.chars().count() + place - start);
    format!("{title}{shown}{}\n{blank}^\n", dots(cut_right))
}

#[cfg(test)]
mod tests {
    use super::point_at;

    #[test]
    fn the_caret_is_under_the_position() {
        assert_eq!(point_at("select\n\tnope", 9), "LINE 2:  nope\n         ^\n");
        let long = format!("select {} nope", "a".repeat(100));
        let shown = point_at(&long, 109);
        assert!(shown.starts_with("LINE 1: ...aaa"), "{shown}");
        assert_eq!(
            shown.lines().nth(1).unwrap().find('^'),
            shown.lines().next().unwrap().find("nope")
        );
        assert_eq!(point_at("x", 99), "");
    }
}

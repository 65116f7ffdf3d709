//! Steps: a session's prompt, and the statements behind it.

use super::{Parsed, Parser, outdent};
use crate::Level;
use crate::case::{ANYWAY, Line, Step};
use isolde_sql as sql;

impl<'a> Parser<'a> {
    pub(super) fn step(&mut self, line: &'a str, prompt: Prompt) -> Parsed<()> {
        let first = self.at;
        self.in_header = false;
        self.or_fits = false;
        let anyway = prompt.level.is_some_and(|(_, word)| word.trim() == ANYWAY);
        let level = match prompt.level.filter(|_| !anyway) {
            Some((at, name)) => {
                Some(name.parse::<Level>().map_err(|e| self.error(at, e.to_string()))?)
            }
            None => None,
        };
        let mut text = line[prompt.end..].to_string();
        self.at += 1;
        while sql::split(&text).unfinished {
            match self.lines.get(self.at) {
                Some(next) if next.starts_with(char::is_whitespace) || next.is_empty() => {
                    text.push('\n');
                    text.push_str(outdent(next));
                    self.at += 1;
                }
                _ => {
                    return Err(self.error_at(
                        first,
                        prompt.end.min(line.len()),
                        "this statement lacks its ; (continue it on indented lines)",
                    ));
                }
            }
        }
        let statements = sql::split(&text).statements;
        if statements.is_empty() {
            return Err(self.error_at(
                first,
                prompt.end.min(line.len()),
                "no statement after the prompt",
            ));
        }
        let mut notes = std::mem::take(&mut self.notes);
        // A remark behind the statement becomes one above it.
        if let Some((_, remark)) = text.rsplit_once(';')
            && let Some(remark) = remark.trim().strip_prefix("--")
        {
            notes.extend(remark.lines().map(|l| l.trim().to_string()));
        }
        for (i, (offset, sql)) in statements.into_iter().enumerate() {
            if i > 0 && prompt_end(&sql).is_some() {
                let message = "a step of another session starts on a line of its own";
                return Err(self.error_at(first, prompt.end + offset, message));
            }
            if i == 0 && level.is_some() && sql::kind(&sql) != sql::Kind::Begin {
                return Err(self.error_at(
                    first,
                    0,
                    "a level in the prompt belongs to a step that begins a transaction",
                ));
            }
            let line = Line(first + text[..offset].matches('\n').count() + 1);
            self.case.steps.push(Step {
                level: if i == 0 { level } else { None },
                anyway,
                notes: std::mem::take(&mut notes),
                ..Step::plain(prompt.session, &sql, line)
            });
        }
        Ok(())
    }
}

pub(super) struct Prompt<'a> {
    session: &'a str,
    /// The level (or `anyway`) in brackets and where it stands.
    level: Option<(usize, &'a str)>,
    /// Where the statement starts.
    end: usize,
}

/// `s1>`, `s1(serializable)>` or `s1(anyway)>` at the start of a line.
pub(super) fn prompt_end(line: &str) -> Option<Prompt<'_>> {
    let name_len = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (session, rest) = line.split_at(name_len);
    if !session.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    if rest.starts_with('>') {
        return Some(Prompt { session, level: None, end: name_len + 1 });
    }
    let inner = rest.strip_prefix('(')?;
    let close = inner.find(")>")?;
    Some(Prompt {
        session,
        level: Some((name_len + 1, &inner[..close])),
        end: name_len + 1 + close + 2,
    })
}

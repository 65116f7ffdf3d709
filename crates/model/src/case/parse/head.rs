//! The head of a case: `key: value` lines above the first section.

use super::{Parsed, Parser};
use crate::case::{CaseKind, Variant};

impl<'a> Parser<'a> {
    pub(super) fn header(&mut self, line: &'a str, key: &str, colon: usize) -> Parsed<()> {
        let value_at = colon + 1 + (line[colon + 1..].len() - line[colon + 1..].trim_start().len());
        let value = line[colon + 1..].trim().to_string();
        let fail = |p: &Parser, message: String| p.error(value_at, message);
        if !self.keys.insert(key.to_string()) {
            return Err(self.error(0, format!("`{key}` is given twice")));
        }
        if value.is_empty() && key != "about" && key != "reporter" {
            return Err(fail(self, format!("`{key}:` needs a value")));
        }
        match key {
            "case" => {
                let fits = |c: char| c.is_ascii_alphanumeric() || "-_./#".contains(c);
                if !value.chars().all(fits) {
                    return Err(fail(
                        self,
                        "an id holds letters, digits and - _ . / # only".into(),
                    ));
                }
                self.case.id = value;
            }
            "title" => self.case.title = value,
            "link" => self.case.link = Some(value),
            "reported" => self.case.reported = Some(value),
            "rebuilt" => self.case.rebuilt = Some(value),
            "server options" => self.case.server_options = self.server_options(&value, value_at)?,
            "engines" => self.case.engines = self.selectors(&value, value_at)?,
            "kind" => {
                let found = CaseKind::ALL.iter().find(|(name, _)| *name == value);
                let Some((_, kind)) = found else {
                    let names: Vec<&str> = CaseKind::ALL.iter().map(|(n, _)| *n).collect();
                    return Err(fail(self, format!("a kind is one of {}", names.join(", "))));
                };
                self.case.kind = Some(*kind);
            }
            "anomaly" => {
                self.case.anomaly = Some(value.parse().map_err(|e| fail(self, format!("{e}")))?);
            }
            "variant" => {
                self.case.variant = Some(match value.as_str() {
                    "read" => Variant::Read,
                    "write" => Variant::Write,
                    _ => return Err(fail(self, "a variant is read or write".into())),
                });
            }
            "level" => {
                self.case.level = Some(value.parse().map_err(|e| fail(self, format!("{e}")))?);
            }
            "about" => {
                self.case.about = self.text_block(value);
                return Ok(());
            }
            "reporter" => {
                self.case.reporter = self.text_block(value);
                return Ok(());
            }
            _ => match key.strip_prefix("level ") {
                Some(session) => {
                    let level = value.parse().map_err(|e| fail(self, format!("{e}")))?;
                    self.case.session_levels.push((session.trim().into(), level));
                }
                None => {
                    return Err(self.error(
                        0,
                        format!("unknown key `{key}`; known are case, title, link, engines, kind, reported, rebuilt, anomaly, variant, level, level SESSION, server options, about, reporter"),
                    ));
                }
            },
        }
        // Comments between keys gather in one block under the header.
        self.case.notes.append(&mut self.notes);
        self.at += 1;
        Ok(())
    }

    /// `--name` or `--name=value`, apart by blanks: what servers of every
    /// engine take, and nothing that a shell or a file could be behind.
    fn server_options(&self, value: &str, at: usize) -> Parsed<Vec<String>> {
        let mut found = Vec::new();
        for word in value.split_whitespace() {
            let name = word.strip_prefix("--").and_then(|w| w.split('=').next()).unwrap_or("");
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(fits) {
                let offset = word.as_ptr() as usize - value.as_ptr() as usize;
                let message = format!("`{word}` is not an option such as --name or --name=value");
                return Err(self.error(at + offset, message));
            }
            found.push(word.to_string());
        }
        Ok(found)
    }

    /// Text of several lines below its key.
    fn text_block(&mut self, first: String) -> String {
        self.case.notes.append(&mut self.notes);
        self.at += 1;
        let mut text: Vec<String> = if first.is_empty() { Vec::new() } else { vec![first] };
        for (_, line) in self.body() {
            text.push(line.trim().to_string());
        }
        while text.last().is_some_and(String::is_empty) {
            text.pop();
        }
        text.join("\n")
    }
}

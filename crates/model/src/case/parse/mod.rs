//! Reads the text form of a case. Every error names its line and column and
//! shows the line with a caret under the place.

mod head;
mod steps;

use super::error::ParseError;
use super::expect::parse_claim;
use super::{
    Case, Claim, Condition, Expectation, Expected, Line, Selector, Setup, Statement, Subject,
};
use crate::Level;
use isolde_sql as sql;
use std::collections::BTreeSet;
use steps::prompt_end;

pub fn parse(text: &str) -> Result<Case, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Parser {
        // However often a file went through Windows.
        lines: text.lines().map(|l| l.trim_end_matches('\r')).collect(),
        at: 0,
        case: Case::default(),
        notes: Vec::new(),
        in_header: true,
        or_fits: false,
        keys: BTreeSet::new(),
    }
    .run()
}

struct Parser<'a> {
    lines: Vec<&'a str>,
    at: usize,
    case: Case,
    /// Comment lines that belong to whatever comes next.
    notes: Vec<String>,
    in_header: bool,
    /// The section just read is one that `or:` can go on.
    or_fits: bool,
    /// The keys of the head that were given.
    keys: BTreeSet<String>,
}

type Parsed<T> = Result<T, ParseError>;

impl<'a> Parser<'a> {
    fn run(mut self) -> Parsed<Case> {
        while let Some(line) = self.lines.get(self.at).copied() {
            if line.trim().is_empty() {
                self.at += 1;
            } else if let Some(note) = line.strip_prefix('#') {
                self.notes.push(note.strip_prefix(' ').unwrap_or(note).trim_end().into());
                self.at += 1;
            } else if line.starts_with(char::is_whitespace) {
                return Err(self.error(
                    0,
                    "indented text belongs under a key such as about: or a section such as setup:",
                ));
            } else {
                self.top_level(line)?;
            }
        }
        self.case.trailing_notes = std::mem::take(&mut self.notes);
        self.finish()
    }

    fn finish(self) -> Parsed<Case> {
        let case = &self.case;
        if case.id.is_empty() {
            return Err(self.error_at(0, 0, "a case starts with `case: ID`"));
        }
        if case.steps.is_empty() {
            let last = self.lines.len().saturating_sub(1);
            return Err(self.error_at(last, 0, "no steps; write lines such as `s1> begin;`"));
        }
        for (session, _) in &case.session_levels {
            if !case.sessions().contains(&session.as_str()) {
                let key = format!("level {session}");
                let line = self.lines.iter().position(|l| l.starts_with(&key)).unwrap_or(0);
                let message = format!("no step belongs to session `{session}`");
                return Err(self.error_at(line, key.len() - session.len(), message));
            }
        }
        let family = self.case.family();
        Ok(self.case.read_as(family))
    }

    fn top_level(&mut self, line: &'a str) -> Parsed<()> {
        if let Some(prompt) = prompt_end(line) {
            return self.step(line, prompt);
        }
        let Some(colon) = line.find(':') else {
            return Err(self.error(
                0,
                "expected `key: value`, a section such as `setup:`, or a step such as `s1> begin;`",
            ));
        };
        let key = line[..colon].trim_end();
        let words: Vec<&str> = key.split_whitespace().collect();
        match words.first().copied() {
            Some("setup") => self.setup(key),
            Some("final") if key == "final" => self.finals(),
            Some("expect") => self.expect(key),
            Some("or") if key == "or" => self.or(),
            Some("possible") if key == "possible when" => {
                let condition = self.condition(Vec::new())?;
                self.case.possible_when.push(condition);
                Ok(())
            }
            Some("shows") if key == "shows when" || key.starts_with("shows when at ") => {
                let levels = match key.split_once(" at ") {
                    Some((_, levels)) => self.levels(key, levels)?,
                    None => Vec::new(),
                };
                let condition = self.condition(levels)?;
                self.case.shows_when.push(condition);
                Ok(())
            }
            _ if self.in_header => self.header(line, key, colon),
            _ => Err(self.error(
                0,
                format!("`{key}` is not a section here; use setup, final, expect, or, shows when or possible when, and put keys such as title above the setup"),
            )),
        }
    }

    /// The indented and blank lines below a section's title.
    fn body(&mut self) -> Vec<(usize, &'a str)> {
        let start = self.at;
        while self
            .lines
            .get(self.at)
            .is_some_and(|l| l.trim().is_empty() || l.starts_with(char::is_whitespace))
        {
            self.at += 1;
        }
        (start..self.at).map(|i| (i, self.lines[i])).collect()
    }

    fn open_section(&mut self) -> Vec<String> {
        self.in_header = false;
        self.or_fits = false;
        std::mem::take(&mut self.notes)
    }

    fn title_is_alone(&mut self) -> Parsed<()> {
        let title = self.lines[self.at];
        let colon = title.find(':').unwrap_or(0);
        if title[colon + 1..].trim().is_empty() {
            self.at += 1;
            return Ok(());
        }
        let at = colon + 1 + (title[colon + 1..].len() - title[colon + 1..].trim_start().len());
        Err(self.error(at, "a section's text goes on the lines below it, indented"))
    }

    fn setup(&mut self, key: &str) -> Parsed<()> {
        let on = self.selectors_after(key, "setup")?;
        if self.case.setups.iter().any(|s| s.on == on) {
            return Err(self.error(0, format!("there is a `{key}:` above; put all in one")));
        }
        let notes = self.open_section();
        self.title_is_alone()?;
        let statements = self.statements()?;
        self.case.setups.push(Setup { on, statements, notes });
        Ok(())
    }

    fn finals(&mut self) -> Parsed<()> {
        if !self.case.finals.is_empty() {
            return Err(self.error(0, "there is a `final:` above; put all queries in one"));
        }
        self.case.final_notes = self.open_section();
        self.title_is_alone()?;
        let mut statements = self.statements()?;
        self.case.finals.append(&mut statements);
        Ok(())
    }

    fn statements(&mut self) -> Parsed<Vec<Statement>> {
        let body = self.body();
        let Some(&(first_line, _)) = body.first() else { return Ok(Vec::new()) };
        let text = body.iter().map(|(_, l)| outdent(l)).collect::<Vec<_>>().join("\n");
        let split = sql::split(&text);
        if split.unfinished {
            let offset = split.statements.last().map_or(0, |(offset, _)| *offset);
            let line = first_line + text[..offset].matches('\n').count();
            return Err(self.error_at(
                line,
                indent_of(self.lines[line]),
                "this statement lacks its ; or closes no quote",
            ));
        }
        Ok(split
            .statements
            .into_iter()
            .map(|(offset, sql)| Statement {
                sql,
                line: Line(first_line + text[..offset].matches('\n').count() + 1),
            })
            .collect())
    }

    fn expect(&mut self, key: &str) -> Parsed<()> {
        let line = Line(self.at + 1);
        let (targets, levels) = match key.split_once(" at ") {
            Some((targets, levels)) => (targets, self.levels(key, levels)?),
            None => (key, Vec::new()),
        };
        let on = self.selectors_after(targets, "expect")?;
        let notes = self.open_section();
        self.title_is_alone()?;
        let claims = self.claims()?;
        let or = Vec::new();
        self.case.expectations.push(Expectation { on, levels, claims, or, notes, line });
        self.or_fits = true;
        Ok(())
    }

    /// Another outcome of the block right above. Comments on it join the
    /// block's own: one outcome has no place of its own to keep them.
    fn or(&mut self) -> Parsed<()> {
        if !self.or_fits {
            return Err(self.error(0, "`or:` goes on an `expect` block right above it"));
        }
        let mut notes = self.open_section();
        self.title_is_alone()?;
        let claims = self.claims()?;
        if let Some(block) = self.case.expectations.last_mut() {
            block.or.push(claims);
            block.notes.append(&mut notes);
        }
        self.or_fits = true;
        Ok(())
    }

    fn condition(&mut self, levels: Vec<Level>) -> Parsed<Condition> {
        let notes = self.open_section();
        self.title_is_alone()?;
        let claims = self.claims()?;
        Ok(Condition { levels, claims, notes })
    }

    fn claims(&mut self) -> Parsed<Vec<Claim>> {
        let title = self.at - 1;
        let mut claims = Vec::new();
        for (at, line) in self.body() {
            let text = line.trim();
            if text.is_empty() {
                continue;
            }
            let indent = indent_of(line);
            let claim = parse_claim(text).map_err(|(o, m)| self.error_at(at, indent + o, m))?;
            self.check_subject(&claim).map_err(|m| self.error_at(at, indent, m))?;
            claims.push(claim);
        }
        if claims.is_empty() {
            return Err(self.error_at(
                title,
                0,
                "nothing is claimed below; write lines such as `s1 commits`",
            ));
        }
        Ok(claims)
    }

    fn check_subject(&self, claim: &Claim) -> Result<(), String> {
        let known = |name: &String| self.case.sessions().contains(&name.as_str());
        if let Expected::WaitsFor(name) = &claim.expected
            && !known(name)
        {
            return Err(format!("no step above belongs to session `{name}`"));
        }
        match &claim.subject {
            Subject::Final(nth) if *nth > self.case.finals.len().max(1) && *nth > 1 => {
                let count = self.case.finals.len();
                // Without queries of its own a case reads all its tables.
                if count == 0 {
                    return Ok(());
                }
                Err(format!("there is no final query {nth}; there are {count}"))
            }
            Subject::Step { session, nth } if self.case.step_of_label(session, *nth).is_none() => {
                let count = self.case.steps.iter().filter(|s| s.session == *session).count();
                Err(format!(
                    "there is no step {session}.{nth}; session `{session}` has {count} above"
                ))
            }
            Subject::Session(name) if !known(name) => {
                Err(format!("no step above belongs to session `{name}`"))
            }
            _ => Ok(()),
        }
    }

    fn selectors_after(&self, key: &str, word: &str) -> Parsed<Vec<Selector>> {
        let rest = &key[word.len()..];
        if rest.trim().is_empty() {
            return Ok(Vec::new());
        }
        if !rest.starts_with(' ') {
            return Err(self.error(0, format!("unknown section `{key}`")));
        }
        self.selectors(rest, word.len())
    }

    fn selectors(&self, text: &str, at: usize) -> Parsed<Vec<Selector>> {
        let mut offset = at;
        let mut found = Vec::new();
        for part in text.split(',') {
            found.push(part.parse().map_err(|m: String| self.error(offset + indent_of(part), m))?);
            offset += part.len() + 1;
        }
        Ok(found)
    }

    fn levels(&self, key: &str, text: &str) -> Parsed<Vec<Level>> {
        let mut offset = key.len() - text.len();
        let mut found = Vec::new();
        for part in text.split(',') {
            let level = part.parse::<Level>();
            found.push(level.map_err(|e| self.error(offset + indent_of(part), e.to_string()))?);
            offset += part.len() + 1;
        }
        Ok(found)
    }

    /// An error on the current line, so many bytes into it.
    fn error(&self, byte: usize, message: impl Into<String>) -> ParseError {
        self.error_at(self.at, byte, message)
    }

    fn error_at(&self, line: usize, byte: usize, message: impl Into<String>) -> ParseError {
        let source = self.lines.get(line).copied().unwrap_or("");
        let column = source.char_indices().take_while(|(i, _)| *i < byte).count() + 1;
        let column = column.min(source.trim_end().chars().count() + 1);
        ParseError {
            line: line + 1,
            column,
            message: message.into(),
            source_line: source.trim_end().into(),
        }
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Takes the indentation that the formatter adds off a continued line.
fn outdent(line: &str) -> &str {
    let blanks = line.bytes().take(4).take_while(|b| *b == b' ').count();
    &line[blanks..]
}

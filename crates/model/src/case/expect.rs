//! Claims about a run, one per line: `s2.3 waits`, `s1 commits`, `final (1, 11)`.

use crate::value::{Row, Value, show_row, show_rows, unhex};
use std::fmt;

/// What a claim is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// `s2.3`: the third statement of session s2.
    Step { session: String, nth: usize },
    /// `s2`: the last transaction of the session.
    Session(String),
    /// `final`, or `final 2` for the second final query.
    Final(usize),
    /// `setup`: the target may refuse what prepares the case.
    Setup,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    Waits,
    WaitsFor(String),
    DoesNotWait,
    Ok,
    /// Any error, or the one with this code.
    Error(Option<String>),
    NotSent,
    Affects(u64),
    /// Exactly these rows, in any order.
    Rows(Vec<Row>),
    /// So many rows, whatever is in them.
    Counts(u64),
    /// At least this row.
    Has(Row),
    /// This text somewhere in a value.
    Contains(String),
    Commits,
    DoesNotCommit,
    RollsBack,
    Aborts,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    pub subject: Subject,
    pub expected: Expected,
}

/// What is wrong with a claim's text, and how many bytes into it.
pub type ClaimError = (usize, String);

pub fn parse_claim(text: &str) -> Result<Claim, ClaimError> {
    let head_len = text.find(char::is_whitespace).unwrap_or(text.len());
    let (head, rest) = text.split_at(head_len);
    let offset = head_len + (rest.len() - rest.trim_start().len());
    let rest = rest.trim();
    if head == "final" {
        return parse_final(rest, offset);
    }
    if head == "setup" {
        return match parse_step(rest, offset)? {
            expected @ Expected::Error(_) => Ok(Claim { subject: Subject::Setup, expected }),
            _ => Err((offset, "a setup is claimed to give `error [CODE]` only".into())),
        };
    }
    let subject = match head.split_once('.') {
        Some((session, nth)) => match nth.parse() {
            Ok(nth) if nth > 0 => Subject::Step { session: session.into(), nth },
            _ => return Err((0, format!("`{head}` should be a step such as s1.2"))),
        },
        None => Subject::Session(head.into()),
    };
    let expected = match subject {
        Subject::Step { .. } => parse_step(rest, offset)?,
        _ => parse_session(rest, offset)?,
    };
    Ok(Claim { subject, expected })
}

fn parse_final(rest: &str, offset: usize) -> Result<Claim, ClaimError> {
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rows) = rest.split_at(digits);
    let nth = if number.is_empty() { 1 } else { number.parse().unwrap_or(0) };
    if nth == 0 {
        return Err((offset, "final queries are counted from 1".into()));
    }
    let at = offset + digits + (rows.len() - rows.trim_start().len());
    let rows = rows.trim();
    let expected = if let Some(row) = rows.strip_prefix("has") {
        Expected::Has(one_row(row, at + 3)?)
    } else if ["counts", "error", "contains"].iter().any(|verb| rows.starts_with(verb)) {
        parse_step(rows, at)?
    } else {
        Expected::Rows(parse_rows(rows, at)?)
    };
    Ok(Claim { subject: Subject::Final(nth), expected })
}

fn parse_step(rest: &str, at: usize) -> Result<Expected, ClaimError> {
    let (verb, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let tail_at = at + rest.len() - tail.len();
    Ok(match (verb, tail.trim()) {
        ("waits", "") => Expected::Waits,
        ("waits", holder) => match holder.strip_prefix("for ") {
            Some(session) => Expected::WaitsFor(session.trim().into()),
            None => return Err((tail_at, "write `waits` or `waits for SESSION`".into())),
        },
        ("does", "not wait") => Expected::DoesNotWait,
        ("ok", "") => Expected::Ok,
        ("not", "sent") => Expected::NotSent,
        ("error", "") => Expected::Error(None),
        ("error", code) if !code.contains(char::is_whitespace) => {
            Expected::Error(Some(code.into()))
        }
        ("affects", count) => Expected::Affects(
            count.parse().map_err(|_| (tail_at, format!("`{count}` is not a number of rows")))?,
        ),
        ("counts", count) => Expected::Counts(
            count.parse().map_err(|_| (tail_at, format!("`{count}` is not a number of rows")))?,
        ),
        ("rows", rows) => Expected::Rows(parse_rows(rows, tail_at)?),
        ("has", row) => Expected::Has(one_row(row, tail_at)?),
        ("contains", text) => Expected::Contains(one_text(text, tail_at)?),
        _ => {
            return Err((
                at,
                "a step `waits`, `waits for s1`, `does not wait`, is `ok`, `not sent`, gives \
                 `error [CODE]`, `affects N`, `counts N`, `rows (…) (…)`, `rows none`, `has (…)` or `contains '…'`"
                    .into(),
            ));
        }
    })
}

fn parse_session(rest: &str, at: usize) -> Result<Expected, ClaimError> {
    match rest.split_whitespace().collect::<Vec<_>>().join(" ").as_str() {
        "commits" => Ok(Expected::Commits),
        "does not commit" => Ok(Expected::DoesNotCommit),
        "rolls back" => Ok(Expected::RollsBack),
        "aborts" => Ok(Expected::Aborts),
        _ => Err((
            at,
            "a session `commits`, `does not commit`, `rolls back` or `aborts`; a step is written \
             s1.2"
                .into(),
        )),
    }
}

fn one_row(text: &str, at: usize) -> Result<Row, ClaimError> {
    let mut rows = parse_rows(text.trim(), at)?;
    match (rows.pop(), rows.is_empty()) {
        (Some(row), true) => Ok(row),
        _ => Err((at, "write one row after `has`, such as has (1, 'a')".into())),
    }
}

fn one_text(text: &str, at: usize) -> Result<String, ClaimError> {
    let mut reader = Reader { text, at: 0 };
    if !text.starts_with('\'') {
        return Err((at, "write a text in quotes after `contains`".into()));
    }
    let found = reader.quoted().map_err(|(o, m)| (at + o, m))?;
    match (reader.done(), found.is_empty()) {
        (true, false) => Ok(found),
        (true, true) => Err((at, "every text contains the empty one".into())),
        (false, _) => Err((at + reader.at, "only one text in quotes after `contains`".into())),
    }
}

/// `(1, 'a') (2, null)` or `none`.
fn parse_rows(text: &str, at: usize) -> Result<Vec<Row>, ClaimError> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let mut reader = Reader { text, at: 0 };
    let mut rows = Vec::new();
    loop {
        reader.skip_blanks();
        if reader.done() {
            break;
        }
        rows.push(reader.row().map_err(|(o, m)| (at + o, m))?);
    }
    if rows.is_empty() {
        return Err((at, "write rows such as (1, 'a') (2, null), or none".into()));
    }
    Ok(rows)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    fn done(&self) -> bool {
        self.rest().is_empty()
    }
    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }
    fn take(&mut self, mark: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    fn row(&mut self) -> Result<Row, ClaimError> {
        if !self.take('(') {
            return Err((self.at, "a row starts with (".into()));
        }
        let mut row = Vec::new();
        if self.take(')') {
            return Ok(row);
        }
        loop {
            row.push(self.cell()?);
            if self.take(')') {
                return Ok(row);
            }
            if !self.take(',') {
                return Err((self.at, "expected , or ) after a value".into()));
            }
        }
    }

    fn cell(&mut self) -> Result<Value, ClaimError> {
        self.skip_blanks();
        let rest = self.rest();
        if rest.starts_with('\'') {
            return self.quoted().map(Value::Text);
        }
        if rest.starts_with("x'") || rest.starts_with("X'") {
            let start = self.at;
            self.at += 1;
            let digits = self.quoted()?;
            return unhex(&digits)
                .map(Value::Bytes)
                .ok_or((start, "x'…' takes an even number of hex digits".into()));
        }
        let len = rest
            .find(|c: char| c == ',' || c == ')' || c == '(' || c.is_whitespace())
            .unwrap_or(rest.len());
        let word = &rest[..len];
        let value = match word.to_ascii_lowercase().as_str() {
            "null" => Some(Value::Null),
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => number(word),
        };
        let value = value.ok_or_else(|| {
            (
                self.at,
                format!("`{word}` is not a value; text goes in 'quotes', else null, a number"),
            )
        })?;
        self.at += len;
        Ok(value)
    }

    fn quoted(&mut self) -> Result<String, ClaimError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(close) = self.rest().find('\'') else {
                return Err((start, "this quote is never closed".into()));
            };
            text.push_str(&self.rest()[..close]);
            self.at += close + 1;
            if !self.rest().starts_with('\'') {
                return Ok(text);
            }
            text.push('\'');
            self.at += 1;
        }
    }
}

fn number(word: &str) -> Option<Value> {
    let starts_right = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    if !starts_right {
        return None;
    }
    if let Ok(int) = word.parse() {
        return Some(Value::Int(int));
    }
    let float: f64 = word.parse().ok()?;
    let exact = !word.contains(['e', 'E']);
    Some(if exact { Value::Decimal(word.into()) } else { Value::Float(float) })
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Step { session, nth } => write!(f, "{session}.{nth}"),
            Subject::Session(name) => f.write_str(name),
            Subject::Setup => f.write_str("setup"),
            Subject::Final(1) => f.write_str("final"),
            Subject::Final(nth) => write!(f, "final {nth}"),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.subject)?;
        match &self.expected {
            Expected::Waits => f.write_str("waits"),
            Expected::WaitsFor(holder) => write!(f, "waits for {holder}"),
            Expected::DoesNotWait => f.write_str("does not wait"),
            Expected::Ok => f.write_str("ok"),
            Expected::Error(None) => f.write_str("error"),
            Expected::Error(Some(code)) => write!(f, "error {code}"),
            Expected::NotSent => f.write_str("not sent"),
            Expected::Affects(n) => write!(f, "affects {n}"),
            Expected::Rows(rows) if matches!(self.subject, Subject::Final(_)) => {
                f.write_str(&show_rows(rows))
            }
            Expected::Rows(rows) => write!(f, "rows {}", show_rows(rows)),
            Expected::Counts(n) => write!(f, "counts {n}"),
            Expected::Has(row) => write!(f, "has {}", show_row(row)),
            Expected::Contains(text) => write!(f, "contains '{}'", text.replace('\'', "''")),
            Expected::Commits => f.write_str("commits"),
            Expected::DoesNotCommit => f.write_str("does not commit"),
            Expected::RollsBack => f.write_str("rolls back"),
            Expected::Aborts => f.write_str("aborts"),
        }
    }
}

//! A trace as JSON lines: each says what it is, texts come before their first
//! use, and the last line says that there is no more.

use super::{Access, Accesses, Lock, Operation, OperationResult, Trace, TracedTransaction, Wrong};
use crate::Level;
use crate::history::{ServerFailure, TargetInfo};
use crate::profile::ConcurrencyControl;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format that is written. Version 1 had neither setup, control nor locks.
const FORMAT: u32 = 2;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Trace(Head),
    Statement(Text),
    Item(Text),
    Op(OpLine),
    Transaction(TransactionLine),
    End(End),
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    isolde: String,
    #[serde(flatten)]
    on: TargetInfo,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control: Option<ConcurrencyControl>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    setup: Vec<String>,
    sessions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    id: u32,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpLine {
    session: u32,
    transaction: u32,
    statement: u32,
    start: u64,
    end: u64,
    result: OperationResult,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reads: Vec<Access>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<Access>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lock: Option<Lock>,
}

#[derive(Serialize, Deserialize)]
struct TransactionLine {
    id: u32,
    #[serde(flatten)]
    transaction: TracedTransaction,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    operations: usize,
    transactions: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    death: Option<ServerFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace: {why}")]
pub struct TraceError {
    pub line: usize,
    pub why: String,
}

impl Trace {
    /// The lines of its text form, one after the other.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let head = Line::Trace(Head {
            format: FORMAT,
            isolde: self.isolde.clone(),
            on: self.on.clone(),
            level: self.level,
            control: self.control,
            setup: self.setup.clone(),
            sessions: self.sessions.clone(),
        });
        let end = Line::End(End {
            operations: self.operations.len(),
            transactions: self.transactions.len(),
            death: self.death.clone(),
        });
        let mut recorded = LineWriter::new(self);
        let body =
            self.operations.iter().enumerate().flat_map(move |(at, o)| recorded.lines(at, o));
        let untouched = self.transactions_without_operations();
        [head].into_iter().chain(body).chain(untouched).chain([end]).map(|line| written(&line))
    }

    fn transactions_without_operations(&self) -> Vec<Line> {
        let mut seen = vec![false; self.transactions.len()];
        self.operations.iter().for_each(|o| seen[o.transaction as usize] = true);
        let unseen = (0u32..).zip(&self.transactions).zip(seen).filter(|(_, seen)| !seen);
        unseen.map(|((id, t), _)| ended(id, t)).collect()
    }

    /// Reads the text form. What was broken off in mid-writing is refused.
    pub fn from_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Trace, TraceError> {
        let mut trace = Trace::default();
        let mut transactions: BTreeMap<u32, TracedTransaction> = BTreeMap::new();
        // Where each operation stands.
        let mut places: Vec<usize> = Vec::new();
        let mut ended = false;
        let mut count = 0;
        for text in lines {
            count += 1;
            let wrong = |why: String| TraceError { line: count, why };
            let line: Line = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
            let first = matches!(line, Line::Trace(_));
            if first != (count == 1) {
                let why = "the line `trace` is the first, and no other is";
                return Err(wrong(why.into()));
            }
            if ended {
                return Err(wrong("it comes after the line `end`".into()));
            }
            match line {
                Line::Trace(head) if !(1..=FORMAT).contains(&head.format) => {
                    let why = format!("its format is {}, and known is {FORMAT}", head.format);
                    return Err(wrong(why));
                }
                Line::Trace(head) => {
                    let Head { isolde, on, level, control, setup, sessions, .. } = head;
                    let rest = Trace::default();
                    trace = Trace { isolde, on, level, control, setup, sessions, ..rest };
                }
                Line::Statement(text) => push(&mut trace.statements, text).map_err(wrong)?,
                Line::Item(text) => push(&mut trace.items, text).map_err(wrong)?,
                Line::Op(op) => {
                    trace.operations.push(op.checked(&trace).map_err(wrong)?);
                    places.push(count);
                }
                Line::Transaction(line) => {
                    if transactions.insert(line.id, line.transaction).is_some() {
                        return Err(wrong(format!("transaction {} has ended before", line.id)));
                    }
                }
                Line::End(end) => {
                    let recorded = (end.operations, end.transactions);
                    let found = (trace.operations.len(), transactions.len());
                    if recorded != found {
                        return Err(wrong(format!(
                            "it counts {recorded:?}, and there are {found:?}"
                        )));
                    }
                    trace.death = end.death;
                    ended = true;
                }
            }
        }
        let missing = |why: String| TraceError { line: count, why };
        if !ended {
            return Err(missing("there is no line `end`: the trace was broken off".into()));
        }
        for (id, (recorded, transaction)) in (0u32..).zip(transactions) {
            if recorded != id {
                return Err(missing(format!("transaction {id} is missing")));
            }
            trace.transactions.push(transaction);
        }
        trace.check_transactions().map_err(missing)?;
        let placed = |Wrong { operation, why }: Wrong| TraceError { line: places[operation], why };
        trace.check().map_err(placed)?;
        Ok(trace)
    }

    fn check_transactions(&self) -> Result<(), String> {
        let known = self.transactions.len();
        let unknown = |id: &u32| *id as usize >= known;
        let repeated = self.transactions.iter().filter_map(|t| t.repeats);
        if let Some(id) = { repeated }.find(unknown) {
            return Err(format!("there is no transaction {id}"));
        }
        let sessions = self.sessions.len();
        match self.transactions.iter().find(|t| t.session as usize >= sessions) {
            Some(t) => Err(format!("there is no session {}", t.session)),
            None => Ok(()),
        }
    }
}

/// What has been written: texts stand before their first use, transactions
/// behind their last operation.
struct LineWriter<'t> {
    trace: &'t Trace,
    statements: usize,
    items: usize,
    last: Vec<usize>,
}

impl<'t> LineWriter<'t> {
    fn new(trace: &'t Trace) -> LineWriter<'t> {
        let mut last = vec![0; trace.transactions.len()];
        for (at, operation) in trace.operations.iter().enumerate() {
            last[operation.transaction as usize] = at;
        }
        LineWriter { trace, statements: 0, items: 0, last }
    }

    fn lines(&mut self, at: usize, operation: &Operation) -> Vec<Line> {
        let mut lines = Vec::new();
        let Accesses { reads, writes, lock } =
            operation.accesses.as_deref().cloned().unwrap_or_default();
        let text = |texts: &[String], id: usize| Text {
            id: u32::try_from(id).unwrap_or(u32::MAX),
            text: texts[id].clone(),
        };
        while self.statements <= operation.statement as usize {
            lines.push(Line::Statement(text(&self.trace.statements, self.statements)));
            self.statements += 1;
        }
        for access in reads.iter().chain(&writes) {
            while self.items <= access.item as usize {
                lines.push(Line::Item(text(&self.trace.items, self.items)));
                self.items += 1;
            }
        }
        let Operation { session, transaction, statement, start, end, result, .. } = *operation;
        let op =
            OpLine { session, transaction, statement, start, end, result, reads, writes, lock };
        lines.push(Line::Op(op));
        if self.last[transaction as usize] == at {
            lines.push(ended(transaction, &self.trace.transactions[transaction as usize]));
        }
        lines
    }
}

impl OpLine {
    fn checked(self, trace: &Trace) -> Result<Operation, String> {
        let OpLine { session, transaction, statement, start, end, result, reads, writes, lock } =
            self;
        if session as usize >= trace.sessions.len() {
            return Err(format!("there is no session {session}"));
        }
        if statement as usize >= trace.statements.len() {
            return Err(format!("statement {statement} has no text yet"));
        }
        let items = trace.items.len();
        if let Some(access) = reads.iter().chain(&writes).find(|a| a.item as usize >= items) {
            return Err(format!("item {} has no name yet", access.item));
        }
        let none = reads.is_empty() && writes.is_empty();
        let accesses = (!none).then(|| Box::new(Accesses { reads, writes, lock }));
        Ok(Operation { session, transaction, statement, start, end, result, accesses })
    }
}

fn push(texts: &mut Vec<String>, Text { id, text }: Text) -> Result<(), String> {
    if id as usize != texts.len() {
        return Err(format!("its id is {id}, and the next is {}", texts.len()));
    }
    texts.push(text);
    Ok(())
}

fn ended(id: u32, transaction: &TracedTransaction) -> Line {
    Line::Transaction(TransactionLine { id, transaction: transaction.clone() })
}

fn written(line: &Line) -> String {
    serde_json::to_string(line).expect("lines have string keys and finite numbers")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! A trace: what many sessions did at full speed, as opposed to the history of
//! one scheduled case.
//!
//! A history says in which order things happened, because the runner imposed
//! it. A trace imposes nothing and therefore keeps times: each operation has a
//! start and an end in nanoseconds of one monotonic clock, which the caller
//! reads, and two operations are ordered only if one ended before the other
//! began. It is made for millions of operations: texts are kept once, results
//! are counted instead of kept, and what was read and written (items and
//! versions, for checkers that know them) takes room only where it is given.
//! Its text form is `docs/trace-format.md`.

mod check;
mod lines;

pub use check::Wrong;
pub use lines::TraceError;

use crate::Level;
use crate::history::{ErrorClass, ServerFailure, TargetInfo, TxEnd};
use crate::profile::ConcurrencyControl;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub isolde: String,
    pub on: TargetInfo,
    pub level: Option<Level>,
    /// How the engine keeps transactions apart at this level, as its profile says.
    pub control: Option<ConcurrencyControl>,
    /// The statements that made the tables and rows, to run it again.
    pub setup: Vec<String>,
    pub sessions: Vec<String>,
    /// Each text once; operations name it by its place.
    pub statements: Vec<String>,
    /// What can be read and written, by place, too.
    pub items: Vec<String>,
    pub transactions: Vec<TracedTransaction>,
    /// In the order in which they ended.
    pub operations: Vec<Operation>,
    pub death: Option<ServerFailure>,
}

/// One attempt of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracedTransaction {
    pub session: u32,
    /// The attempt before, if this one repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u32>,
    /// Where it is not that of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    pub how: TxEnd,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub session: u32,
    pub transaction: u32,
    pub statement: u32,
    /// Nanoseconds since a moment that all operations of a trace share.
    pub start: u64,
    pub end: u64,
    pub result: OperationResult,
    /// Boxed, because most traces have none.
    pub accesses: Option<Box<Accesses>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationResult {
    Rows(u64),
    Affected(u64),
    Done,
    Error(ErrorClass),
    /// It is not known whether it was executed: the server was gone first.
    Unanswered,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    pub reads: Vec<Access>,
    pub writes: Vec<Access>,
    /// What a locking read holds of what it read, to the end of its transaction.
    pub lock: Option<Lock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    Shared,
    Exclusive,
}

/// An item, and which of its versions was seen or made. Version 0 is what the setup left,
/// also where it left nothing; every other one is made by one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64)", into = "(u32, u64)")]
pub struct Access {
    pub item: u32,
    pub version: u64,
}

impl From<(u32, u64)> for Access {
    fn from((item, version): (u32, u64)) -> Access {
        Access { item, version }
    }
}

impl From<Access> for (u32, u64) {
    fn from(access: Access) -> (u32, u64) {
        (access.item, access.version)
    }
}

/// How the transactions of a trace ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub committed: u64,
    pub rolled_back: u64,
    /// Attempts that the engine ended.
    pub aborted: u64,
    /// Of those, the ones that were tried again.
    pub repeated: u64,
    /// With their session or server, or in a way that is not known.
    pub lost: u64,
}

impl Ends {
    /// Transactions that were aborted and not tried again.
    pub fn given_up(&self) -> u64 {
        self.aborted - self.repeated
    }
}

impl Trace {
    /// For each operation which one of its transaction it is.
    pub fn places(&self) -> Vec<usize> {
        let mut next = vec![0; self.transactions.len()];
        let place = |operation: &Operation| {
            let next = &mut next[operation.transaction as usize];
            *next += 1;
            *next - 1
        };
        self.operations.iter().map(place).collect()
    }

    pub fn ends(&self) -> Ends {
        let mut ends = Ends::default();
        for transaction in &self.transactions {
            ends.repeated += u64::from(transaction.repeats.is_some());
            *match transaction.how {
                TxEnd::Committed => &mut ends.committed,
                TxEnd::RolledBack => &mut ends.rolled_back,
                TxEnd::Aborted => &mut ends.aborted,
                TxEnd::Lost | TxEnd::Unknown => &mut ends.lost,
            } += 1;
        }
        ends
    }
}

/// Makes a trace: keeps each text once.
#[derive(Debug, Default)]
pub struct Recorder {
    trace: Trace,
    statements: HashMap<String, u32>,
    items: HashMap<String, u32>,
}

impl Recorder {
    pub fn new(on: TargetInfo, level: Option<Level>, sessions: Vec<String>) -> Recorder {
        let isolde = env!("CARGO_PKG_VERSION").into();
        let trace = Trace { isolde, on, level, sessions, ..Trace::default() };
        Recorder { trace, ..Recorder::default() }
    }

    /// How the engine keeps transactions apart.
    pub fn controlled(&mut self, control: ConcurrencyControl) {
        self.trace.control = Some(control);
    }

    /// What made the tables and rows.
    pub fn set_up(&mut self, setup: Vec<String>) {
        self.trace.setup = setup;
    }

    pub fn statement(&mut self, sql: &str) -> u32 {
        interned(&mut self.statements, &mut self.trace.statements, sql)
    }

    pub fn item(&mut self, name: &str) -> u32 {
        interned(&mut self.items, &mut self.trace.items, name)
    }

    /// Adds a transaction; until its end is recorded it counts as lost.
    pub fn begin(&mut self, session: u32, repeats: Option<u32>) -> u32 {
        let how = TxEnd::Lost;
        self.trace.transactions.push(TracedTransaction { session, repeats, level: None, how });
        place(self.trace.transactions.len() - 1)
    }

    pub fn end(&mut self, transaction: u32, how: TxEnd) {
        self.trace.transactions[transaction as usize].how = how;
    }

    pub fn operation(&mut self, operation: Operation) {
        self.trace.operations.push(operation);
    }

    pub fn finish(mut self, death: Option<ServerFailure>) -> Trace {
        self.trace.death = death;
        self.trace
    }
}

fn interned(places: &mut HashMap<String, u32>, texts: &mut Vec<String>, text: &str) -> u32 {
    if let Some(known) = places.get(text) {
        return *known;
    }
    let new = place(texts.len());
    texts.push(text.into());
    places.insert(text.into(), new);
    new
}

/// A trace of more than four billion things would not fit into memory.
fn place(index: usize) -> u32 {
    u32::try_from(index).expect("a trace has less than 2^32 of anything")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_text_is_stored_once() {
        let mut recorder = Recorder::default();
        assert_eq!(recorder.statement("begin"), 0);
        assert_eq!(recorder.statement("commit"), 1);
        assert_eq!(recorder.statement("begin"), 0);
        assert_eq!(recorder.item("begin"), 0);
        let trace = recorder.finish(None);
        assert_eq!((trace.statements.len(), trace.items.len()), (2, 1));
    }

    #[test]
    fn an_abort_is_repeated_or_given_up() {
        let mut recorder = Recorder::default();
        let first = recorder.begin(0, None);
        recorder.end(first, TxEnd::Aborted);
        let second = recorder.begin(0, Some(first));
        recorder.end(second, TxEnd::Aborted);
        let other = recorder.begin(1, None);
        recorder.end(other, TxEnd::Committed);
        recorder.begin(1, None);
        let ends = recorder.finish(None).ends();
        assert_eq!((ends.committed, ends.aborted, ends.repeated, ends.lost), (1, 2, 1, 1));
        assert_eq!(ends.given_up(), 1);
    }

    #[test]
    fn an_operation_is_small() {
        assert!(std::mem::size_of::<Operation>() <= 56, "{}", std::mem::size_of::<Operation>());
    }
}

//! The order in which a database executed what many sessions sent at full speed.
//!
//! ```text
//!   Trace ──► Facts ──► rules of the protocol: Edges ──► total order ──► batches
//!     times, versions, results      mvcc, occ, timestamps     └──► schedule: a Case
//! ```
//!
//! The times of a trace are the client's, so overlapping operations have no order in it. But
//! it also has results: which version a statement read, what a write left, what failed.
//! Together with the engine's concurrency control they decide most of what the times leave
//! open (Pisco, appendices A, D and E.1). Each operation has a moment at which it took effect:
//! a write when it had its lock, a commit when it was durable, the statement that takes a
//! snapshot when it took it. An [`Edge`] says that one such moment came before another, and
//! why. The database is not simulated where the trace records what it did: a failed statement
//! took no lock and made no version.
//!
//! What no rule decides stays open and is counted. What contradicts the protocol, as the
//! anomalies do that one looks for, is counted too ([`ProtocolViolation`]): then the statement's own
//! moment is ordered instead of its snapshot's, as far as that goes.
//!
//! It does not see rows that a condition did not find, unless the trace says that version 0
//! of them was read.

#![forbid(unsafe_code)]

mod chains;
mod facts;
pub mod leopard;
mod mvcc;
mod names;
mod occ;
mod reads;
mod schedule;
pub mod simulate;
mod timestamps;
mod total_order;

pub use names::Names;
pub use schedule::{NoSchedule, Schedule};

use facts::Facts;
use isolde_model::Trace;
use isolde_model::profile::{ConcurrencyControl, Protocol};
use isolde_model::trace::Wrong;
use std::collections::{BTreeMap, HashMap};

/// How much is tried where orders must be enumerated.
pub const BUDGET: u64 = 1_000_000;

/// What decided the order of two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// One had ended before the other was sent. These are counted and not listed.
    Times,
    /// A version is there before it is read.
    ReadsFrom,
    /// What is read is not overwritten yet.
    Overwritten,
    /// The operation that returned first had the lock; the next got it when that one's transaction
    /// ended.
    Lock,
    /// A commit failed or did not because of what others had committed.
    Validation,
    /// Conflicts go in the order of timestamps.
    Timestamp,
    /// Undecided: one of several orders that all explain the results.
    Chosen,
}

impl Rule {
    pub const ALL: [Rule; 7] = [
        Rule::Times,
        Rule::ReadsFrom,
        Rule::Overwritten,
        Rule::Lock,
        Rule::Validation,
        Rule::Timestamp,
        Rule::Chosen,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Rule::Times => "times",
            Rule::ReadsFrom => "reads-from",
            Rule::Overwritten => "overwritten",
            Rule::Lock => "lock",
            Rule::Validation => "validation",
            Rule::Timestamp => "timestamp",
            Rule::Chosen => "chosen",
        }
    }
}

/// The first took effect before the second, by their places in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub before: u32,
    pub after: u32,
    pub rule: Rule,
}

/// An operation that the concurrency-control protocol cannot have produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolViolation {
    /// It read what was not committed.
    DirtyRead,
    /// It read what was overwritten before it, or its snapshot, began.
    StaleRead,
    /// It read what was committed after its snapshot.
    BeyondSnapshot,
    /// No single snapshot contains all versions that a transaction read.
    TornSnapshot,
    /// Two transactions wrote an item while neither had ended.
    LockNotHeld,
    /// A commit succeeded that should have failed.
    NotValidated,
    /// Conflicts that no order of timestamps explains.
    NoTimestamps,
    /// The rules and the times together form a cycle.
    Circle,
}

/// A question about the order that the trace leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ambiguity {
    /// A statement that changed or read rows, and the trace does not say which.
    AccessUnknown,
    /// A statement that failed: only the times say when.
    Failed,
    /// A statement without an answer.
    Unanswered,
    /// A transaction whose outcome is not known.
    EndUnknown,
    /// A read concurrent with a write that was rolled back: before it, or after the rollback?
    ConcurrentWithUndone,
    /// Which of several commits made another one fail.
    WhichCommit,
    /// Two writes with more than one order of timestamps that explains the results.
    TimestampsOpen,
    /// The search for timestamps was cut off.
    CutOff,
}

/// How often something happened, and the first operations that it happened to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    pub count: u64,
    pub first: Vec<(u32, Option<u32>)>,
}

/// The number of occurrences that are listed.
const NAMED: usize = 5;

impl Occurrences {
    fn note(&mut self, operation: u32, other: Option<u32>) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push((operation, other));
        }
    }
}

/// An inferred order, and what it is based on.
#[derive(Clone, Debug)]
pub struct Inferred {
    pub control: ConcurrencyControl,
    /// All operations, by their places in the trace.
    pub order: Vec<u32>,
    /// Where each batch ends in it. Operations of a batch do not conflict.
    pub batches: Vec<u32>,
    /// Statements that took their snapshot when they were sent and then waited for a lock:
    /// they were sent before this place of the order.
    pub early: Vec<(u32, u32)>,
    /// The edges that the rules add to the times, without those that were chosen or dropped.
    pub edges: Vec<Edge>,
    /// The number of pairs of conflicting operations whose order each rule decided.
    pub decided: BTreeMap<Rule, u64>,
    pub violations: BTreeMap<ProtocolViolation, Occurrences>,
    pub open: BTreeMap<Ambiguity, Occurrences>,
}

impl Inferred {
    /// The operations of each batch.
    pub fn batches(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.batches.iter().copied());
        starts.zip(&self.batches).map(|(from, to)| &self.order[from as usize..*to as usize])
    }

    /// Whether a search was cut off, so that it is not known whether there is an order.
    pub fn is_cut_off(&self) -> bool {
        self.open.contains_key(&Ambiguity::CutOff)
    }

    pub fn violation_count(&self) -> u64 {
        self.violations.values().map(|occurrences| occurrences.count).sum()
    }
}

/// Infers the order, by what the trace says of its engine, or by the protocol that is
/// asked for.
pub fn infer(trace: &Trace, protocol: Option<Protocol>, budget: u64) -> Result<Inferred, Wrong> {
    trace.check()?;
    let facts = Facts::of(trace, protocol);
    let mut edges = Edges::new(&facts);
    facts.note_open(&mut edges);
    match facts.control.protocol {
        Protocol::Mvcc2pl => mvcc::rules(&facts, &mut edges),
        Protocol::Occ => occ::rules(&facts, &mut edges),
        Protocol::TimestampOrdering => timestamps::rules(&facts, &mut edges, budget),
    }
    Ok(total_order::topological_order(&facts, edges))
}

/// The edges, violations and ambiguities that the rules have found so far.
struct Edges<'f, 't> {
    facts: &'f Facts<'t>,
    list: Vec<Edge>,
    /// Operations whose snapshot has a place of its own, before that of their effect. In
    /// `list` these places are numbered behind all operations.
    early: Vec<u32>,
    early_of: HashMap<u32, u32>,
    violations: BTreeMap<ProtocolViolation, Occurrences>,
    open: BTreeMap<Ambiguity, Occurrences>,
}

impl<'f, 't> Edges<'f, 't> {
    fn new(facts: &'f Facts<'t>) -> Edges<'f, 't> {
        let (violations, open) = (BTreeMap::new(), BTreeMap::new());
        let (list, early, early_of) = (Vec::new(), Vec::new(), HashMap::new());
        Edges { facts, list, early, early_of, violations, open }
    }

    /// Where an operation took its snapshot, if that has a place of its own: it was sent, took
    /// it, and then perhaps waited for a lock.
    fn sent(&mut self, operation: u32) -> u32 {
        let next = facts::place(self.facts.operations.len() + self.early.len());
        let sent = *self.early_of.entry(operation).or_insert(next);
        if sent == next {
            self.early.push(operation);
        }
        sent
    }

    /// The same as [`Edges::add`], of the moment of a snapshot.
    fn add_seen(&mut self, commit: u32, snapshot: u32, waits: bool, rule: Rule) -> bool {
        if !waits {
            return self.add(commit, snapshot, rule);
        }
        let can = self.facts.can(commit, snapshot);
        if can && commit != snapshot {
            let after = self.sent(snapshot);
            self.list.push(Edge { before: commit, after, rule });
        }
        can
    }

    /// The snapshot was taken before this commit.
    fn add_unseen(&mut self, snapshot: u32, commit: u32, waits: bool, rule: Rule) -> bool {
        if !waits {
            return self.add(snapshot, commit, rule);
        }
        let can = self.facts.can(snapshot, commit);
        if can && commit != snapshot {
            let before = self.sent(snapshot);
            self.list.push(Edge { before, after: commit, rule });
        }
        can
    }

    /// Adds an edge if the times allow it. Returns whether they do.
    fn add(&mut self, before: u32, after: u32, rule: Rule) -> bool {
        let can = self.facts.can(before, after);
        if can && before != after {
            self.list.push(Edge { before, after, rule });
        }
        can
    }

    fn violations(&mut self, what: ProtocolViolation, operation: u32, other: Option<u32>) {
        self.violations.entry(what).or_default().note(operation, other);
    }

    fn open(&mut self, what: Ambiguity, operation: u32, other: Option<u32>) {
        self.open.entry(what).or_default().note(operation, other);
    }
}

#[cfg(test)]
mod tests;

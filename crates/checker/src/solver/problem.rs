//! The input and output of the solver, reduced to what the decision depends on.

use crate::digraph::Rows;
#[cfg(doc)]
use crate::types::INITIAL;

/// The problem: committed transactions (0 to n - 1, those of a session in session order), their
/// reads and writes, and the known version orders.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The session of each transaction.
    pub session_of: Vec<u32>,
    /// The number of sessions.
    pub sessions: u32,
    /// The number of items.
    pub items: u32,
    /// One row per transaction: item and writer of each version that it read from another
    /// transaction, each pair once, sorted. Reads of own writes are not included. A writer is a
    /// transaction that wrote the item, or [`INITIAL`]. Two writers for one item mean that the
    /// reader observed a change.
    pub reads: Rows<(u32, u32)>,
    /// One row per transaction: the items that it wrote, sorted, each once.
    pub writes: Rows<u32>,
    /// One row per item: the writers of its first versions, in version order. All other writers of
    /// the item come after them, in unknown order. Mostly empty for registers; nearly complete for
    /// lists.
    pub known_order: Rows<u32>,
    /// Begin and end of each transaction, or empty.
    pub times: Vec<[u64; 2]>,
}

/// The property to decide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Serializability: one serial order explains all reads.
    Serializable,
    /// Snapshot isolation: snapshots and first committer wins.
    SnapshotIsolation,
}

/// The dependency between two consecutive transactions of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dependency {
    /// Session order.
    Session,
    /// Real-time order: one ended before the other began.
    RealTime,
    /// Read dependency: the second read what the first wrote.
    Wr { item: u32 },
    /// Write dependency: the second overwrote what the first wrote.
    Ww { item: u32 },
    /// Anti-dependency: the second overwrote the version of `writer`, which the first read.
    Rw { item: u32, writer: u32 },
}

/// Why a step of a cycle is certain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Justification {
    /// The history shows it. For versions: the writer of the later one read the earlier one, or the
    /// earlier one is in the known version order and the later one is not, or comes later in it.
    Observed,
    /// The reverse order of the two versions would close a cycle with these steps, which are a path
    /// or already a cycle. A run of versions, each written by a reader of the previous one, stays
    /// together, so the reverse order puts one whole run before the other.
    Inferred(Vec<Step>),
    /// The reverse order that an enclosing step refutes. Only inside of
    /// [`Justification::Inferred`].
    Assumed,
    /// No version order without it exists, by a search that is too long to present.
    Search,
}

/// An edge of a cycle that proves a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The transaction that comes first.
    pub from: u32,
    /// The transaction that comes second.
    pub to: u32,
    /// The dependency between them.
    pub dependency: Dependency,
    /// Why the dependency is certain.
    pub justification: Justification,
}

/// The answer of the solver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The level holds; the position of each transaction in a commit order.
    Holds { commit_order: Vec<u32> },
    /// The level is violated: a cycle of certain steps.
    Violated { cycle: Vec<Step> },
    /// The budget ran out with this many pairs of versions still unordered, in this many
    /// transactions.
    Unknown { open_pairs: usize, transactions: usize },
}

/// How much work may be done before the answer is [`Decision::Unknown`]. It counts work and not
/// time, so that the same history always gets the same answer.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// The number of dead ends in the search for an order.
    pub conflicts: u64,
    /// The number of transactions placed, removed, or visited in a dead end.
    pub steps: u64,
    /// Called now and then; `true` ends the work.
    pub stop: Option<&'a dyn Fn() -> bool>,
}

impl Default for Budget<'_> {
    fn default() -> Self {
        Budget { conflicts: 200_000, steps: 300_000_000, stop: None }
    }
}

impl Budget<'_> {
    pub(super) fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop())
    }
}

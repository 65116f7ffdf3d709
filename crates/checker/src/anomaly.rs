//! Classes of anomalies, the edges that prove one, and the witness of each.
//!
//! The names are those of Adya's thesis ("Weak Consistency: A Generalized Theory and
//! Optimistic Implementations for Distributed Transactions", MIT 1999) and of Elle
//! (Kingsbury and Alvaro, VLDB 2020). This module only defines the vocabulary; `witness`
//! and `resolve` find the anomalies.

use crate::history::{Item, Txn, Value};
use std::fmt;

/// A class of anomalies. `docs/anomalies.md` defines each with an example.
///
/// The order of the variants is the order in which a report lists them: malformed histories
/// first, then the anomalies that violate the weakest levels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Two writes of the same value to one item.
    DuplicateVersions,
    /// Two reads of a list that are not prefixes of one another.
    IncompatibleOrders,
    /// A read of a value that no transaction wrote.
    ThinAirRead,
    /// A read of a value that the reader itself writes later.
    FutureRead,
    /// A read that contradicts an earlier write of its own transaction.
    Internal,
    /// Aborted read: a read of a version whose writer rolled back.
    G1a,
    /// Intermediate read: a read of a version that its writer overwrote itself.
    G1b,
    /// A committed version that was derived from an aborted one.
    DirtyUpdate,
    /// Write cycle: a cycle of ww edges.
    G0,
    /// Circular information flow: a cycle of ww and wr edges with at least one wr.
    G1c,
    /// Two transactions read the same version of an item and both overwrite it.
    LostUpdate,
    /// A cycle of one rw edge and ww edges, all on one item.
    GCursor,
    /// Two reads of one item in one transaction return different versions.
    NonRepeatableRead,
    /// A transaction observes one write of another transaction and misses a second one.
    ReadSkew,
    /// A rw edge on one item and a ww edge back on another item.
    ReadWriteSkew,
    /// A cycle with exactly one rw edge.
    GSingle,
    /// Interference: a dependency on a transaction that started after the reader ended.
    GSIa,
    /// Missed effects: a cycle of one rw edge and real-time order.
    GSIb,
    /// A cycle in which no two rw edges are adjacent.
    GNonadjacent,
    /// Two transactions, each of which reads what the other overwrites.
    WriteSkew,
    /// A cycle whose rw edges are all on items.
    G2Item,
    /// A cycle with at least one predicate rw edge: a phantom.
    G2,
}

use Class::*;

impl Class {
    /// All classes, in the order in which a report lists them.
    pub const ALL: [Class; 22] = [
        DuplicateVersions,
        IncompatibleOrders,
        ThinAirRead,
        FutureRead,
        Internal,
        G1a,
        G1b,
        DirtyUpdate,
        G0,
        G1c,
        LostUpdate,
        GCursor,
        NonRepeatableRead,
        ReadSkew,
        ReadWriteSkew,
        GSingle,
        GSIa,
        GSIb,
        GNonadjacent,
        WriteSkew,
        G2Item,
        G2,
    ];

    /// The stable name of the class, as it appears in reports and in `docs/anomalies.md`.
    pub fn name(self) -> &'static str {
        match self {
            DuplicateVersions => "duplicate-versions",
            IncompatibleOrders => "incompatible-orders",
            ThinAirRead => "thin-air-read",
            FutureRead => "future-read",
            Internal => "internal",
            G1a => "G1a",
            G1b => "G1b",
            DirtyUpdate => "dirty-update",
            G0 => "G0",
            G1c => "G1c",
            GCursor => "G-cursor",
            LostUpdate => "lost-update",
            NonRepeatableRead => "non-repeatable-read",
            ReadSkew => "read-skew",
            ReadWriteSkew => "read-write-skew",
            GSingle => "G-single",
            GSIa => "G-SIa",
            GSIb => "G-SIb",
            GNonadjacent => "G-nonadjacent",
            WriteSkew => "write-skew",
            G2Item => "G2-item",
            G2 => "G2",
        }
    }

    /// A one-line description of the class.
    pub fn meaning(self) -> &'static str {
        match self {
            DuplicateVersions => "the same value was written to an item twice",
            IncompatibleOrders => "two reads saw the versions of an item in different orders",
            ThinAirRead => "a read saw a value that no transaction wrote",
            FutureRead => "a transaction read a value that it wrote only later",
            Internal => "a transaction did not see its own earlier write",
            G1a => "aborted read: a read saw a write that was rolled back",
            G1b => "intermediate read: a read saw a version that its writer overwrote itself",
            DirtyUpdate => "a committed version was derived from one that was rolled back",
            G0 => "write cycle: transactions overwrote each other in different orders",
            G1c => "circular information flow: each read from or overwrote the previous one",
            GCursor => "a version was read, replaced by another, and overwritten by its reader",
            LostUpdate => {
                "two transactions updated an item from the same version: one update is lost"
            }
            NonRepeatableRead => "a transaction saw an item change between two reads",
            ReadSkew => "a transaction saw one write of another transaction, but not a second one",
            ReadWriteSkew => {
                "a transaction read what another one overwrote, and overwrote a second write of it"
            }
            GSingle => "a cycle with one anti-dependency: no snapshot explains the reads",
            GSIa => "interference: a transaction depends on one that began after its end",
            GSIb => "missed effects: a cycle with one anti-dependency and real-time order",
            GNonadjacent => "a cycle in which no two anti-dependencies follow each other",
            WriteSkew => "two transactions each read an item that the other one overwrote",
            G2Item => "a cycle with anti-dependencies on items",
            G2 => "a cycle with an anti-dependency on a predicate: a phantom",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The kind of an edge in a witness: why one transaction comes before another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EdgeKind {
    /// Session order: both ran in the same session, the first before the second.
    Session,
    /// Real-time order: the first ended before the second began.
    RealTime,
    /// Read dependency: the second read what the first wrote.
    Wr,
    /// Write dependency: the second overwrote what the first wrote.
    Ww,
    /// Anti-dependency: the second overwrote what the first read.
    Rw,
    /// Predicate read dependency: the second's predicate read observed a change of the
    /// predicate's matches that the first made.
    PredicateWr,
    /// Predicate anti-dependency: the second changed the matches of the first's predicate read.
    PredicateRw,
}

impl EdgeKind {
    /// The short name of the kind: `so`, `rt`, `wr`, `ww`, `rw`, `predicate-wr` or `predicate-rw`.
    pub fn name(self) -> &'static str {
        match self {
            EdgeKind::Session => "so",
            EdgeKind::RealTime => "rt",
            EdgeKind::Wr => "wr",
            EdgeKind::Ww => "ww",
            EdgeKind::Rw => "rw",
            EdgeKind::PredicateWr => "predicate-wr",
            EdgeKind::PredicateRw => "predicate-rw",
        }
    }

    /// Whether this is an anti-dependency on an item or a predicate.
    pub fn is_anti_dependency(self) -> bool {
        matches!(self, EdgeKind::Rw | EdgeKind::PredicateRw)
    }
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An edge of a witness: `from` comes before `to`, with the evidence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The transaction that comes first.
    pub from: Txn,
    /// The transaction that comes second.
    pub to: Txn,
    /// The kind of the dependency or order.
    pub kind: EdgeKind,
    /// The item that both accessed; none for session order and real-time order.
    pub item: Option<Item>,
    /// The name of the predicate, for a predicate dependency.
    pub predicate: Option<String>,
    /// The version that `from` wrote or read, where one is known.
    pub from_value: Option<Value>,
    /// The version that `to` wrote or read, where one is known.
    pub to_value: Option<Value>,
    /// The SQL text of `from`'s operation, where the history has it.
    pub from_statement: Option<String>,
    /// The SQL text of `to`'s operation, where the history has it.
    pub to_statement: Option<String>,
    /// How the checker knows that the edge exists.
    pub certainty: Certainty,
}

/// How an edge of a witness was established.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The history shows it.
    Observed,
    /// No read shows the order of these two versions, but the reverse order would close a cycle
    /// with these edges.
    Inferred(Vec<Edge>),
    /// The reverse order inside such a refutation: assumed only to be refuted.
    Assumed,
    /// No read shows it; an exhaustive search found no version order without it.
    Searched,
}

/// The evidence for an anomaly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Witness {
    /// A cycle: each transaction comes before the next one, and the last before the first.
    Cycle(Vec<Edge>),
    /// A single read or write that is wrong by itself.
    Operation {
        /// The transaction that performed the operation.
        txn: Txn,
        /// The item that was read or written.
        item: Item,
        /// The value that was read or written.
        value: Value,
        /// The other transaction involved, for example the writer of an aborted version.
        other: Option<Txn>,
    },
}

/// A class of anomalies that occurs in a history, with one witness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomaly {
    /// The class.
    pub class: Class,
    /// The order that the cycle needs besides the dependencies: session order, real-time order or
    /// neither.
    pub through: Option<EdgeKind>,
    /// The number of occurrences. For cycles: the number of anti-dependencies (or, for classes
    /// without any, of dependencies) that close one.
    pub count: usize,
    /// A shortest witness.
    pub witness: Witness,
}

impl Anomaly {
    /// The name of the class, with `-session` or `-realtime` if the cycle needs that order.
    pub fn name(&self) -> String {
        match self.through {
            Some(EdgeKind::Session) => format!("{}-session", self.class),
            // These two classes involve real time by definition.
            Some(_) if !matches!(self.class, GSIa | GSIb) => format!("{}-realtime", self.class),
            _ => self.class.name().into(),
        }
    }
}

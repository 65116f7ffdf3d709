//! What can be wrong with a history, by class.

use crate::history::{Item, Txn, Value};
use std::fmt;

/// A class of anomalies. `docs/anomalies.md` defines each with an example.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
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
}

use Class::*;

impl Class {
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

    /// What it is, in a line.
    pub fn meaning(self) -> &'static str {
        match self {
            DuplicateVersions => "the same value was written to an item twice",
            IncompatibleOrders => "two reads saw the versions of an item in different orders",
            ThinAirRead => "a read saw a value that nobody wrote",
            FutureRead => "a transaction read what it wrote itself only later",
            Internal => "a transaction did not see what it had written itself",
            G1a => "aborted read: a read saw a write that was rolled back",
            G1b => "intermediate read: a read saw a write that its own transaction then replaced",
            DirtyUpdate => "a committed version was built on one that was rolled back",
            G0 => "write cycle: transactions overwrote each other in different orders",
            G1c => "circular information flow: each read from or overwrote the one before",
            GCursor => "a version was read, replaced by another, and overwritten by its reader",
            LostUpdate => "two updated an item from the same version of it: one update is lost",
            NonRepeatableRead => "a transaction saw an item change between two reads",
            ReadSkew => "a transaction saw one write of another, but not a second one",
            ReadWriteSkew => {
                "a transaction read what another replaced, and overwrote something else of it"
            }
            GSingle => "a cycle with one anti-dependency: no snapshot explains the reads",
            GSIa => "interference: a transaction depends on one that began after its end",
            GSIb => "missed effects: a cycle with one anti-dependency and the order of time",
            GNonadjacent => "a cycle in which no two anti-dependencies follow each other",
            WriteSkew => "each of two transactions read what the other replaced",
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

/// What orders two transactions that stand in a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// One ran after the other in the same session.
    Session,
    /// One had ended before the other began.
    Time,
    /// Read dependency: the second read what the first wrote.
    Wr,
    /// Write dependency: the second overwrote what the first wrote.
    Ww,
    /// Anti-dependency: the second overwrote what the first read.
    Rw,
    /// The second's predicate read saw what the first changed about the predicate.
    PredicateWr,
    /// The second changed what the first's predicate read had found.
    PredicateRw,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Session => "so",
            Kind::Time => "rt",
            Kind::Wr => "wr",
            Kind::Ww => "ww",
            Kind::Rw => "rw",
            Kind::PredicateWr => "predicate-wr",
            Kind::PredicateRw => "predicate-rw",
        }
    }

    pub fn is_anti_dependency(self) -> bool {
        matches!(self, Kind::Rw | Kind::PredicateRw)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An edge of a witness: why `from` comes before `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: Txn,
    pub to: Txn,
    pub kind: Kind,
    /// The item that both touched; none for orders of sessions and times.
    pub item: Option<Item>,
    /// The predicate of a predicate dependency, by name.
    pub predicate: Option<String>,
    /// The version that `from` wrote or read, where one is known.
    pub from_value: Option<Value>,
    /// The version that `to` wrote or read, where one is known.
    pub to_value: Option<Value>,
    /// The statements that did it, where the history has texts.
    pub from_statement: Option<String>,
    pub to_statement: Option<String>,
    pub certainty: Certainty,
}

/// Why an edge is certain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Certainty {
    /// The history shows it.
    Observed,
    /// No read shows the order of these two versions, but the opposite would close a cycle
    /// with these edges.
    Otherwise(Vec<Edge>),
    /// This is that opposite: it is assumed only to be refuted.
    Assumed,
    /// No read shows it, and a search through all orders found none without it.
    Searched,
}

/// What shows an anomaly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Witness {
    /// Transactions each of which comes before the next, and the last before the first.
    Cycle(Vec<Edge>),
    /// A single read or write that is wrong by itself: whose, of what, and of which
    /// other transaction it tells.
    Operation { txn: Txn, item: Item, value: Value, other: Option<Txn> },
}

/// A class that was found, and one that shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomaly {
    pub class: Class,
    /// What besides the data closes the cycle: the order of sessions, or that of time.
    pub through: Option<Kind>,
    /// How many were found; for cycles, the anti-dependencies (or, where there are
    /// none, the dependencies) that close one.
    pub count: usize,
    pub witness: Witness,
}

impl Anomaly {
    /// The class, with `-session` or `-realtime` where the cycle needs that order.
    pub fn name(&self) -> String {
        match self.through {
            Some(Kind::Session) => format!("{}-session", self.class),
            // Those two are about time by their definition.
            Some(_) if !matches!(self.class, GSIa | GSIb) => format!("{}-realtime", self.class),
            _ => self.class.name().into(),
        }
    }
}

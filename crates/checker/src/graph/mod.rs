//! Adya's dependencies between committed transactions, as far as the history
//! shows them, in one array.

mod components;
mod edges;
mod search;

pub(crate) use components::{Components, Neighbours};
pub(crate) use search::{Anti, Plain, Search, Split};

use crate::anomaly::Kind;

/// A set of kinds of edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kinds(u8);

impl Kinds {
    pub(crate) const NONE: Kinds = Kinds(0);
    pub(crate) const WW: Kinds = Kinds(1 << Kind::Ww as u8);
    pub(crate) const DEPENDENCIES: Kinds =
        Kinds(1 << Kind::Ww as u8 | 1 << Kind::Wr as u8 | 1 << Kind::PredicateWr as u8);
    pub(crate) const READ: Kinds = Kinds(1 << Kind::Wr as u8 | 1 << Kind::PredicateWr as u8);
    pub(crate) const ITEM_ANTI: Kinds = Kinds(1 << Kind::Rw as u8);
    pub(crate) const ANTI: Kinds = Kinds(1 << Kind::Rw as u8 | 1 << Kind::PredicateRw as u8);
    pub(crate) const SESSION: Kinds = Kinds(1 << Kind::Session as u8);
    pub(crate) const TIME: Kinds = Kinds(1 << Kind::Time as u8);

    pub(crate) const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    pub(crate) fn includes(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// An edge to another node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Arc {
    pub to: u32,
    /// The kind, and the item or the number of the predicate read.
    label: u32,
}

const KIND_BITS: u32 = 3;
const KINDS: [Kind; 7] =
    [Kind::Session, Kind::Time, Kind::Wr, Kind::Ww, Kind::Rw, Kind::PredicateWr, Kind::PredicateRw];

impl Arc {
    pub(crate) fn new(to: u32, kind: Kind, about: u32) -> Arc {
        debug_assert!(about < 1 << (32 - KIND_BITS), "items have numbers of 29 bits");
        Arc { to, label: about << KIND_BITS | kind as u32 }
    }

    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.label & ((1 << KIND_BITS) - 1)) as usize]
    }

    /// The item of a dependency, or the number of the predicate read.
    pub(crate) fn about(self) -> u32 {
        self.label >> KIND_BITS
    }
}

/// The dependencies. Nodes from `nodes` on stand for moments of time: whoever ended
/// before one points to it, and it points to whoever began after it.
pub(crate) struct Graph {
    pub nodes: u32,
    pub starts: Vec<u32>,
    pub arcs: Vec<Arc>,
}

impl Graph {
    pub(crate) fn from(&self, node: u32) -> &[Arc] {
        &self.arcs[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// All nodes, those of time among them.
    pub(crate) fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }
}

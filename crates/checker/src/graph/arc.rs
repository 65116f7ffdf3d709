//! The nodes and edges of the dependency graph.

use crate::anomaly::EdgeKind;
use crate::digraph::Rows;

/// A set of edge kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EdgeKinds(u8);

impl EdgeKinds {
    pub(crate) const NONE: EdgeKinds = EdgeKinds(0);
    pub(crate) const WW: EdgeKinds = EdgeKinds(1 << EdgeKind::Ww as u8);
    pub(crate) const DEPENDENCIES: EdgeKinds = EdgeKinds(
        1 << EdgeKind::Ww as u8 | 1 << EdgeKind::Wr as u8 | 1 << EdgeKind::PredicateWr as u8,
    );
    pub(crate) const READ: EdgeKinds =
        EdgeKinds(1 << EdgeKind::Wr as u8 | 1 << EdgeKind::PredicateWr as u8);
    pub(crate) const ITEM_ANTI: EdgeKinds = EdgeKinds(1 << EdgeKind::Rw as u8);
    pub(crate) const ANTI: EdgeKinds =
        EdgeKinds(1 << EdgeKind::Rw as u8 | 1 << EdgeKind::PredicateRw as u8);
    pub(crate) const SESSION: EdgeKinds = EdgeKinds(1 << EdgeKind::Session as u8);
    pub(crate) const TIME: EdgeKinds = EdgeKinds(1 << EdgeKind::RealTime as u8);

    pub(crate) const fn union(self, other: EdgeKinds) -> EdgeKinds {
        EdgeKinds(self.0 | other.0)
    }

    pub(crate) fn includes(self, other: EdgeKinds) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn has(self, kind: EdgeKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// An edge to another node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Arc {
    pub to: u32,
    /// The kind (low bits), and the item or the number of the predicate read.
    label: u32,
}

const KIND_BITS: u32 = 3;
const KINDS: [EdgeKind; 7] = [
    EdgeKind::Session,
    EdgeKind::RealTime,
    EdgeKind::Wr,
    EdgeKind::Ww,
    EdgeKind::Rw,
    EdgeKind::PredicateWr,
    EdgeKind::PredicateRw,
];

impl Arc {
    pub(crate) fn new(to: u32, kind: EdgeKind, subject: u32) -> Arc {
        debug_assert!(subject < 1 << (32 - KIND_BITS), "items have numbers of 29 bits");
        Arc { to, label: subject << KIND_BITS | kind as u32 }
    }

    pub(crate) fn kind(self) -> EdgeKind {
        KINDS[(self.label & ((1 << KIND_BITS) - 1)) as usize]
    }

    /// The item of a dependency, or the number of the predicate read.
    pub(crate) fn subject(self) -> u32 {
        self.label >> KIND_BITS
    }
}

/// The dependencies. Nodes from `nodes` on are points in time: a transaction that ended at one
/// points to it, and it points to those that began after it.
pub(crate) struct Graph {
    /// The number of transactions.
    pub nodes: u32,
    /// One row per node: its outgoing edges.
    pub arcs: Rows<Arc>,
}

impl Graph {
    /// The outgoing edges of a node.
    pub(crate) fn arcs_from(&self, node: u32) -> &[Arc] {
        self.arcs.of(node)
    }

    /// The number of nodes, including those for points in time.
    pub(crate) fn len(&self) -> u32 {
        self.arcs.len() as u32
    }
}

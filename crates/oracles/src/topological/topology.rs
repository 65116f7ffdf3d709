//! The graph of a case, and what came of it.

use super::graph::{Graph, Kind};
use isolde_model::History;
use isolde_reference::cause::Cause;
use std::collections::BTreeMap;

/// The report of the topological oracle about one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    pub graph: Graph,
    /// The order that showed a difference, by places in the graph.
    pub order: Vec<usize>,
    pub orders: usize,
    /// Edges that stood on no more than a common table.
    pub spared: u64,
    pub edges: BTreeMap<Kind, u64>,
    /// Runs that were made because a statement waited, and because of a cycle.
    pub rounds: Rounds,
    /// Statements that could not take part, and why.
    pub left_out: Vec<(String, String)>,
    /// Why nothing is said of the case.
    pub unknown: Option<String>,
    /// What the rules of the engine say of a difference.
    pub cause: Option<Cause>,
    /// The run that differs, as if nothing had been added to it.
    pub run: Option<History>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    pub blocked: u64,
    pub cyclic: u64,
}

impl Topology {
    pub(super) fn label(&self, node: usize) -> &str {
        &self.graph.nodes[node].label
    }

    /// The labels of the statements in the order that showed a difference.
    pub(super) fn order_labels(&self) -> Vec<&str> {
        self.order.iter().map(|node| self.label(*node)).collect()
    }
}

//! Builds the cycle that proves a violation of a weak level, once the violation is known.

use super::known_edges::{known_edges, known_version_orders};
use super::types::InferredEdge;
use crate::anomaly::{Certainty, Edge, EdgeKind};
use crate::digraph::{Components, Rows};
use crate::resolve::ResolvedHistory;
use crate::types::INITIAL;
use crate::witness::dependency;
use std::collections::VecDeque;

/// What an edge stands for.
#[derive(Clone, Copy)]
enum EdgeLabel {
    Known(EdgeKind, u32),
    /// The number of the inferred edge.
    Inferred(u32),
}

impl Default for EdgeLabel {
    fn default() -> EdgeLabel {
        EdgeLabel::Inferred(0)
    }
}

/// The edges that lead to each transaction. Reads are enumerated where they are stored: they are
/// most of the edges, and a path uses few of them.
struct IncomingEdges<'a, 'h> {
    resolved: &'a ResolvedHistory<'h>,
    /// The predecessor in the session, or [`INITIAL`]; empty if session order is not required.
    in_session: Vec<u32>,
    /// All other edges, by the node that they lead to.
    others: Rows<(u32, EdgeLabel)>,
}

impl<'a, 'h> IncomingEdges<'a, 'h> {
    /// Reads, session order if `sessions`, and these edges.
    fn of(
        resolved: &'a ResolvedHistory<'h>,
        sessions: bool,
        others: &[(u32, u32, EdgeLabel)],
    ) -> Self {
        let by_target = others.iter().map(|(from, to, label)| (*to, (*from, *label)));
        let rows = Rows::from_pairs(resolved.nodes(), by_target);
        let in_session = if sessions { resolved.session_predecessors() } else { Vec::new() };
        IncomingEdges { resolved, in_session, others: rows }
    }

    fn each(&self, node: u32, mut visit: impl FnMut(u32, EdgeLabel)) {
        for read in self.resolved.reads.of(node) {
            visit(read.writer, EdgeLabel::Known(EdgeKind::Wr, read.item));
        }
        if let Some(before) = self.in_session.get(node as usize) {
            visit(*before, EdgeLabel::Known(EdgeKind::Session, 0));
        }
        for (from, label) in self.others.of(node) {
            visit(*from, *label);
        }
    }

    /// A shortest path, searched from its end; empty if there is none.
    fn shortest_path(&self, begin: u32, end: u32) -> Vec<(u32, u32, EdgeLabel)> {
        let mut onwards: Vec<Option<(u32, EdgeLabel)>> = vec![None; self.resolved.nodes()];
        let mut queue = VecDeque::from([end]);
        while let Some(node) = queue.pop_front() {
            self.each(node, |from, label| {
                let passed = |from: u32| from == end || onwards[from as usize].is_some();
                if from != INITIAL && !passed(from) {
                    onwards[from as usize] = Some((node, label));
                    queue.push_back(from);
                }
            });
            if onwards[begin as usize].is_some() {
                break;
            }
        }
        let (mut path, mut node) = (Vec::new(), begin);
        while let Some((to, label)) = onwards[node as usize] {
            path.push((node, to, label));
            node = to;
        }
        path
    }
}

/// The edges of a cycle, given the inferred edges in one, or the one edge that contradicts the
/// initial version.
pub(crate) fn cycle(
    resolved: &ResolvedHistory<'_>,
    inferred: &[InferredEdge],
    sessions: bool,
) -> Vec<Edge> {
    let reads = IncomingEdges::of(resolved, sessions, &[]);
    let justification = |inferred: &InferredEdge| -> Vec<Edge> {
        // The earlier version was visible to the reader, which read another one.
        let path = reads.shortest_path(inferred.earlier, inferred.reader);
        let mut edges: Vec<Edge> = path
            .into_iter()
            .filter_map(|(from, to, label)| match label {
                EdgeLabel::Known(kind, item) => Some(dependency(resolved, (from, to), kind, item)),
                EdgeLabel::Inferred(_) => None,
            })
            .collect();
        edges.push(dependency(
            resolved,
            (inferred.reader, inferred.earlier),
            EdgeKind::Rw,
            inferred.item,
        ));
        edges
    };
    let first = match inferred.first() {
        Some(inferred) if inferred.later == INITIAL => return justification(inferred),
        Some(inferred) => Some((inferred.earlier, inferred.later, EdgeLabel::Inferred(0))),
        // wr, session order and known version orders alone have a cycle.
        None => known_in_a_cycle(resolved, sessions),
    };
    let Some(first) = first else { return Vec::new() };
    let mut others = Vec::new();
    known_version_orders(resolved, |from, to, item| {
        others.push((from, to, EdgeLabel::Known(EdgeKind::Ww, item)))
    });
    others.extend(
        inferred.iter().zip(0..).map(|(inferred, number)| {
            (inferred.earlier, inferred.later, EdgeLabel::Inferred(number))
        }),
    );
    let path = IncomingEdges::of(resolved, sessions, &others).shortest_path(first.1, first.0);
    let edge = |(from, to, label)| match label {
        EdgeLabel::Known(kind, item) => dependency(resolved, (from, to), kind, item),
        EdgeLabel::Inferred(number) => {
            let inferred = &inferred[number as usize];
            let certainty = Certainty::Inferred(justification(inferred));
            Edge { certainty, ..dependency(resolved, (from, to), EdgeKind::Ww, inferred.item) }
        }
    };
    [first].into_iter().chain(path).map(edge).collect()
}

/// A known edge that lies on a cycle of known edges.
fn known_in_a_cycle(
    resolved: &ResolvedHistory<'_>,
    sessions: bool,
) -> Option<(u32, u32, EdgeLabel)> {
    let mut edges = Vec::new();
    known_edges(resolved, sessions, |from, to, _, _| edges.push((from, to)));
    let components = Components::of(&Rows::of_edges(resolved.nodes(), edges));
    let mut found = None;
    known_edges(resolved, sessions, |from, to, kind, item| {
        if found.is_none() && components.of[from as usize] == components.of[to as usize] {
            found = Some((from, to, EdgeLabel::Known(kind, item)));
        }
    });
    found
}

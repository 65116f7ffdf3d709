//! Extends known version orders to total ones.
//!
//! Consistent view and cursor stability have no exact procedure here when version orders are
//! unknown. One total order that is consistent with all certain edges is tried: if the level
//! holds with it, it holds. The converse is not true, so a failure proves nothing.

use crate::digraph::{Components, Rows};
use crate::graph::{EdgeKinds, FilteredView, Graph};
use crate::predicate::PredicateEdges;
use crate::resolve::{ResolvedHistory, UNKNOWN_POSITION};
use crate::types::INITIAL;

/// The history with total version orders: unknown parts follow `positions`. A transaction that
/// overwrote the version it had read is placed directly after that version.
pub(crate) fn apply<'h>(resolved: &ResolvedHistory<'h>, positions: &[u32]) -> ResolvedHistory<'h> {
    let mut order = Rows::default();
    let mut next: Vec<(u32, u32)> = Vec::new();
    let mut heads = Vec::new();
    for item in 0..resolved.order.len() as u32 {
        order.all.extend_from_slice(resolved.order.of(item));
        let tail = resolved.tail.of(item);
        if !tail.is_empty() {
            next.clear();
            heads.clear();
            for writer in tail {
                let read = resolved.reads.of(*writer).iter().find(|read| read.item == item);
                match read {
                    Some(read)
                        if read.writer != INITIAL && tail.binary_search(&read.writer).is_ok() =>
                    {
                        next.push((read.writer, *writer));
                    }
                    // A reader of the last known version directly follows it.
                    Some(_) => heads.push((0, *writer)),
                    None => heads.push((positions[*writer as usize] + 1, *writer)),
                }
            }
            next.sort_unstable();
            heads.sort_unstable();
            let mut placed = Vec::new();
            for (_, head) in &heads {
                placed.push(*head);
                // Depth first, so that each chain stays together.
                let mut at = placed.len() - 1;
                while at < placed.len() {
                    let from = next.partition_point(|(before, _)| *before < placed[at]);
                    let after = next[from..].iter().take_while(|(before, _)| *before == placed[at]);
                    let followers: Vec<u32> = after.map(|(_, writer)| *writer).collect();
                    placed.extend(followers);
                    at += 1;
                }
            }
            order.all.extend(placed);
        }
        order.end_row();
    }
    resolved.with_order(order)
}

/// The position of each node in an order that respects all certain dependencies, and the
/// anti-dependencies too if possible; none if the dependencies have a cycle.
pub(crate) fn topological_positions(
    resolved: &ResolvedHistory<'_>,
    predicates: &PredicateEdges,
) -> Option<Vec<u32>> {
    let kinds = EdgeKinds::DEPENDENCIES.union(EdgeKinds::ANTI);
    let graph = Graph::of(resolved, predicates, kinds);
    let all = Components::of(&FilteredView { graph: &graph, kinds });
    let dependencies =
        Components::of(&FilteredView { graph: &graph, kinds: EdgeKinds::DEPENDENCIES });
    if !dependencies.is_acyclic() {
        return None;
    }
    // Components are numbered in reverse topological order.
    let mut nodes: Vec<u32> = (0..graph.nodes).collect();
    nodes.sort_by_key(|node| {
        let node = *node as usize;
        (std::cmp::Reverse(all.of[node]), std::cmp::Reverse(dependencies.of[node]))
    });
    let mut positions = vec![0; nodes.len()];
    for (position, node) in nodes.into_iter().enumerate() {
        positions[node as usize] = position as u32;
    }
    Some(positions)
}

impl<'h> ResolvedHistory<'h> {
    /// The same history with these total version orders.
    fn with_order(&self, order: Rows<u32>) -> ResolvedHistory<'h> {
        let mut reads = self.reads.clone();
        let mut positions = Rows::default();
        for item in 0..order.len() as u32 {
            let begin = positions.all.len();
            positions.all.extend(order.of(item).iter().copied().zip(1..));
            positions.all[begin..].sort_unstable();
            positions.end_row();
        }
        for read in reads.all.iter_mut().filter(|read| read.position == UNKNOWN_POSITION) {
            let of_item = positions.of(read.item);
            let at = of_item.binary_search_by_key(&read.writer, |(node, _)| *node);
            read.position = at.map_or(UNKNOWN_POSITION, |at| of_item[at].1);
        }
        let mut tail = Rows::default();
        for _ in 0..order.len() {
            tail.end_row();
        }
        ResolvedHistory {
            history: self.history,
            txns: self.txns.clone(),
            reads,
            writes: self.writes.clone(),
            searched: vec![false; order.len()],
            order,
            tail,
            predicate_reads: self.predicate_reads.clone(),
            anomalies: Default::default(),
            ambiguous: self.ambiguous,
        }
    }
}

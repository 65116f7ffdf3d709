//! Adya's predicate dependencies ("Weak Consistency", MIT 1999).
//!
//! A predicate read depends on the last write, up to the version it observed, that changed
//! whether the item satisfies the predicate; the next write that changes it depends on the
//! read. Writes that do not change the matches make no edge, so that no phantom is invented.
//!
//! The module does not evaluate predicates: the history says which versions satisfy them. Items
//! whose version order is unknown are skipped and counted as unplaced.

use crate::anomaly::EdgeKind;
use crate::history::{Item, Value, Version};
use crate::resolve::{PredicateRead, ResolvedHistory};
use crate::types::INITIAL;

/// The number of a predicate read, the node that comes first, the one that comes second, and the
/// kind of the edge.
pub(crate) type PredicateEdge = (u32, u32, u32, EdgeKind);

/// The predicate dependencies of a history.
#[derive(Debug, Default)]
pub(crate) struct PredicateEdges {
    edges: Vec<PredicateEdge>,
    /// The number of predicate reads for which it is unclear which version of some item they
    /// observed: several versions do not satisfy the predicate.
    pub unplaced: usize,
}

impl PredicateEdges {
    pub(crate) fn of(resolved: &ResolvedHistory<'_>) -> PredicateEdges {
        let mut all = PredicateEdges::default();
        for (number, read) in resolved.predicate_reads.iter().enumerate() {
            let predicate = resolved.history.ops[read.op as usize].item;
            let satisfying = &resolved.history.satisfying[predicate as usize];
            let mut items: Vec<u32> = satisfying.iter().map(|(item, _)| item.0).collect();
            items.extend(read.matched.iter().map(|(item, _)| *item));
            items.sort_unstable();
            items.dedup();
            let mut placed = true;
            for item in items {
                placed &= all.of_item(resolved, (read, number as u32), item, satisfying);
            }
            all.unplaced += usize::from(!placed);
        }
        all
    }

    /// Adds the edges of one read and one item. False if it is unclear which version it observed.
    fn of_item(
        &mut self,
        resolved: &ResolvedHistory<'_>,
        (read, number): (&PredicateRead, u32),
        item: u32,
        satisfying: &[Version],
    ) -> bool {
        if resolved.last_write(read.node, item).is_some() {
            // Whether it observed its own version depends on the order of its statements.
            return true;
        }
        let order = resolved.order.of(item);
        if !resolved.tail.of(item).is_empty() {
            return false;
        }
        let satisfies = |position: usize| {
            let writer = if position == 0 { INITIAL } else { order[position - 1] };
            let value = resolved.value_of(writer, item).unwrap_or(Value::INITIAL);
            satisfying.binary_search(&(Item(item), value)).is_ok()
        };
        // Maximal runs of versions that all satisfy the predicate or all do not: where each begins.
        let mut runs = vec![0];
        for position in 1..=order.len() {
            if satisfies(position) != satisfies(position - 1) {
                runs.push(position);
            }
        }
        let observed = read.matched.iter().find(|(of, _)| *of == item).map(|(_, writer)| *writer);
        let run = match observed {
            Some(writer) => {
                let position = match writer {
                    INITIAL => 0,
                    _ => match order.iter().position(|node| *node == writer) {
                        Some(position) => position + 1,
                        None => return false,
                    },
                };
                runs.partition_point(|begin| *begin <= position) - 1
            }
            None => {
                let mut candidates = (0..runs.len()).filter(|run| !satisfies(runs[*run]));
                match (candidates.next(), candidates.next()) {
                    (Some(run), None) => run,
                    _ => return false,
                }
            }
        };
        if runs[run] > 0 {
            self.add(order[runs[run] - 1], read.node, EdgeKind::PredicateWr, number);
        }
        if let Some(next) = runs.get(run + 1) {
            self.add(read.node, order[next - 1], EdgeKind::PredicateRw, number);
        }
        true
    }

    fn add(&mut self, from: u32, to: u32, kind: EdgeKind, number: u32) {
        if from != to {
            self.edges.push((number, from, to, kind));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// All edges.
    pub(crate) fn edges(&self) -> impl Iterator<Item = PredicateEdge> + '_ {
        self.edges.iter().copied()
    }
}

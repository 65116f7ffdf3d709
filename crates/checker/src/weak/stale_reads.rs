//! Stale reads under a linear order. Only they can lead to an inferred edge that contradicts it: a
//! read of an item that another transaction wrote later in the order, but before the reader.

use super::linear_order::LinearOrder;
use super::types::InferredEdge;
use crate::digraph::Rows;
use crate::resolve::{Read, ResolvedHistory};
use crate::types::INITIAL;

/// The number of reads and writers visited per read, on average, before the check gives up.
const BUDGET_PER_READ: usize = 32;

/// A read that does not observe the last version before its reader.
pub(super) struct StaleRead {
    pub reader: u32,
    pub read: Read,
}

/// Why the visit of stale reads ended early.
pub(super) enum Interruption {
    Violation(InferredEdge),
    OutOfBudget,
}

/// The stale reads, in the linear order.
pub(super) fn stale_reads(resolved: &ResolvedHistory<'_>, order: &LinearOrder) -> Vec<StaleRead> {
    let mut last_writer = vec![INITIAL; resolved.history.item_count()];
    let mut stale = Vec::new();
    for node in &order.nodes {
        for read in resolved.reads.of(*node) {
            if last_writer[read.item as usize] != read.writer {
                stale.push(StaleRead { reader: *node, read: *read });
            }
        }
        for write in resolved.writes.of(*node) {
            last_writer[write.item as usize] = *node;
        }
    }
    stale
}

/// One row per item: its writers, in the linear order.
fn writers_in_order(resolved: &ResolvedHistory<'_>, order: &LinearOrder) -> Rows<u32> {
    let by_item = |node: u32| resolved.writes.of(node).iter().map(move |write| (write.item, node));
    Rows::from_pairs(resolved.history.item_count(), order.nodes.iter().copied().flat_map(by_item))
}

/// Finds the writers between a version that was read and its reader.
pub(super) struct IntermediateWriters<'a, 'h> {
    pub resolved: &'a ResolvedHistory<'h>,
    pub order: &'a LinearOrder,
    writers: Rows<u32>,
    budget: usize,
}

impl IntermediateWriters<'_, '_> {
    pub(super) fn of<'a, 'h>(
        resolved: &'a ResolvedHistory<'h>,
        order: &'a LinearOrder,
    ) -> IntermediateWriters<'a, 'h> {
        let writers = writers_in_order(resolved, order);
        let mut intermediate = IntermediateWriters { resolved, order, writers, budget: 0 };
        intermediate.begin();
        intermediate
    }

    /// Starts a new visit of all stale reads, with a full budget.
    pub(super) fn begin(&mut self) {
        self.budget = BUDGET_PER_READ * self.resolved.reads.all.len();
    }

    /// Infers an edge from each writer in between that is visible, at a cost of `cost` reads each.
    pub(super) fn each(
        &mut self,
        StaleRead { reader, read }: &StaleRead,
        cost: usize,
        inferred: &mut Vec<InferredEdge>,
        is_visible: impl Fn(u32) -> bool,
    ) -> Result<(), Interruption> {
        let position = |node: u32| self.order.position[node as usize];
        let writers = self.writers.of(read.item);
        let end = writers.partition_point(|writer| position(*writer) < position(*reader));
        for writer in writers[..end].iter().rev() {
            if read.writer != INITIAL && position(*writer) <= position(read.writer) {
                break;
            }
            self.budget = self.budget.checked_sub(1 + cost).ok_or(Interruption::OutOfBudget)?;
            if is_visible(*writer) {
                let (earlier, later) = (*writer, read.writer);
                let new = InferredEdge { earlier, later, item: read.item, reader: *reader };
                if later == INITIAL {
                    return Err(Interruption::Violation(new));
                }
                inferred.push(new);
            }
        }
        Ok(())
    }
}

pub(super) fn session_of(resolved: &ResolvedHistory<'_>, node: u32) -> u32 {
    resolved.history.session_of(resolved.txns[node as usize]).0
}

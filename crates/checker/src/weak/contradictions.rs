//! Inferred edges that contradict a linear order.

use super::linear_order::LinearOrder;
use super::stale_reads::{IntermediateWriters, Interruption, StaleRead, session_of, stale_reads};
use super::types::{InferredEdge, Visibility};
use super::vector_clocks;
use crate::resolve::ResolvedHistory;

/// The inferred edges that contradict a linear order.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Contradictions {
    /// These versions precede others that come before them in the order.
    Edges(Vec<InferredEdge>),
    /// A version precedes the initial one: no order is possible.
    Violation(InferredEdge),
    /// The budget ran out.
    OutOfBudget,
}

/// Infers the edges that point backwards in the order, each pair of versions once. At most `kept`
/// clock entries are in memory at a time.
pub(super) fn contradicting_edges(
    resolved: &ResolvedHistory<'_>,
    visibility: Visibility,
    sessions: bool,
    order: &LinearOrder,
    kept: usize,
) -> Contradictions {
    let mut inferred = Vec::new();
    match collect(resolved, visibility, sessions, order, kept, &mut inferred) {
        Ok(()) => {}
        Err(Interruption::Violation(edge)) => return Contradictions::Violation(edge),
        Err(Interruption::OutOfBudget) => return Contradictions::OutOfBudget,
    }
    inferred.sort_unstable_by_key(|edge| (edge.earlier, edge.later, edge.reader, edge.item));
    inferred.dedup_by_key(|edge| (edge.earlier, edge.later));
    Contradictions::Edges(inferred)
}

/// Collects the edges that contradict the order.
fn collect(
    resolved: &ResolvedHistory<'_>,
    visibility: Visibility,
    sessions: bool,
    order: &LinearOrder,
    kept: usize,
    inferred: &mut Vec<InferredEdge>,
) -> Result<(), Interruption> {
    let stale = stale_reads(resolved, order);
    if stale.is_empty() {
        return Ok(());
    }
    let mut intermediate = IntermediateWriters::of(resolved, order);
    if visibility == Visibility::Causal {
        return vector_clocks::infer_by_clocks(&mut intermediate, &stale, kept, inferred);
    }
    for stale in &stale {
        let StaleRead { reader, read } = stale;
        let reads = resolved.reads.of(*reader);
        let upto = match visibility {
            Visibility::Monotonic => reads.partition_point(|other| other.op < read.op),
            _ => reads.len(),
        };
        let session = session_of(resolved, *reader);
        let by_session = sessions && visibility == Visibility::Atomic;
        intermediate.each(stale, upto, inferred, |writer| {
            by_session && session_of(resolved, writer) == session
                || reads[..upto].iter().any(|other| other.writer == writer)
        })?;
    }
    Ok(())
}

//! Decides monotonic atomic view, read atomic and causal consistency without knowing version
//! orders, after Biswas and Enea ("On the Complexity of Checking Transactional Consistency",
//! OOPSLA 2019) and AWDIT (PLDI 2025).
//!
//! Each level has one inference rule of the same form: if a reader observed x from T1, and T2,
//! which also wrote x, is visible to the reader, then T2's version precedes T1's in the version
//! order: an inferred ww edge. The level holds if the inferred edges, together with wr, session
//! order and known version orders, are acyclic. The rules differ in what is visible
//! ([`Visibility`]).
//!
//! Two procedures decide that. The fast one looks for a linear order of all transactions that
//! no inferred edge contradicts (`linear_order`, `contradictions`), and repairs it a few times; the
//! complete one infers all edges (`inference`, `causal`) and looks for a cycle. Predicates and
//! reads with several possible writers are not considered.

mod causal;
mod contradictions;
mod inference;
mod known_edges;
mod linear_order;
mod stale_reads;
#[cfg(test)]
mod tests;
mod types;
mod vector_clocks;
mod witness;

use crate::digraph::{Components, Rows};
use crate::resolve::ResolvedHistory;
use crate::types::INITIAL;
use contradictions::{Contradictions, contradicting_edges};
use inference::for_each_inferred;
use known_edges::known_edges;
use std::collections::HashSet;
use types::InferredEdge;

pub(crate) use linear_order::LinearOrder;
pub(crate) use types::{Outcome, Visibility};
pub(crate) use witness::cycle;

/// How often a linear order is repaired before all edges are inferred instead.
const MAX_REPAIRS: usize = 8;

/// Decides a level.
pub(crate) fn decide(
    resolved: &ResolvedHistory<'_>,
    visibility: Visibility,
    sessions: bool,
) -> Outcome {
    decide_by_linear_order(resolved, visibility, sessions)
        .unwrap_or_else(|| decide_by_full_inference(resolved, visibility, sessions))
}

/// Infers all edges, and looks for a cycle.
fn decide_by_full_inference(
    resolved: &ResolvedHistory<'_>,
    visibility: Visibility,
    sessions: bool,
) -> Outcome {
    let mut edges = Vec::new();
    let mut violation = None;
    let complete = for_each_inferred(resolved, visibility, sessions, |edge| {
        if edge.later == INITIAL {
            violation.get_or_insert(edge);
        } else {
            edges.push((edge.earlier, edge.later));
        }
    });
    if let Some(edge) = violation {
        return Outcome::Violated(vec![edge]);
    }
    if !complete {
        return Outcome::TooManySessions;
    }
    known_edges(resolved, sessions, |from, to, _, _| edges.push((from, to)));
    let components = Components::of(&Rows::of_edges(resolved.nodes(), edges));
    if components.is_acyclic() {
        return Outcome::Holds;
    }
    let mut cyclic = Vec::new();
    for_each_inferred(resolved, visibility, sessions, |edge| {
        if edge.later != INITIAL
            && components.of[edge.earlier as usize] == components.of[edge.later as usize]
        {
            cyclic.push(edge);
        }
    });
    Outcome::Violated(cyclic)
}

/// Looks for a linear order that no inferred edge contradicts: then all edges point the same
/// way, and the level holds. It is violated if the inferred edges that contradict the orders
/// tried so far close a cycle. None if neither was found.
fn decide_by_linear_order(
    resolved: &ResolvedHistory<'_>,
    visibility: Visibility,
    sessions: bool,
) -> Option<Outcome> {
    let Some(mut order) = LinearOrder::of(resolved, sessions) else {
        return Some(Outcome::Violated(Vec::new()));
    };
    let mut inferred: Vec<InferredEdge> = Vec::new();
    for _ in 0..MAX_REPAIRS {
        match contradicting_edges(resolved, visibility, sessions, &order, vector_clocks::KEPT) {
            Contradictions::Edges(more) if more.is_empty() => return Some(Outcome::Holds),
            Contradictions::Edges(more) => inferred.extend(more),
            Contradictions::Violation(edge) => return Some(Outcome::Violated(vec![edge])),
            Contradictions::OutOfBudget => return None,
        }
        match order.repair(resolved, sessions, &inferred) {
            Ok(repaired) => order = repaired,
            Err(cycle) => {
                let steps = cycle.iter().zip(cycle.iter().cycle().skip(1));
                let steps: HashSet<(u32, u32)> = steps.map(|(to, from)| (*from, *to)).collect();
                inferred.retain(|edge| steps.contains(&(edge.earlier, edge.later)));
                return Some(Outcome::Violated(inferred));
            }
        }
    }
    None
}

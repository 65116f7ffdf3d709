//! Reports cycles that the solver or a weak level found; some of their edges may be inferred.

use super::edges::dependency;
use crate::anomaly::{Certainty, Class, Edge, EdgeKind};
use crate::resolve::{ResolvedHistory, all_observed};
use crate::solver::{Dependency, Goal, Justification, Step};

/// Reports the cycle by which the solver refuted all version orders. True if it violates
/// consistent view as well: there, too, a transaction that overwrites the version it read writes
/// the next version, so edges between such versions are certain.
pub(crate) fn record_search_cycle(
    resolved: &mut ResolvedHistory<'_>,
    cycle: &[Step],
    goal: Goal,
) -> bool {
    let edges: Vec<Edge> = cycle.iter().map(|step| edge_of_step(resolved, step)).collect();
    let (class, through) = class_of(&edges);
    if all_observed(&edges) && through.is_none() && class <= Class::GSingle {
        // Cycles without anti-dependencies are found without the solver.
        resolved.anomalies.add_searched(Class::GSingle, None, edges);
        return true;
    }
    // Where the version order is inferred, the reads behind it conflict under every order: the
    // class is the one that violates the level that was decided.
    let class = match goal {
        Goal::SnapshotIsolation => Class::GNonadjacent,
        Goal::Serializable => Class::G2Item,
    };
    record_cycle(resolved, edges, class);
    false
}

/// Reports a cycle under its own class, or under `inferred` if some of its edges are inferred.
/// Returns the order that it needs besides the dependencies.
pub(crate) fn record_cycle(
    resolved: &mut ResolvedHistory<'_>,
    edges: Vec<Edge>,
    inferred: Class,
) -> Option<EdgeKind> {
    let (class, through) = match all_observed(&edges) {
        true => class_of(&edges),
        false => (inferred, orders_used(&edges)),
    };
    resolved.anomalies.add_searched(class, through, edges);
    through
}

/// The real-time or session order that a cycle or the refutations behind it use.
fn orders_used(edges: &[Edge]) -> Option<EdgeKind> {
    let of_edge = |edge: &Edge| match (&edge.certainty, edge.kind) {
        (_, EdgeKind::RealTime) => Some(EdgeKind::RealTime),
        (_, EdgeKind::Session) => Some(EdgeKind::Session),
        (Certainty::Inferred(steps), _) => orders_used(steps),
        _ => None,
    };
    let used: Vec<EdgeKind> = edges.iter().filter_map(of_edge).collect();
    [EdgeKind::RealTime, EdgeKind::Session].into_iter().find(|kind| used.contains(kind))
}

fn edge_of_step(resolved: &ResolvedHistory<'_>, step: &Step) -> Edge {
    let (kind, item) = match step.dependency {
        Dependency::Session => (EdgeKind::Session, 0),
        Dependency::RealTime => (EdgeKind::RealTime, 0),
        Dependency::Wr { item } => (EdgeKind::Wr, item),
        Dependency::Ww { item } => (EdgeKind::Ww, item),
        Dependency::Rw { item, .. } => (EdgeKind::Rw, item),
    };
    let certainty = match &step.justification {
        Justification::Observed => Certainty::Observed,
        Justification::Inferred(steps) => {
            Certainty::Inferred(steps.iter().map(|step| edge_of_step(resolved, step)).collect())
        }
        Justification::Assumed => Certainty::Assumed,
        Justification::Search => Certainty::Searched,
    };
    Edge { certainty, ..dependency(resolved, (step.from, step.to), kind, item) }
}

/// The class of a cycle, by its anti-dependencies and the orders that it needs.
fn class_of(cycle: &[Edge]) -> (Class, Option<EdgeKind>) {
    let has = |kind: EdgeKind| cycle.iter().any(|edge| edge.kind == kind);
    let through = [EdgeKind::RealTime, EdgeKind::Session].into_iter().find(|kind| has(*kind));
    let anti = cycle.iter().filter(|edge| edge.kind.is_anti_dependency()).count();
    let adjacent = (0..cycle.len()).any(|at| {
        let next = &cycle[(at + 1) % cycle.len()];
        cycle[at].kind.is_anti_dependency() && next.kind.is_anti_dependency()
    });
    let in_time = through == Some(EdgeKind::RealTime);
    let class = match anti {
        0 if in_time => Class::GSIa,
        0 if !has(EdgeKind::Wr) && through.is_none() => Class::G0,
        0 => Class::G1c,
        1 if in_time => Class::GSIb,
        1 => Class::GSingle,
        _ if !adjacent => Class::GNonadjacent,
        _ if has(EdgeKind::PredicateRw) => Class::G2,
        _ => Class::G2Item,
    };
    (class, through)
}

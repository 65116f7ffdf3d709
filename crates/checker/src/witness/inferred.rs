//! Cycles that a search or a rule of a weak level came upon: parts of them may be inferred.

use super::edges::dependency;
use crate::anomaly::{Certainty, Class, Edge, Kind};
use crate::joined::{Joined, is_observed};
use crate::registers::{Because, Goal, Order, Step};

/// Reports the cycle by which a search over orders of versions has found that none works. True
/// if it breaks consistent view as well: who overwrites what it has read follows it at once
/// there, too, so what that shows of orders of versions is certain.
pub(crate) fn of_search(joined: &mut Joined<'_>, cycle: &[Step], goal: Goal) -> bool {
    let edges: Vec<Edge> = cycle.iter().map(|step| of_step(joined, step)).collect();
    let (class, through) = class_of(&edges);
    if is_observed(&edges) && through.is_none() && class <= Class::GSingle {
        // Cycles without anti-dependencies are found without a search.
        joined.found.searched(Class::GSingle, None, edges);
        return true;
    }
    // Where the order of versions is inferred, it is the reads behind it that clash, in every
    // order: the class is what breaks the level that was asked for.
    let class = match goal {
        Goal::SnapshotIsolation => Class::GNonadjacent,
        Goal::Serializable => Class::G2Item,
    };
    keep(joined, edges, class);
    false
}

/// Reports a cycle under its class, or under one that is given where parts of it are inferred.
/// Tells which order it needs besides the data.
pub(crate) fn keep(joined: &mut Joined<'_>, edges: Vec<Edge>, inferred: Class) -> Option<Kind> {
    let (class, through) = match is_observed(&edges) {
        true => class_of(&edges),
        false => (inferred, orders_used(&edges)),
    };
    joined.found.searched(class, through, edges);
    through
}

/// The order of time or of sessions, if a cycle or what is behind it needs one.
fn orders_used(edges: &[Edge]) -> Option<Kind> {
    let of_edge = |edge: &Edge| match (&edge.certainty, edge.kind) {
        (_, Kind::Time) => Some(Kind::Time),
        (_, Kind::Session) => Some(Kind::Session),
        (Certainty::Otherwise(steps), _) => orders_used(steps),
        _ => None,
    };
    let used: Vec<Kind> = edges.iter().filter_map(of_edge).collect();
    [Kind::Time, Kind::Session].into_iter().find(|kind| used.contains(kind))
}

fn of_step(joined: &Joined<'_>, step: &Step) -> Edge {
    let (kind, item) = match step.order {
        Order::Session => (Kind::Session, 0),
        Order::Time => (Kind::Time, 0),
        Order::Read { item } => (Kind::Wr, item),
        Order::Overwrite { item } => (Kind::Ww, item),
        Order::Before { item, .. } => (Kind::Rw, item),
    };
    let certainty = match &step.because {
        Because::Observed => Certainty::Observed,
        Because::Opposite(steps) => {
            Certainty::Otherwise(steps.iter().map(|step| of_step(joined, step)).collect())
        }
        Because::Assumed => Certainty::Assumed,
        Because::Search => Certainty::Searched,
    };
    Edge { certainty, ..dependency(joined, (step.from, step.to), kind, item) }
}

/// The class of a cycle, by its anti-dependencies and the orders that it needs.
fn class_of(cycle: &[Edge]) -> (Class, Option<Kind>) {
    let has = |kind: Kind| cycle.iter().any(|edge| edge.kind == kind);
    let through = [Kind::Time, Kind::Session].into_iter().find(|kind| has(*kind));
    let anti = cycle.iter().filter(|edge| edge.kind.is_anti_dependency()).count();
    let next_to_each_other = (0..cycle.len()).any(|at| {
        let next = &cycle[(at + 1) % cycle.len()];
        cycle[at].kind.is_anti_dependency() && next.kind.is_anti_dependency()
    });
    let in_time = through == Some(Kind::Time);
    let class = match anti {
        0 if in_time => Class::GSIa,
        0 if !has(Kind::Wr) && through.is_none() => Class::G0,
        0 => Class::G1c,
        1 if in_time => Class::GSIb,
        1 => Class::GSingle,
        _ if !next_to_each_other => Class::GNonadjacent,
        _ if has(Kind::PredicateRw) => Class::G2,
        _ => Class::G2Item,
    };
    (class, through)
}

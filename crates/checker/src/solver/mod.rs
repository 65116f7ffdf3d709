//! Decides whether some version order makes a history serializable or snapshot isolated, where
//! version orders are unknown or only partly known.
//!
//! Both problems are NP-complete (Papadimitriou 1979; Biswas and Enea, OOPSLA 2019), so there is
//! a [`Budget`] and the answer may be *unknown*. Every *holds* comes with a commit order that
//! `verify` has replayed independently; every *violated* comes with a cycle whose steps carry
//! their justification. Predicates, aborted transactions and reads with several possible
//! writers are not part of a [`Problem`].
//!
//! ```text
//! Problem ─► Versions ─┬► exact (small):  layout ► dag ► saturation ► search ► proof
//!                      └► large: certain_edges ► vector_clocks ► replay ⇄ stall ► unsat_core
//! ```

mod backtrack;
mod certain_edges;
mod dag;
mod exact;
mod large;
mod layout;
mod problem;
mod proof;
mod replay;
mod search;
mod stall;
#[cfg(test)]
mod tests;
mod unsat_core;
mod vector_clocks;
mod verify;
mod versions;
mod wait_lists;

pub use crate::digraph::Rows;
pub use crate::types::{INITIAL, RequiredOrders};
pub use problem::{Budget, Decision, Dependency, Goal, Justification, Problem, Step};

use exact::Outcome;
use versions::Versions;

/// Histories with at most this many transactions are decided pair by pair.
const SMALL: usize = 100;
/// The same, where the procedure for large histories finds no answer.
const MODERATE: usize = 5_000;
/// More pairs of unordered versions than this are not enumerated.
const MOST_PAIRS: usize = 2_000_000;

/// Decides the problem, or reports how much was undecided when the budget ran out.
pub fn decide(
    problem: &Problem,
    goal: Goal,
    required: RequiredOrders,
    budget: &Budget,
) -> Decision {
    answer(problem, goal, required, outcome(problem, goal, required, budget))
}

fn answer(problem: &Problem, goal: Goal, required: RequiredOrders, outcome: Outcome) -> Decision {
    match outcome {
        Outcome::Holds(nodes) => holds(problem, goal, required, &nodes),
        Outcome::Violated(cycle) => Decision::Violated { cycle },
        Outcome::Unknown { open_pairs, transactions } => {
            Decision::Unknown { open_pairs, transactions }
        }
    }
}

/// Session order helps even where it is not required: what holds with it holds without it, and
/// a violation whose steps do not use session order is one without it too.
fn outcome(problem: &Problem, goal: Goal, required: RequiredOrders, budget: &Budget) -> Outcome {
    if problem.session_of.len() <= SMALL {
        let versions = Versions::new(problem);
        return exact::decide(problem, &versions, goal, required, budget, MOST_PAIRS);
    }
    // The exact search is fast on moderate histories, so the other procedure, which is better
    // at histories that satisfy the level, gets a small budget.
    let brief = Budget {
        conflicts: budget.conflicts.min(1_000),
        steps: budget.steps.min(5_000_000),
        stop: budget.stop,
    };
    let moderate = problem.session_of.len() <= MODERATE;
    let for_large = if moderate { &brief } else { budget };
    if !required.sessions && (problem.sessions as usize) < problem.session_of.len() {
        let stricter = RequiredOrders { sessions: true, ..required };
        match large::decide(problem, goal, stricter, for_large) {
            Outcome::Violated(steps) if orders_used(&steps).sessions => {}
            Outcome::Unknown { .. } => {}
            outcome => return outcome,
        }
    }
    match large::decide(problem, goal, required, for_large) {
        Outcome::Unknown { .. } if moderate => {
            let versions = Versions::new(problem);
            exact::decide(problem, &versions, goal, required, budget, MOST_PAIRS)
        }
        outcome => outcome,
    }
}

/// The orders that a cycle uses besides the dependencies: levels that require only these are
/// violated by it, too.
pub(crate) fn orders_used(steps: &[Step]) -> RequiredOrders {
    let mut orders_used = RequiredOrders::default();
    for step in steps {
        let inside = match &step.justification {
            Justification::Inferred(steps) => self::orders_used(steps),
            Justification::Search => RequiredOrders { sessions: true, times: true },
            Justification::Observed | Justification::Assumed => RequiredOrders::default(),
        };
        orders_used.sessions |= inside.sessions || step.dependency == Dependency::Session;
        orders_used.times |= inside.times || step.dependency == Dependency::RealTime;
    }
    orders_used
}

/// The answer *holds*, if the order passes verification.
fn holds(problem: &Problem, goal: Goal, required: RequiredOrders, nodes: &[u32]) -> Decision {
    let is_valid = verify::is_valid(problem, required, &verify::claimed_order(goal, nodes));
    debug_assert!(is_valid, "an order was found that is none");
    let transactions = problem.session_of.len();
    if !is_valid {
        return Decision::Unknown { open_pairs: 0, transactions };
    }
    let mut commit_order = vec![0; transactions];
    let commits = nodes.iter().filter_map(|node| match goal {
        Goal::Serializable => Some(*node),
        Goal::SnapshotIsolation => (node % 2 == 1).then_some(node / 2),
    });
    for (position, txn) in commits.enumerate() {
        commit_order[txn as usize] = position as u32;
    }
    Decision::Holds { commit_order }
}

//! Whether some order of versions makes a history serializable, or snapshot
//! isolated, where the order is not known or not wholly known.

mod certain;
mod clocks;
mod core;
mod dag;
mod exact;
mod large;
mod layout;
mod parked;
mod problem;
mod proof;
mod replay;
mod rewind;
mod search;
mod stall;
#[cfg(test)]
mod tests;
mod verify;
mod versions;

pub use problem::{Because, Budget, Decision, Goal, INITIAL, Keep, Order, Problem, Rows, Step};

use exact::Outcome;
use versions::Versions;

/// Histories of so few transactions are decided pair by pair.
const SMALL: usize = 100;
/// Where the way of large histories finds no answer, so many can still be decided so.
const MODERATE: usize = 5_000;
/// More pairs of unordered versions than this are not written down.
const MOST_PAIRS: usize = 2_000_000;

/// Decides, or says how much stayed open when the budget had run out.
pub fn decide(problem: &Problem, goal: Goal, keep: Keep, budget: &Budget) -> Decision {
    answer(problem, goal, keep, outcome(problem, goal, keep, budget))
}

fn answer(problem: &Problem, goal: Goal, keep: Keep, outcome: Outcome) -> Decision {
    match outcome {
        Outcome::Holds(nodes) => holds(problem, goal, keep, &nodes),
        Outcome::Violated(cycle) => Decision::Violated { cycle },
        Outcome::Unknown { open_pairs, transactions } => {
            Decision::Unknown { open_pairs, transactions }
        }
    }
}

/// Where sessions need not be kept they still help: what holds with them holds without, and
/// so does what is violated by steps of which none is a session's.
fn outcome(problem: &Problem, goal: Goal, keep: Keep, budget: &Budget) -> Outcome {
    if problem.session_of.len() <= SMALL {
        let versions = Versions::new(problem);
        return exact::decide(problem, &versions, goal, keep, budget, MOST_PAIRS);
    }
    // The exact search is quick with moderate histories, so that the other way, which is
    // good at what holds, need not try for long.
    let brief = Budget {
        conflicts: budget.conflicts.min(1_000),
        steps: budget.steps.min(5_000_000),
        stop: budget.stop,
    };
    let moderate = problem.session_of.len() <= MODERATE;
    let for_large = if moderate { &brief } else { budget };
    if !keep.sessions && (problem.sessions as usize) < problem.session_of.len() {
        let stricter = Keep { sessions: true, ..keep };
        match large::decide(problem, goal, stricter, for_large) {
            Outcome::Violated(steps) if needs(&steps).sessions => {}
            Outcome::Unknown { .. } => {}
            outcome => return outcome,
        }
    }
    match large::decide(problem, goal, keep, for_large) {
        Outcome::Unknown { .. } if moderate => {
            let versions = Versions::new(problem);
            exact::decide(problem, &versions, goal, keep, budget, MOST_PAIRS)
        }
        outcome => outcome,
    }
}

/// On which orders besides the dependencies a cycle rests: levels that keep no more than these
/// are violated by it, too.
pub(crate) fn needs(steps: &[Step]) -> Keep {
    let mut needs = Keep::default();
    for step in steps {
        let inside = match &step.because {
            Because::Opposite(steps) => self::needs(steps),
            Because::Search => Keep { sessions: true, times: true },
            Because::Observed | Because::Assumed => Keep::default(),
        };
        needs.sessions |= inside.sessions || step.order == Order::Session;
        needs.times |= inside.times || step.order == Order::Time;
    }
    needs
}

/// The answer yes, if its order stands.
fn holds(problem: &Problem, goal: Goal, keep: Keep, nodes: &[u32]) -> Decision {
    let stands = verify::stands(problem, keep, &verify::witness(goal, nodes));
    debug_assert!(stands, "an order was found that is none");
    let transactions = problem.session_of.len();
    if !stands {
        return Decision::Unknown { open_pairs: 0, transactions };
    }
    let mut commit_order = vec![0; transactions];
    let commits = nodes.iter().filter_map(|node| match goal {
        Goal::Serializable => Some(*node),
        Goal::SnapshotIsolation => (node % 2 == 1).then_some(node / 2),
    });
    for (place, txn) in commits.enumerate() {
        commit_order[txn as usize] = place as u32;
    }
    Decision::Holds { commit_order }
}

//! Decides large histories: depth instead of a clock, inference in one sweep, then a
//! replay that learns.

use super::certain::{Certain, Inferred, renumbered};
use super::clocks;
use super::core::{self, Core};
use super::exact::Outcome;
use super::problem::{Budget, Goal, Keep, Problem, Step};
use super::replay::{Replay, State};
use super::stall::Stall;
use super::versions::Versions;

pub(super) fn decide(problem: &Problem, goal: Goal, keep: Keep, budget: &Budget) -> Outcome {
    let order = {
        let versions = Versions::new(problem);
        let certain = Certain::new(problem, &versions, goal, keep);
        let inferred = Inferred::default();
        if let Some(clash) = versions.clash {
            let core = Core::new(&certain, &inferred).of_transactions(&clash);
            return violated(core, keep, budget);
        }
        match certain.sorted(&inferred) {
            Err(left) => {
                let core = Core::new(&certain, &inferred).of_unsorted(&left);
                return violated(core, keep, budget);
            }
            Ok(sorted) => certain.by_depth(&inferred, &sorted),
        }
    };
    let numbered = renumbered(problem, &order);
    match by_depth(&numbered, goal, keep, budget) {
        Outcome::Holds(mut nodes) => {
            for node in &mut nodes {
                *node = match goal {
                    Goal::Serializable => order[*node as usize],
                    Goal::SnapshotIsolation => 2 * order[*node as usize / 2] + *node % 2,
                };
            }
            Outcome::Holds(nodes)
        }
        Outcome::Violated(mut steps) => {
            core::rename(&mut steps, &order, problem.items);
            Outcome::Violated(steps)
        }
        unknown => unknown,
    }
}

/// Decides a problem whose transactions are numbered by depth.
fn by_depth(problem: &Problem, goal: Goal, keep: Keep, budget: &Budget) -> Outcome {
    let versions = Versions::new(problem);
    let certain = Certain::new(problem, &versions, goal, keep);
    let inferred = Inferred::new(clocks::infer(&certain), problem.session_of.len());
    let sorted = match certain.sorted(&inferred) {
        Ok(sorted) => sorted,
        Err(left) => {
            let core = Core::new(&certain, &inferred).of_unsorted(&left);
            return violated(core, keep, budget);
        }
    };
    let by_rank = certain.by_depth(&inferred, &sorted);
    drop(sorted);
    let mut replay = Replay::new(&certain, &inferred, &by_rank);
    let mut stall = Stall::new(problem.session_of.len());
    loop {
        replay.run();
        if replay.finished() {
            return Outcome::Holds(replay.events);
        }
        let stalls = replay.lessons.len() as u64;
        let spent = stalls > budget.conflicts || replay.steps > budget.steps;
        if spent || stalls % 256 == 255 && budget.stopped() {
            break;
        }
        let lowest = replay.lowest();
        let Some(lesson) = stall.lesson(&replay, lowest) else { break };
        if lesson.choices.is_empty() {
            let core = Core::new(&certain, &inferred).of_lesson(&lesson, &replay.lessons);
            return violated(core, keep, budget);
        }
        replay.learn(lesson);
    }
    let left = replay.state.iter().filter(|state| **state != State::Done).count();
    Outcome::Unknown { open_pairs: 0, transactions: left }
}

fn violated(core: Core, keep: Keep, budget: &Budget) -> Outcome {
    let transactions = core.len();
    let steps: Option<Vec<Step>> = core.decide(keep, budget);
    match steps {
        Some(steps) => Outcome::Violated(steps),
        None => Outcome::Unknown { open_pairs: 0, transactions },
    }
}

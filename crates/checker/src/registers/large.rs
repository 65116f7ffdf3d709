//! Decides large histories: depth instead of a clock, inference in one sweep, then a
//! replay that learns.

use super::certain::{Certain, Inferred, renumbered};
use super::clocks;
use super::core::{self, Core};
use super::exact::Outcome;
use super::problem::{Budget, Goal, Keep, Problem, Step};
use super::replay::{Lesson, Replay, State};
use super::stall::Stall;
use super::versions::Versions;

pub(super) fn decide(problem: &Problem, goal: Goal, keep: Keep, budget: &Budget) -> Outcome {
    let versions = Versions::new(problem);
    let certain = Certain::new(problem, &versions, goal, keep);
    let inferred = Inferred::default();
    if let Some(clash) = versions.clash {
        let core = Core::new(&certain, &inferred).of_transactions(&clash);
        return violated(core, keep, budget);
    }
    let sorted = match certain.sorted(&inferred) {
        Err(left) => {
            let core = Core::new(&certain, &inferred).of_unsorted(&left);
            return violated(core, keep, budget);
        }
        Ok(sorted) => sorted,
    };
    let told = order_as_told(&certain);
    let by_depth = if told.is_none() { certain.by_depth(&inferred, &sorted) } else { Vec::new() };
    drop((sorted, certain));
    drop(versions);
    if let Some(order) = told {
        let outcome = in_order(problem, &order, true, goal, keep, budget);
        if !matches!(outcome, Outcome::Unknown { .. }) {
            return outcome;
        }
        let versions = Versions::new(problem);
        let certain = Certain::new(problem, &versions, goal, keep);
        let sorted = certain.sorted(&inferred).unwrap_or_default();
        let order = certain.by_depth(&inferred, &sorted);
        return in_order(problem, &order, false, goal, keep, budget);
    }
    in_order(problem, &by_depth, false, goal, keep, budget)
}

/// The order of the ends, or that of the file, if all that is certain follows it: then most
/// of what is not certain probably does.
fn order_as_told(certain: &Certain) -> Option<Vec<u32>> {
    let times = &certain.problem.times;
    let txns = certain.txns();
    if !times.is_empty() {
        let mut order: Vec<u32> = (0..txns).collect();
        order.sort_by_key(|txn| times[*txn as usize][1]);
        let mut place = vec![0; txns as usize];
        for (at, txn) in order.iter().enumerate() {
            place[*txn as usize] = at as u32;
        }
        if certain.keeps(|txn| place[txn as usize]) {
            return Some(order);
        }
    }
    certain.keeps(|txn| txn).then(|| (0..txns).collect())
}

/// Decides with transactions numbered in this order.
fn in_order(
    problem: &Problem,
    order: &[u32],
    as_told: bool,
    goal: Goal,
    keep: Keep,
    budget: &Budget,
) -> Outcome {
    let numbered = renumbered(problem, order);
    match decide_numbered(&numbered, as_told, goal, keep, budget) {
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
            core::rename(&mut steps, order, problem.items);
            Outcome::Violated(steps)
        }
        unknown => unknown,
    }
}

/// Decides a problem whose transactions are numbered so that all that is certain leads
/// upwards.
fn decide_numbered(
    problem: &Problem,
    as_told: bool,
    goal: Goal,
    keep: Keep,
    budget: &Budget,
) -> Outcome {
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
    let by_rank = match as_told {
        true => (0..certain.txns()).collect(),
        false => certain.by_depth(&inferred, &sorted),
    };
    drop(sorted);
    let mut replay = Replay::new(&certain, &inferred, &by_rank);
    let mut stall = Stall::new(problem.session_of.len());
    loop {
        replay.run();
        if replay.finished() {
            return Outcome::Holds(replay.events);
        }
        let stalls = replay.lessons.len() as u64;
        let spent = stalls > budget.conflicts || replay.steps + stall.steps > budget.steps;
        if spent || stalls % 256 == 255 && budget.stopped() {
            break;
        }
        let lowest = replay.lowest();
        let Some(lesson) = stall.lesson(&replay, lowest) else { break };
        if lesson.choices.is_empty() {
            match refuted(&certain, &inferred, &lesson, &replay.lessons, keep, budget) {
                Some(steps) => return Outcome::Violated(steps),
                None => break,
            }
        }
        replay.learn(lesson);
    }
    let left = |txn: u32| replay.state[txn as usize] != State::Done;
    let open_pairs = (0..problem.items).map(|item| {
        let first = |version: &u32| left(versions.writer[*version as usize]);
        let runs = versions.open_runs(item).filter(first).count();
        runs * runs.saturating_sub(1) / 2
    });
    Outcome::Unknown {
        open_pairs: open_pairs.sum(),
        transactions: (0..certain.txns()).filter(|txn| left(*txn)).count(),
    }
}

/// A lesson without choices may rest on thousands of others, where a few of these and what
/// happened around it are enough for a proof.
fn refuted(
    certain: &Certain,
    inferred: &Inferred,
    lesson: &Lesson,
    lessons: &[Lesson],
    keep: Keep,
    budget: &Budget,
) -> Option<Vec<Step>> {
    const MOST: usize = 6_000;
    let mut tried = 0;
    for depth in 0..12 {
        let core = Core::new(certain, inferred).of_lesson(lesson, lessons, depth);
        if core.len() > MOST || core.len() == tried {
            break;
        }
        tried = core.len();
        if let Some(steps) = core.decide(keep, budget) {
            return Some(steps);
        }
    }
    [50, 200, 800].into_iter().find_map(|around| {
        let core = Core::new(certain, inferred).of_lesson(lesson, lessons, 1).widened(around);
        if core.len() > MOST { None } else { core.decide(keep, budget) }
    })
}

fn violated(core: Core, keep: Keep, budget: &Budget) -> Outcome {
    let transactions = core.len();
    let steps: Option<Vec<Step>> = core.decide(keep, budget);
    match steps {
        Some(steps) => Outcome::Violated(steps),
        None => Outcome::Unknown { open_pairs: 0, transactions },
    }
}

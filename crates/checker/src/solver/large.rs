//! Decides large histories: a topological order in place of a clock, saturation in one sweep,
//! then a replay that learns from its dead ends.
//!
//! Pairs of versions are never enumerated. A yes is exact (and verified by `verify`), a no is
//! reduced to an unsatisfiable core and decided again by `exact`; if that fails, the answer is
//! unknown.

use super::certain_edges::{CertainEdges, InferredEdges, renumbered};
use super::exact::Outcome;
use super::problem::{Budget, Goal, Problem, Step};
use super::replay::{Nogood, Replay, State};
use super::stall::Stall;
use super::unsat_core::{self, UnsatCore};
use super::vector_clocks;
use super::versions::Versions;
use crate::types::RequiredOrders;

pub(super) fn decide(
    problem: &Problem,
    goal: Goal,
    required: RequiredOrders,
    budget: &Budget,
) -> Outcome {
    let versions = Versions::new(problem);
    let certain = CertainEdges::new(problem, &versions, goal, required);
    let inferred = InferredEdges::default();
    if let Some(clash) = versions.clash {
        let core = UnsatCore::new(&certain, &inferred).of_transactions(&clash);
        return violated(core, required, budget);
    }
    let sorted = match certain.sorted(&inferred) {
        Err(left) => {
            let core = UnsatCore::new(&certain, &inferred).of_unsorted(&left);
            return violated(core, required, budget);
        }
        Ok(sorted) => sorted,
    };
    let recorded_order = history_order(&certain);
    let by_depth =
        if recorded_order.is_none() { certain.by_depth(&inferred, &sorted) } else { Vec::new() };
    drop((sorted, certain));
    drop(versions);
    if let Some(order) = recorded_order {
        let outcome = decide_in_order(problem, &order, true, goal, required, budget);
        if !matches!(outcome, Outcome::Unknown { .. }) {
            return outcome;
        }
        let versions = Versions::new(problem);
        let certain = CertainEdges::new(problem, &versions, goal, required);
        let sorted = certain.sorted(&inferred).unwrap_or_default();
        let order = certain.by_depth(&inferred, &sorted);
        return decide_in_order(problem, &order, false, goal, required, budget);
    }
    decide_in_order(problem, &by_depth, false, goal, required, budget)
}

/// The order of the ends, or that of the history, if it respects all certain edges: then it is
/// probably close to the order of the commits.
fn history_order(certain: &CertainEdges) -> Option<Vec<u32>> {
    let times = &certain.problem.times;
    let txns = certain.txns();
    if !times.is_empty() {
        let mut order: Vec<u32> = (0..txns).collect();
        order.sort_by_key(|txn| times[*txn as usize][1]);
        let mut position = vec![0; txns as usize];
        for (at, txn) in order.iter().enumerate() {
            position[*txn as usize] = at as u32;
        }
        if certain.is_respected_by(|txn| position[txn as usize]) {
            return Some(order);
        }
    }
    certain.is_respected_by(|txn| txn).then(|| (0..txns).collect())
}

/// Decides the problem with its transactions numbered in this order.
fn decide_in_order(
    problem: &Problem,
    order: &[u32],
    in_history_order: bool,
    goal: Goal,
    required: RequiredOrders,
    budget: &Budget,
) -> Outcome {
    let numbered = renumbered(problem, order);
    match decide_numbered(&numbered, in_history_order, goal, required, budget) {
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
            unsat_core::rename(&mut steps, order, problem.items);
            Outcome::Violated(steps)
        }
        unknown => unknown,
    }
}

/// Decides a problem whose transactions are numbered in a topological order of the certain
/// edges.
fn decide_numbered(
    problem: &Problem,
    in_history_order: bool,
    goal: Goal,
    required: RequiredOrders,
    budget: &Budget,
) -> Outcome {
    let versions = Versions::new(problem);
    let certain = CertainEdges::new(problem, &versions, goal, required);
    let inferred = InferredEdges::new(vector_clocks::infer(&certain), problem.session_of.len());
    let sorted = match certain.sorted(&inferred) {
        Ok(sorted) => sorted,
        Err(left) => {
            let core = UnsatCore::new(&certain, &inferred).of_unsorted(&left);
            return violated(core, required, budget);
        }
    };
    let by_rank = match in_history_order {
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
        let stalls = replay.nogoods.len() as u64;
        let spent = stalls > budget.conflicts || replay.steps + stall.steps > budget.steps;
        if spent || stalls % 256 == 255 && budget.stopped() {
            break;
        }
        let lowest = replay.lowest();
        let Some(nogood) = stall.nogood(&replay, lowest) else { break };
        if nogood.choices.is_empty() {
            match refute(&certain, &inferred, &nogood, &replay.nogoods, required, budget) {
                Some(steps) => return Outcome::Violated(steps),
                None => break,
            }
        }
        replay.learn(nogood);
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

/// Refutes a problem by a nogood without choices. The nogood may depend on thousands of others,
/// while a few of these and the transactions around it are enough for a proof.
fn refute(
    certain: &CertainEdges,
    inferred: &InferredEdges,
    nogood: &Nogood,
    nogoods: &[Nogood],
    required: RequiredOrders,
    budget: &Budget,
) -> Option<Vec<Step>> {
    const MOST: usize = 6_000;
    let mut tried = 0;
    for depth in 0..12 {
        let core = UnsatCore::new(certain, inferred).of_nogood(nogood, nogoods, depth);
        if core.len() > MOST || core.len() == tried {
            break;
        }
        tried = core.len();
        if let Some(steps) = core.decide(required, budget) {
            return Some(steps);
        }
    }
    [50, 200, 800].into_iter().find_map(|around| {
        let core = UnsatCore::new(certain, inferred).of_nogood(nogood, nogoods, 1).widened(around);
        if core.len() > MOST { None } else { core.decide(required, budget) }
    })
}

fn violated(core: UnsatCore, required: RequiredOrders, budget: &Budget) -> Outcome {
    let transactions = core.len();
    let steps: Option<Vec<Step>> = core.decide(required, budget);
    match steps {
        Some(steps) => Outcome::Violated(steps),
        None => Outcome::Unknown { open_pairs: 0, transactions },
    }
}

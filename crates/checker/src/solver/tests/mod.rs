//! Many small histories against all version orders; large ones against the exact procedure.

mod brute;
mod generate;
mod validate;

use super::*;
use generate::{Random, medium, small};

const REQUIRED_ORDERS: [RequiredOrders; 4] = [
    RequiredOrders { sessions: false, times: false },
    RequiredOrders { sessions: true, times: false },
    RequiredOrders { sessions: false, times: true },
    RequiredOrders { sessions: true, times: true },
];

#[derive(Default, Debug)]
struct Count {
    held: usize,
    violated: usize,
}

/// Decides this many histories under both goals, and compares with brute force.
fn agree_with_brute_force(
    seed: u64,
    histories: usize,
    decide: impl Fn(&Problem, Goal, RequiredOrders) -> Decision,
) -> Count {
    let mut random = Random(seed);
    let mut count = Count::default();
    for number in 0..histories {
        let problem = small(&mut random);
        let required = REQUIRED_ORDERS[random.below(4)];
        for goal in [Goal::Serializable, Goal::SnapshotIsolation] {
            let expected = brute::holds(&problem, goal, required);
            let context =
                || format!("history {number} of {seed}: {goal:?} {required:?}\n{problem:?}");
            match decide(&problem, goal, required) {
                Decision::Holds { commit_order } => {
                    assert!(expected, "{}", context());
                    assert!(
                        brute::order_works(&problem, goal, required, &commit_order),
                        "{}\n{commit_order:?}",
                        context()
                    );
                    count.held += 1;
                }
                Decision::Violated { cycle } => {
                    assert!(!expected, "{}\n{cycle:#?}", context());
                    if let Err(reason) = validate::cycle(&problem, goal, required, &cycle) {
                        panic!("{reason}\n{}\n{cycle:#?}", context());
                    }
                    count.violated += 1;
                }
                Decision::Unknown { .. } => panic!("unknown: {}", context()),
            }
        }
    }
    count
}

fn agrees(seed: u64) {
    let budget = Budget::default();
    let count = agree_with_brute_force(seed, 25_000, |problem, goal, required| {
        super::decide(problem, goal, required, &budget)
    });
    some_of_each(&count);
}

/// The procedure for large histories, on small ones.
fn replay_agrees(seed: u64) {
    let budget = Budget::default();
    let count = agree_with_brute_force(seed, 25_000, |problem, goal, required| {
        let outcome = large::decide(problem, goal, required, &budget);
        answer(problem, goal, required, outcome)
    });
    some_of_each(&count);
}

fn some_of_each(count: &Count) {
    assert!(count.held > 10_000 && count.violated > 10_000, "too much of one kind: {count:?}");
}

#[test]
fn agrees_with_brute_force_1() {
    agrees(1);
}

#[test]
fn agrees_with_brute_force_2() {
    agrees(2);
}

#[test]
fn agrees_with_brute_force_3() {
    agrees(3);
}

#[test]
fn agrees_with_brute_force_4() {
    agrees(4);
}

#[test]
fn replay_agrees_with_brute_force_1() {
    replay_agrees(11);
}

#[test]
fn replay_agrees_with_brute_force_2() {
    replay_agrees(12);
}

/// The procedures for large and for small histories are independent implementations.
#[test]
fn large_and_exact_procedures_agree_on_moderate_histories() {
    let mut random = Random(21);
    let budget = Budget::default();
    let mut count = Count::default();
    for number in 0..60 {
        let serial = random.chance(50);
        let corrupted = random.chance(50);
        let problem = medium(&mut random, serial, corrupted);
        assert!(problem.session_of.len() > SMALL, "history {number} is decided as a small one");
        let required = REQUIRED_ORDERS[random.below(if problem.times.is_empty() { 2 } else { 4 })];
        for goal in [Goal::Serializable, Goal::SnapshotIsolation] {
            let versions = Versions::new(&problem);
            let alone = exact::decide(&problem, &versions, goal, required, &budget, MOST_PAIRS);
            let alone = answer(&problem, goal, required, alone);
            match (super::decide(&problem, goal, required, &budget), alone) {
                (Decision::Holds { .. }, Decision::Holds { .. }) => count.held += 1,
                (Decision::Violated { cycle }, Decision::Violated { cycle: other }) => {
                    let valid = |steps: &[Step]| validate::cycle(&problem, goal, required, steps);
                    assert_eq!(valid(&cycle), Ok(()), "history {number}: {cycle:#?}");
                    assert_eq!(valid(&other), Ok(()), "history {number}: {other:#?}");
                    count.violated += 1;
                }
                (one, other) => {
                    panic!("history {number} {goal:?} {required:?}: {one:?} or {other:?}")
                }
            }
            let promised = !corrupted && (serial || goal == Goal::SnapshotIsolation);
            let held = decide(&problem, goal, required, &budget);
            assert!(!promised || matches!(held, Decision::Holds { .. }), "history {number}");
        }
    }
    assert!(count.held > 20 && count.violated > 20, "too much of one kind: {count:?}");
}

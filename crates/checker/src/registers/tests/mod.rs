//! Small histories, many of them, against all orders of versions; large ones
//! against themselves.

mod brute;
mod generate;
mod validate;

use super::*;
use generate::{Random, medium, small};

const KEEPS: [Keep; 4] = [
    Keep { sessions: false, times: false },
    Keep { sessions: true, times: false },
    Keep { sessions: false, times: true },
    Keep { sessions: true, times: true },
];

#[derive(Default, Debug)]
struct Count {
    held: usize,
    violated: usize,
}

/// Decides so many histories under both goals, and compares with brute force.
fn agree_with_brute_force(
    seed: u64,
    histories: usize,
    decide: impl Fn(&Problem, Goal, Keep) -> Decision,
) -> Count {
    let mut random = Random(seed);
    let mut count = Count::default();
    for number in 0..histories {
        let problem = small(&mut random);
        let keep = KEEPS[random.below(4)];
        for goal in [Goal::Serializable, Goal::SnapshotIsolation] {
            let expected = brute::holds(&problem, goal, keep);
            let context = || format!("history {number} of {seed}: {goal:?} {keep:?}\n{problem:?}");
            match decide(&problem, goal, keep) {
                Decision::Holds { commit_order } => {
                    assert!(expected, "{}", context());
                    assert!(
                        brute::order_works(&problem, goal, keep, &commit_order),
                        "{}\n{commit_order:?}",
                        context()
                    );
                    count.held += 1;
                }
                Decision::Violated { cycle } => {
                    assert!(!expected, "{}\n{cycle:#?}", context());
                    if let Err(why) = validate::cycle(&problem, goal, keep, &cycle) {
                        panic!("{why}\n{}\n{cycle:#?}", context());
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
    let count = agree_with_brute_force(seed, 25_000, |problem, goal, keep| {
        super::decide(problem, goal, keep, &budget)
    });
    some_of_each(&count);
}

/// What large histories are given, on small ones.
fn replay_agrees(seed: u64) {
    let budget = Budget::default();
    let count = agree_with_brute_force(seed, 25_000, |problem, goal, keep| {
        let outcome = large::decide(problem, goal, keep, &budget);
        answer(problem, goal, keep, outcome)
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

/// The way of large histories and that of small ones are different programs.
#[test]
fn both_ways_agree_on_histories_of_moderate_size() {
    let mut random = Random(21);
    let budget = Budget::default();
    let mut count = Count::default();
    for number in 0..60 {
        let serial = random.chance(50);
        let spoilt = random.chance(50);
        let problem = medium(&mut random, serial, spoilt);
        assert!(problem.session_of.len() > SMALL, "history {number} is decided as a small one");
        let keep = KEEPS[random.below(if problem.times.is_empty() { 2 } else { 4 })];
        for goal in [Goal::Serializable, Goal::SnapshotIsolation] {
            let versions = Versions::new(&problem);
            let alone = exact::decide(&problem, &versions, goal, keep, &budget, MOST_PAIRS);
            let alone = answer(&problem, goal, keep, alone);
            match (super::decide(&problem, goal, keep, &budget), alone) {
                (Decision::Holds { .. }, Decision::Holds { .. }) => count.held += 1,
                (Decision::Violated { cycle }, Decision::Violated { cycle: other }) => {
                    let valid = |steps: &[Step]| validate::cycle(&problem, goal, keep, steps);
                    assert_eq!(valid(&cycle), Ok(()), "history {number}: {cycle:#?}");
                    assert_eq!(valid(&other), Ok(()), "history {number}: {other:#?}");
                    count.violated += 1;
                }
                (one, other) => panic!("history {number} {goal:?} {keep:?}: {one:?} or {other:?}"),
            }
            let promised = !spoilt && (serial || goal == Goal::SnapshotIsolation);
            let held = decide(&problem, goal, keep, &budget);
            assert!(!promised || matches!(held, Decision::Holds { .. }), "history {number}");
        }
    }
    assert!(count.held > 20 && count.violated > 20, "too much of one kind: {count:?}");
}

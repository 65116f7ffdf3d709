//! Small histories, many of them, against all orders of versions; large ones
//! against themselves.

mod brute;
mod generate;
mod validate;

use super::*;
use generate::{Random, small};

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

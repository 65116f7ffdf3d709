//! The same case, server and schedule give the same history.

use isolde_model::case::Case;
use isolde_model::history::{ErrorClass, EventKind};
use isolde_model::transcript::transcript;
use isolde_model::{History, Level};
use isolde_testing::cases::{self, Dice, THREE_ROWS, interleaved, repeats};
use isolde_testing::servers::{FETCHED, open};

const CASES: u64 = 20;

/// Transactions that lock rows in any order, with many waits and deadlocks.
fn random_case(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let sessions = 2 + dice.below(2);
    let mut scripts: Vec<Vec<String>> = Vec::new();
    for session in 0..sessions {
        let mut script = vec!["begin".to_string()];
        for _ in 0..2 + dice.below(2) {
            let row = 1 + dice.below(3);
            script.push(match dice.below(6) {
                0 => format!("select * from t where id = {row} for update"),
                1 => "select * from t".into(),
                2 => format!("delete from t where id = {row}"),
                3 => format!("insert into t values ({}, {session})", 3 + dice.below(3)),
                _ => format!("update t set v = v * 10 + {session} where id = {row}"),
            });
        }
        script.push("commit".into());
        scripts.push(script);
    }
    interleaved(&mut dice, &THREE_ROWS, scripts)
}

fn portable(case: &Case, target: &str) -> Case {
    let mut case = case.clone();
    if target.starts_with("sqlite") || target.starts_with("turso") {
        for step in &mut case.steps {
            step.sql = step.sql.replace(" for update", "");
        }
    }
    case
}

fn always_the_same(target: &str, level: Level, times: usize) {
    let Some(mut runner) = open(target) else { return };
    let (mut waits, mut deadlocks, mut different) = (0, 0, Vec::new());
    // A server that has just started is slow. Where the runner cannot distinguish slow from
    // blocked, the first statement seems to wait.
    cases::run(&mut runner, &portable(&random_case(0), target), Some(level));
    for seed in 0..CASES {
        let case = portable(&random_case(seed), target);
        let first = cases::run(&mut runner, &case, Some(level));
        let count = |wanted: fn(&EventKind) -> bool| {
            first.events.iter().filter(|e| wanted(&e.what)).count()
        };
        waits += count(|w| matches!(w, EventKind::Waiting { .. }));
        deadlocks += count(|w| w.error().is_some_and(|e| e.class == ErrorClass::Deadlock));
        for _ in 1..times {
            let again = cases::run(&mut runner, &case, Some(level));
            if again != first {
                different.push((seed, difference(&first, &again)));
                break;
            }
        }
    }
    println!(
        "{target} {level}: {CASES} cases, {times} times each, {waits} waits and {deadlocks} deadlocks per round"
    );
    assert!(different.is_empty(), "{target} {level}: {different:#?}");
    assert!(waits > 5, "{target}: the cases should wait");
    // SQLite and Turso refuse a statement that could cause a deadlock before it waits.
    let can_deadlock = !target.starts_with("sqlite") && !target.starts_with("turso");
    assert!(!can_deadlock || deadlocks > 2, "{target}: the cases should deadlock");
}

fn difference(a: &History, b: &History) -> String {
    format!("one time:\n{}\nanother time:\n{}", transcript(a), transcript(b))
}

#[test]
fn sqlite_gives_the_same_history_every_time() {
    let times = repeats("ISOLDE_REPEATS", 50);
    always_the_same("sqlite", Level::Serializable, times);
    always_the_same("sqlite+wal", Level::Serializable, times);
}

#[test]
fn postgres_gives_the_same_history_every_time() {
    let times = repeats("ISOLDE_REPEATS", 10);
    always_the_same("postgres", Level::ReadCommitted, times);
    always_the_same("postgres", Level::Serializable, times);
}

#[test]
fn mariadb_gives_the_same_history_every_time() {
    let times = repeats("ISOLDE_REPEATS", 10);
    always_the_same("mariadb", Level::RepeatableRead, times);
    always_the_same("mariadb", Level::Serializable, times);
}

#[test]
fn fetched_servers_give_the_same_history_every_time() {
    let times = repeats("ISOLDE_REPEATS", 5);
    for target in FETCHED.into_iter().chain(["tidb", "turso"]) {
        let level = match target.split('@').next() {
            Some("postgres" | "turso") => Level::Serializable,
            _ => Level::RepeatableRead,
        };
        always_the_same(target, level, times);
    }
}

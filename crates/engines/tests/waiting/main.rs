//! The runner never takes a slow statement for a blocked one, nor the reverse:
//! thousands of both, mixed, on busy processors.
//!
//! A model computes the truth independently of the server: a row that another
//! open transaction has written is locked, any other row is not. Here each
//! statement touches at most one row; `chains` has many sessions on one row and
//! rows that change their key, `gaps` has inserts into scanned gaps.

mod chains;
mod gaps;
mod truth;

use isolde_model::case::Case;
use isolde_model::history::EventKind;
use isolde_model::{History, Level};
use isolde_testing::cases::{self, Dice, interleaved, repeats};
use isolde_testing::servers::{FETCHED, open};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const SESSIONS: u64 = 4;
const ROWS: u64 = 6;

/// Long statements of each dialect: sleeping and computing.
fn slow_statements(target: &str) -> [String; 2] {
    match target.split('@').next().unwrap_or(target) {
        "postgres" => [
            "select pg_sleep(0.012)".into(),
            "select count(*) from (select md5(i::text) m from generate_series(1, 4000) i order by m) x".into(),
        ],
        _ => [
            "select sleep(0.012)".into(),
            "select count(*) from (select distinct sha2(concat(a.id, b.id, c.id, d.id), 256) m from filler a, filler b, filler c, filler d order by m) x".into(),
        ],
    }
}

/// Each transaction locks rows in ascending order, so there are no deadlocks
/// and the model of the locks stays simple.
fn random_case(target: &str, seed: u64) -> Case {
    let mut dice = Dice(seed);
    let slow = slow_statements(target);
    let mut scripts: Vec<Vec<String>> = Vec::new();
    for _ in 0..SESSIONS {
        let mut script = vec!["begin".to_string()];
        let mut row = 0;
        for _ in 0..4 {
            match dice.below(3) {
                0 => script.push(slow[dice.below(2) as usize].clone()),
                _ => {
                    row += 1 + dice.below(2);
                    if row <= ROWS {
                        script.push(format!("update t set v = v + 1 where id = {row}"));
                    }
                }
            }
        }
        script.push(if dice.below(4) == 0 { "rollback" } else { "commit" }.to_string());
        scripts.push(script);
    }
    let rows: Vec<String> = (1..=ROWS).map(|i| format!("({i}, 0)")).collect();
    let setup = [
        "create table t (id int primary key, v int)",
        &format!("insert into t values {}", rows.join(", ")),
        "create table filler (id int primary key)",
        "insert into filler values (1), (2), (3), (4), (5), (6), (7), (8)",
    ];
    interleaved(&mut dice, &setup, scripts)
}

#[derive(Default)]
struct Tally {
    slow: usize,
    waits: usize,
    free: usize,
}

/// Checks every event against the model of the locks.
fn check(history: &History, tally: &mut Tally) {
    let mut holder: HashMap<u64, String> = HashMap::new();
    let mut queue: HashMap<u64, Vec<String>> = HashMap::new();
    let row_of = |sql: &str| sql.rsplit("id = ").next().and_then(|n| n.parse::<u64>().ok());
    for (at, event) in history.events.iter().enumerate() {
        let Some(step) = event.step else { continue };
        let sql = &history.steps[step].sql;
        let update = sql.starts_with("update");
        let row = if update { row_of(sql) } else { None };
        match &event.what {
            EventKind::Sent { .. } => {
                let next = history.events.get(at + 1);
                let waits = next.is_some_and(|n| {
                    n.step == Some(step) && matches!(n.what, EventKind::Waiting { .. })
                });
                let locked = row.and_then(|r| holder.get(&r)).filter(|h| **h != event.session);
                match (waits, locked) {
                    (true, None) => panic!("taken for waiting, but free: {sql}\n{history:#?}"),
                    (false, Some(h)) => {
                        panic!("waits for {h}, but taken for free: {sql}\n{history:#?}")
                    }
                    (true, Some(_)) => tally.waits += 1,
                    (false, None) if update => tally.free += 1,
                    (false, None) if sql.starts_with("select") => tally.slow += 1,
                    (false, None) => {}
                }
            }
            EventKind::Waiting { on } => {
                let row = row.expect("only updates wait");
                // The lock holder, or a session before it in the queue.
                let mut ahead: Vec<String> = queue.get(&row).cloned().unwrap_or_default();
                ahead.extend(holder.get(&row).cloned());
                assert!(on.iter().all(|s| ahead.contains(s)), "{on:?} is not in {ahead:?}");
                queue.entry(row).or_default().push(event.session.clone());
            }
            EventKind::Resumed => {
                let held = row.and_then(|r| holder.get(&r));
                assert_eq!(held, None, "resumed while the row was locked\n{history:#?}");
            }
            EventKind::Affected { .. } => {
                if let Some(row) = row {
                    queue.entry(row).or_default().retain(|s| *s != event.session);
                    holder.insert(row, event.session.clone());
                }
            }
            EventKind::Ended { .. } => holder.retain(|_, h| *h != event.session),
            EventKind::Error(error) => panic!("{error}\n{history:#?}"),
            _ => {}
        }
    }
}

fn stress(target: &str) {
    let Some(mut runner) = open(target) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let burners: Vec<_> = (0..3)
        .map(|i| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut x: u64 = i;
                while !stop.load(Ordering::Relaxed) {
                    x = std::hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
                }
            })
        })
        .collect();
    let mut tally = Tally::default();
    for seed in 0..repeats("ISOLDE_STRESS", 40) as u64 {
        let case = random_case(target, seed);
        let history = cases::run(&mut runner, &case, Some(Level::ReadCommitted));
        check(&history, &mut tally);
    }
    stop.store(true, Ordering::Relaxed);
    for burner in burners {
        burner.join().unwrap();
    }
    let Tally { slow, waits, free } = tally;
    println!("{target}: {slow} slow, {waits} waiting, {free} free statements, 0 mistakes");
    assert!(slow > 30 && waits > 30 && free > 30, "{target}: {slow} {waits} {free}");
}

#[test]
fn postgres_lock_waits_are_distinguished_from_slow_statements() {
    stress("postgres");
}

#[test]
fn mariadb_lock_waits_are_distinguished_from_slow_statements() {
    stress("mariadb");
}

#[test]
fn lock_waits_of_fetched_servers_are_distinguished_from_slow_statements() {
    FETCHED.into_iter().for_each(stress);
}

#[test]
fn tidb_lock_waits_are_distinguished_from_slow_statements() {
    stress("tidb");
}

#[test]
fn tidb_reports_every_wait_of_a_lock_chain() {
    chains::stress("tidb");
    gaps::stress("tidb");
}

#[test]
fn postgres_reports_every_wait_of_a_lock_chain() {
    chains::stress("postgres");
    gaps::stress("postgres");
}

#[test]
fn mariadb_reports_every_wait_of_a_lock_chain() {
    chains::stress("mariadb");
    gaps::stress("mariadb");
}

#[test]
fn fetched_servers_report_every_wait_of_a_lock_chain() {
    for target in FETCHED {
        chains::stress(target);
        gaps::stress(target);
    }
}

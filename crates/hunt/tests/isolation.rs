//! Rounds at full speed on real engines: what a level promises is kept, and a planted fault
//! that breaks it is found, with the cycle in words.

#[path = "../../engines/tests/support/mod.rs"]
mod support;

use isolde_core::Level;
use isolde_core::generate::{Generator, Options};
use isolde_core::oracle::forbidden;
use isolde_engines::fault::{self, Planted, plant};
use isolde_engines::runner::Runner;
use isolde_hunt::isolation::{Played, Shape, play};
use std::time::Duration;

fn shape(transactions: u64) -> Shape {
    let time = Duration::from_secs(20);
    Shape { sessions: 6, keys: 6, transactions, time, all_predicates: true }
}

fn round(runner: &mut Runner, level: Level, number: u64) -> Played {
    let dialect = runner.engine.info().dialect();
    let generator = Generator::new(dialect, 5, Options::new(vec![level], level));
    let played = play(runner, &generator, number, &shape(250)).expect("a round");
    played.unwrap_or_else(|death| panic!("{death}"))
}

/// What the level rules out and the round shows, in words.
fn broken(runner: &Runner, played: &Played) -> Vec<String> {
    let promise = runner.engine.profile().promise(played.level).expect("a level of the engine");
    let found = forbidden(&played.report, promise.allows.as_deref());
    let told = |a: &&isolde_checker::Anomaly| {
        format!("{}: {}", a.name(), a.sentences(&played.account.history).join("; "))
    };
    found.iter().map(told).collect()
}

fn keeps_its_promises(target: &str) {
    let Some(mut runner) = support::open(target) else { return };
    for level in runner.engine.profile().level_names() {
        let (mut committed, mut predicates) = (0, 0);
        for number in [0, 31, 62] {
            let played = round(&mut runner, level, number);
            let broken = broken(&runner, &played);
            assert!(broken.is_empty(), "{target} at {level}, round {number}: {broken:#?}");
            committed += played.trace.ends().committed;
            predicates += played.account.predicate_reads;
        }
        assert!(committed > 50, "{target} at {level}: only {committed} committed");
        assert!(predicates > 20, "{target} at {level}: only {predicates} predicate reads");
    }
}

#[test]
fn sqlite_keeps_its_promises() {
    keeps_its_promises("sqlite");
    keeps_its_promises("sqlite+wal");
}

#[test]
fn postgres_keeps_its_promises() {
    keeps_its_promises("postgres");
}

#[test]
fn mariadb_keeps_its_promises() {
    keeps_its_promises("mariadb");
}

#[test]
fn engines_that_were_fetched_keep_their_promises() {
    for target in ["postgres@18", "mysql@9.7", "mariadb@11.8"] {
        keeps_its_promises(target);
    }
}

/// At READ COMMITTED much is allowed, and it happens: or nobody would have looked.
#[test]
fn what_a_weak_level_allows_is_seen() {
    let Some(mut runner) = support::open("postgres") else { return };
    let played = round(&mut runner, Level::ReadCommitted, 0);
    let classes: Vec<_> = played.report.anomalies.iter().map(|a| a.class).collect();
    assert!(classes.contains(&isolde_checker::Class::ReadSkew), "{classes:?}");
}

fn faults_are_found(target: &str) {
    for name in ["dirty-read", "stale-read", "nonrepeatable-read", "weaker-level", "early-unlock"] {
        let Some(runner) = support::open(target) else { return };
        let fault = fault::find(name).expect("a fault of the table");
        let planted = Planted { fault, rate: 0.5, seed: 1 };
        let mut runner = Runner::new(plant(runner.engine, planted));
        let found = (0..8).any(|number| {
            let played = round(&mut runner, Level::Serializable, number);
            !broken(&runner, &played).is_empty()
        });
        assert!(found, "{name} on {target} was not found in eight rounds");
    }
}

#[test]
fn faults_of_reads_and_locks_are_found_on_postgres() {
    faults_are_found("postgres");
}

#[test]
fn faults_of_reads_and_locks_are_found_on_mariadb() {
    faults_are_found("mariadb");
}

//! Full-speed rounds on real engines: each level keeps its promise, and a planted fault that
//! breaks it is found, with the cycle in words.

use isolde_engines::fault::{self, Planted, plant};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_hunt::isolation::{RoundRecord, Shape, run_round};
use isolde_model::Level;
use isolde_oracles::forbidden;
use isolde_testing::servers;
use std::time::Duration;

fn shape(transactions: u64) -> Shape {
    let time = Duration::from_secs(20);
    Shape { sessions: 6, keys: 6, transactions, time, all_predicates: true }
}

fn round(runner: &mut Runner, level: Level, number: u64) -> RoundRecord {
    let dialect = runner.engine.info().dialect();
    let generator = Generator::new(dialect, 5, Options::new(vec![level], level));
    let played = run_round(runner, &generator, number, &shape(250)).expect("a round");
    played.unwrap_or_else(|death| panic!("{death}"))
}

/// The anomalies of a round that its level forbids, in words.
fn broken(runner: &Runner, played: &RoundRecord) -> Vec<String> {
    let promise = runner.engine.profile().promise(played.level).expect("a level of the engine");
    let found = forbidden(&played.report, promise.allows.as_deref());
    let in_words = |a: &&isolde_checker::Anomaly| {
        format!("{}: {}", a.name(), a.sentences(&played.account.history).join("; "))
    };
    found.iter().map(in_words).collect()
}

fn keeps_its_promises(target: &str) {
    let Some(mut runner) = servers::open(target) else { return };
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
fn fetched_engines_keep_their_promises() {
    for target in ["postgres@18", "mysql@9.7", "mariadb@11.8"] {
        keeps_its_promises(target);
    }
}

/// Anomalies that READ COMMITTED allows do occur, so the checker really looks for them.
#[test]
fn read_skew_at_read_committed_is_detected() {
    let Some(mut runner) = servers::open("postgres") else { return };
    // Which anomalies a round has depends on the load: some round has read skew.
    let mut classes = Vec::new();
    for number in 0..20 {
        let played = round(&mut runner, Level::ReadCommitted, number);
        classes.extend(played.report.anomalies.iter().map(|a| a.class));
        if classes.contains(&isolde_checker::Class::ReadSkew) {
            return;
        }
    }
    panic!("no read skew in 20 rounds: {classes:?}");
}

fn faults_are_found(target: &str) {
    for name in ["dirty-read", "stale-read", "nonrepeatable-read", "weaker-level", "early-unlock"] {
        let Some(runner) = servers::open(target) else { return };
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
fn read_and_lock_faults_are_found_on_postgres() {
    faults_are_found("postgres");
}

#[test]
fn read_and_lock_faults_are_found_on_mariadb() {
    faults_are_found("mariadb");
}

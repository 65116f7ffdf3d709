//! Workloads on real engines: what is recorded is what the level promises.

use isolde_checker::{Level as Promise, Verdict, check};
use isolde_core::Level;
use isolde_engines::engine::Engine;
use isolde_engines::fetch::install::Cache;
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_engines::runner::Runner;
use isolde_engines::target::{Options, Target};
use isolde_hunt::workload::{Recorded, Recording, Shape, Workload};

fn open(target: &str) -> Box<dyn Engine> {
    let target = Target::parse(target).expect("a target");
    target.open(&Options { cache: Cache::open(), via: None }).expect("an engine")
}

fn record(runner: &mut Runner, workload: Workload, level: Level) -> Recorded {
    let shape = Shape { workload, keys: 4, ..Shape::default() };
    let stop = Stop { transactions: Some(400), time: None };
    let free = FreeRun { sessions: 6, level: Some(level), on_abort: OnAbort::GiveUp, stop };
    Recording { shape, free, seed: 11 }.run(runner).expect("a run")
}

fn serializable_runs_are_serializable(target: &str) {
    let mut runner = Runner::new(open(target));
    for workload in Workload::ALL {
        let Recorded { history, trace, .. } = record(&mut runner, workload, Level::Serializable);
        assert_eq!(history.len(), trace.transactions.len());
        assert!(trace.ends().committed > 50, "{target}, {workload}: hardly anything committed");
        let report = check(&history);
        for promise in [Promise::Serializable, Promise::StrongSessionSerializable] {
            let verdict = report.verdict(promise);
            let why = &report.anomalies;
            assert_eq!(verdict, Verdict::Holds, "{target}, {workload}: {promise}: {why:?}");
        }
    }
}

#[test]
fn sqlite_is_serializable() {
    serializable_runs_are_serializable("sqlite");
}

#[test]
fn postgres_is_serializable() {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_none() {
        serializable_runs_are_serializable("postgres");
    }
}

#[test]
fn mariadb_is_serializable() {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_none() {
        serializable_runs_are_serializable("mariadb");
    }
}

#[test]
fn postgres_shows_what_read_committed_allows_and_nothing_more() {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        return;
    }
    let mut runner = Runner::new(open("postgres"));
    let recorded = record(&mut runner, Workload::ListAppend, Level::ReadCommitted);
    let report = check(&recorded.history);
    assert_eq!(report.verdict(Promise::ReadCommitted), Verdict::Holds, "{:?}", report.anomalies);
    assert_eq!(report.verdict(Promise::Serializable), Verdict::Violated);
}

//! Workloads on real engines: recorded histories satisfy the level.

use isolde_checker::{Level as Promise, Verdict, check};
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_engines::runner::Runner;
use isolde_hunt::workload::{Shape, Workload, WorkloadRecorder, WorkloadRecording};
use isolde_model::Level;
use isolde_testing::servers;

fn record(runner: &mut Runner, workload: Workload, level: Level) -> WorkloadRecording {
    let shape = Shape { workload, keys: 4, ..Shape::default() };
    let stop = Stop { transactions: Some(400), time: None };
    let free = FreeRun { sessions: 6, level: Some(level), on_abort: OnAbort::GiveUp, stop };
    WorkloadRecorder { shape, free, seed: 11 }.run(runner).expect("a run")
}

fn serializable_runs_are_serializable(target: &str) {
    let Some(mut runner) = servers::open(target) else { return };
    for workload in Workload::ALL {
        let WorkloadRecording { history, trace, .. } =
            record(&mut runner, workload, Level::Serializable);
        assert_eq!(history.len(), trace.transactions.len());
        assert!(
            trace.ends().committed > 50,
            "{target}, {workload}: too few transactions committed"
        );
        let report = check(&history);
        for promise in [Promise::Serializable, Promise::StrongSessionSerializable] {
            let verdict = report.verdict(promise);
            let why = &report.anomalies;
            assert_eq!(verdict, Verdict::Holds, "{target}, {workload}: {promise}: {why:?}");
        }
    }
}

#[test]
fn workloads_on_sqlite_are_serializable() {
    serializable_runs_are_serializable("sqlite");
}

#[test]
fn workloads_on_postgres_are_serializable() {
    serializable_runs_are_serializable("postgres");
}

#[test]
fn workloads_on_mariadb_are_serializable() {
    serializable_runs_are_serializable("mariadb");
}

#[test]
fn read_committed_workloads_on_postgres_show_allowed_anomalies_only() {
    let Some(mut runner) = servers::open("postgres") else { return };
    let recorded = record(&mut runner, Workload::ListAppend, Level::ReadCommitted);
    let report = check(&recorded.history);
    assert_eq!(report.verdict(Promise::ReadCommitted), Verdict::Holds, "{:?}", report.anomalies);
    assert_eq!(report.verdict(Promise::Serializable), Verdict::Violated);
}

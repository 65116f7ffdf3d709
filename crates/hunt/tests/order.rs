//! Full-speed runs on real engines, replayed in the order inferred from their traces.

use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_hunt::workload::{Shape, Workload, WorkloadRecorder, replay_recording};
use isolde_model::Level;
use isolde_testing::servers;

/// A few runs per level: nearly all replays have the same reads and the same final rows. The
/// others differ because of locks on more than the rows (`docs/order.md`).
fn traces_replay_to_the_same_result(target: &str, runs: u64) {
    let Some(mut runner) = servers::open(target) else { return };
    let (mut same, mut played) = (0, 0);
    let mut other = Vec::new();
    for level in runner.engine.profile().level_names() {
        for seed in 0..runs {
            let workload = Workload::ALL[seed as usize % 2];
            // A table scan locks more than the row that it finds.
            let shape = Shape { workload, keys: 5, scans: 0, ..Shape::default() };
            let stop = Stop { transactions: Some(30), time: None };
            let on_abort = OnAbort::GiveUp;
            let free = FreeRun { sessions: 5, level: Some(level), on_abort, stop };
            let recorded = WorkloadRecorder { shape, free, seed }.run(&mut runner).expect("a run");
            let again = replay_recording(&mut runner, &recorded, workload).expect("a replay");
            let again = again.expect("a trace that is right");
            played += 1;
            same += u64::from(again.is_complete());
            if level >= Level::ReadCommitted {
                assert_eq!(again.irregular, 0, "{target} at {level}, seed {seed}");
            }
            if !again.is_complete() {
                other.push((level, seed, again));
            }
        }
    }
    assert!(played >= runs, "{target}: only {played} runs were replayed");
    assert!(same * 10 >= played * 8, "{target}: {same} of {played}: {other:#?}");
}

#[test]
fn traces_of_sqlite_replay_to_the_same_result() {
    traces_replay_to_the_same_result("sqlite+wal", 4);
}

#[test]
fn traces_of_postgres_replay_to_the_same_result() {
    traces_replay_to_the_same_result("postgres", 3);
}

#[test]
fn traces_of_mariadb_replay_to_the_same_result() {
    traces_replay_to_the_same_result("mariadb", 3);
}

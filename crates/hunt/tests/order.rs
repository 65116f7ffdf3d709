//! Real runs at full speed, played once more in the order that their traces tell.

#[path = "../../engines/tests/support/mod.rs"]
mod support;

use isolde_core::Level;
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_hunt::workload::{Recording, Shape, Workload, play_again};

/// A few runs at each level: nearly all come to the same reads and the same rows. What differs
/// are locks on more than the rows (`docs/order.md`).
fn plays_the_same(target: &str, runs: u64) {
    let Some(mut runner) = support::open(target) else { return };
    let (mut same, mut played) = (0, 0);
    let mut other = Vec::new();
    for level in runner.engine.profile().level_names() {
        for seed in 0..runs {
            let workload = Workload::ALL[seed as usize % 2];
            // A scan of the table locks more than the row that it finds.
            let shape = Shape { workload, keys: 5, scans: 0, ..Shape::default() };
            let stop = Stop { transactions: Some(30), time: None };
            let on_abort = OnAbort::GiveUp;
            let free = FreeRun { sessions: 5, level: Some(level), on_abort, stop };
            let recorded = Recording { shape, free, seed }.run(&mut runner).expect("a run");
            let again = play_again(&mut runner, &recorded, workload).expect("a replay");
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
    assert!(same * 10 >= played * 8, "{target}: {same} of {played}: {other:#?}");
}

#[test]
fn sqlite_plays_the_same() {
    plays_the_same("sqlite+wal", 4);
}

#[test]
fn postgres_plays_the_same() {
    plays_the_same("postgres", 3);
}

#[test]
fn mariadb_plays_the_same() {
    plays_the_same("mariadb", 3);
}

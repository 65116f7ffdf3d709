//! How long order inference takes, and how it grows: simulated traces of 250,000, 500,000 and a
//! million operations, by each protocol. With a number, how many recorded runs of PostgreSQL and
//! MariaDB come to the same reads and the same end when the inferred order is played. With `faults`,
//! how many findings of planted faults are seen again in a scheduled case, by the order of the
//! clients' clocks and by the inferred one.

use isolde_bench::open;
use isolde_engines::fault::{self, Planted, plant};
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_hunt::executor::Executor;
use isolde_hunt::isolation::{self, Effort, OrderSource, excerpt};
use isolde_hunt::workload::{self, Workload, WorkloadRecorder, replay_recording};
use isolde_model::Level;
use isolde_model::profile::{ConcurrencyControl, Protocol, ReadVisibility};
use isolde_oracles::forbidden;
use isolde_order::simulate::{Shape, simulate};
use isolde_order::{BUDGET, infer};
use std::time::{Duration, Instant};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("faults") {
        let rounds = std::env::args().nth(2).and_then(|a| a.parse().ok()).unwrap_or(8);
        return excerpts(rounds);
    }
    let runs: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(0);
    if runs > 0 {
        return replays(runs);
    }
    println!("{:10} {:>12} {:>10} {:>12} {:>8}", "", "operations", "s", "ops/s", "ratio");
    for (protocol, read_visibility) in [
        (Protocol::Mvcc2pl, ReadVisibility::Committed),
        (Protocol::Mvcc2pl, ReadVisibility::Snapshot),
        (Protocol::Occ, ReadVisibility::SnapshotOfBegin),
        (Protocol::TimestampOrdering, ReadVisibility::Committed),
    ] {
        let mut before: Option<f64> = None;
        for operations in [250_000, 500_000, 1_000_000] {
            let control = ConcurrencyControl { protocol, read_visibility };
            let transactions = operations / 5;
            let shape = Shape {
                control,
                sessions: 16,
                items: 40,
                transactions,
                operations: 6,
                delay: 200,
                seed: 1,
            };
            let mut trace = simulate(shape).trace;
            trace.operations.truncate(operations);
            let seconds = (0..3).map(|_| time(&trace)).fold(f64::MAX, f64::min);
            let count = trace.operations.len();
            let ratio = before.map_or("".into(), |b| format!("{:.2}", seconds / b));
            let rate = count as f64 / seconds;
            println!("{:10} {count:>12} {seconds:>10.3} {rate:>12.0} {ratio:>8}", protocol.name());
            before = Some(seconds);
        }
    }
}

fn time(trace: &isolde_model::Trace) -> f64 {
    let began = Instant::now();
    let inferred = infer(trace, None, BUDGET).expect("a trace that is right");
    assert_eq!(inferred.order.len(), trace.operations.len());
    began.elapsed().as_secs_f64()
}

fn replays(runs: u64) {
    println!("{:10} {:>18} {:>6} {:>10} {:>10}", "", "level", "runs", "the same", "reads");
    for target in ["postgres", "mariadb"] {
        let Some(engine) = open(target) else { continue };
        let mut runner = Runner::new(engine);
        let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
        for level in levels {
            let (mut same, mut reads, mut played, mut other) = (0, 0, 0, Vec::new());
            for seed in 0..runs.div_ceil(levels.len() as u64) {
                let workload = Workload::ALL[seed as usize % 2];
                let shape =
                    workload::Shape { workload, keys: 5, scans: 0, ..workload::Shape::default() };
                let stop = Stop { transactions: Some(30), time: None };
                let on_abort = OnAbort::GiveUp;
                let free = FreeRun { sessions: 5, level: Some(level), on_abort, stop };
                let recorded =
                    WorkloadRecorder { shape, free, seed }.run(&mut runner).expect("a run");
                let again = replay_recording(&mut runner, &recorded, workload).expect("a replay");
                played += 1;
                let Some(again) = again else { continue };
                reads += again.reads;
                same += u64::from(again.is_complete());
                if !again.is_complete() && other.len() < 3 {
                    other.push((seed, again));
                }
            }
            println!("{target:10} {:>18} {played:>6} {same:>10} {reads:>10}", level.to_string());
            for (seed, again) in other {
                println!(
                    "  seed {seed}: {} differ, the end is the same: {}, first: {:?}",
                    again.other.len(),
                    again.same_final_rows,
                    again.other.first()
                );
            }
        }
    }
}

fn excerpts(rounds: u64) {
    println!("{:10} {:20} {:>9} {:>8} {:>10}", "", "fault", "findings", "clocks", "inferred");
    for target in ["postgres", "mariadb"] {
        for name in
            ["dirty-read", "stale-read", "nonrepeatable-read", "weaker-level", "early-unlock"]
        {
            let Some(engine) = open(target) else { continue };
            let fault = fault::find(name).expect("a fault of the table");
            let engine = plant(engine, Planted { fault, rate: 0.5, seed: 1 });
            let mut executor = Executor::new(Runner::new(engine));
            let level = Level::Serializable;
            let dialect = executor.runner.engine.info().dialect();
            let generator = Generator::new(dialect, 5, Options::new(vec![level], level));
            let time = Duration::from_secs(20);
            let shape = isolation::Shape {
                sessions: 6,
                keys: 6,
                transactions: 250,
                time,
                all_predicates: false,
            };
            let (mut found, mut clocks, mut inferred) = (0, 0, 0);
            for number in 0..rounds {
                let played = isolation::run_round(&mut executor.runner, &generator, number, &shape);
                executor.forget_tables();
                let Ok(Ok(played)) = played else { continue };
                let allows = executor.runner.engine.profile().promise(level);
                let allows = allows.and_then(|promise| promise.allows.clone());
                let seen = forbidden(&played.report, allows.as_deref());
                let Some(anomaly) = seen.first().map(|a| (*a).clone()) else { continue };
                found += 1;
                for (order, count) in
                    [(OrderSource::Clocks, &mut clocks), (OrderSource::Inferred, &mut inferred)]
                {
                    let effort = Effort { stop: &|| false, trials: 0 };
                    let shown = excerpt(&mut executor, &played, &anomaly, &[order], effort);
                    *count += u64::from(shown.is_ok_and(|e| e.replayed.is_some()));
                }
            }
            println!("{target:10} {name:20} {found:>9} {clocks:>8} {inferred:>10}");
        }
    }
}

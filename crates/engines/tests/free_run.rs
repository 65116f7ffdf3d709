//! Full-speed runs: the trace accounts for every transaction on every kind of
//! engine, aborted transactions are repeated or abandoned, and every run ends.

use isolde_engines::engine::Outcome;
use isolde_engines::fault::{self, Planted};
use isolde_engines::free_run::{FreeRun, OnAbort, Statements, Stop};
use isolde_engines::runner::{RunError, Runner};
use isolde_model::history::{ErrorClass, FailureKind, TxEnd};
use isolde_model::profile::Waiting;
use isolde_model::trace::{OperationResult, Trace};
use isolde_model::{Level, Value};
use isolde_testing::cases::Dice;
use isolde_testing::scripted::{Act, Call, Scripted};
use isolde_testing::servers::open;
use std::time::Duration;

const SESSIONS: usize = 4;
const REPEAT: OnAbort = OnAbort::Repeat { at_most: 10_000 };

fn statements(texts: &[&str]) -> Statements {
    texts.iter().map(ToString::to_string).collect()
}

fn prepare(runner: &mut Runner) {
    runner.clear().unwrap();
    for sql in [
        "create table t (id int primary key, v int)",
        "insert into t values (1, 0), (2, 0), (3, 0), (4, 0)",
    ] {
        let outcome = runner.engine.control(sql).unwrap();
        assert!(!matches!(outcome, Outcome::Error(_)), "{outcome:?}");
    }
}

/// Transactions that increment two of four rows, in any order, to cause deadlocks.
fn two_increments(dice: &mut Dice) -> Vec<String> {
    let mut row = || 1 + dice.below(4);
    vec![
        "begin".into(),
        format!("update t set v = v + 1 where id = {}", row()),
        format!("update t set v = v + 1 where id = {}", row()),
        "commit".into(),
    ]
}

fn sum(runner: &mut Runner) -> i64 {
    match runner.engine.control("select v from t").unwrap() {
        Outcome::Rows { rows, .. } => {
            let value = |row: &Vec<Value>| match row[0] {
                Value::Int(n) => n,
                _ => panic!("{row:?}"),
            };
            rows.iter().map(value).sum()
        }
        other => panic!("{other:?}"),
    }
}

fn free(on_abort: OnAbort, transactions: u64) -> FreeRun {
    let stop = Stop { transactions: Some(transactions), time: Some(Duration::from_secs(60)) };
    FreeRun { sessions: SESSIONS, level: None, on_abort, stop }
}

fn increments(runner: &mut Runner, free: &FreeRun) -> Trace {
    let mut dice = Dice(7);
    free.run(runner, &mut |_| Some(two_increments(&mut dice).into())).unwrap()
}

/// The same after a read, so that SQLite has deadlocks too.
fn read_and_increment(runner: &mut Runner, free: &FreeRun) -> Trace {
    let mut dice = Dice(7);
    free.run(runner, &mut |_| {
        let mut statements = two_increments(&mut dice);
        statements.insert(1, "select * from t".into());
        Some(statements.into())
    })
    .unwrap()
}

/// Asserts what holds for every trace: the operations of a session do not
/// overlap, and the text form loses nothing.
fn check(trace: &Trace) {
    let mut ends = vec![0; trace.sessions.len()];
    for operation in &trace.operations {
        let end = &mut ends[operation.session as usize];
        assert!(*end <= operation.start && operation.start <= operation.end, "{operation:?}");
        *end = operation.end;
    }
    let lines: Vec<String> = trace.lines().collect();
    assert_eq!(&Trace::from_lines(lines.iter().map(String::as_str)).unwrap(), trace);
}

const TARGETS: [&str; 4] = ["sqlite", "sqlite+wal", "postgres", "mariadb"];

#[test]
fn a_repeated_transaction_commits_exactly_once() {
    for target in TARGETS {
        let Some(mut runner) = open(target) else { continue };
        prepare(&mut runner);
        let trace = read_and_increment(&mut runner, &free(REPEAT, 300));
        check(&trace);
        let ends = trace.ends();
        println!("{target}: {ends:?}, {} operations", trace.operations.len());
        assert_eq!((ends.committed, ends.given_up(), ends.lost), (300, 0, 0), "{target}");
        assert_eq!(sum(&mut runner), 600, "{target}");
        assert!(ends.aborted > 0, "{target}: rows are taken in any order");
        let known = trace.statements.len();
        assert!(known <= 8, "{target}: texts are kept once, not {known} times");
    }
}

#[test]
fn an_abandoned_transaction_changes_no_rows() {
    for target in TARGETS {
        let Some(mut runner) = open(target) else { continue };
        prepare(&mut runner);
        let trace = read_and_increment(&mut runner, &free(OnAbort::GiveUp, 300));
        check(&trace);
        let ends = trace.ends();
        assert_eq!((ends.committed + ends.aborted, ends.repeated), (300, 0), "{target}: {ends:?}");
        assert_eq!(sum(&mut runner), 2 * i64::try_from(ends.committed).unwrap(), "{target}");
    }
}

#[test]
fn servers_execute_several_statements_at_once() {
    for target in ["postgres", "mariadb"] {
        let Some(mut runner) = open(target) else { continue };
        prepare(&mut runner);
        let trace = increments(&mut runner, &free(REPEAT, 200));
        let overlaps = trace.operations.windows(2).any(|pair| pair[1].start < pair[0].end);
        assert!(overlaps, "{target}");
    }
}

#[test]
fn a_run_with_a_time_limit_ends_with_all_transactions_complete() {
    for target in TARGETS {
        let Some(mut runner) = open(target) else { continue };
        prepare(&mut runner);
        let stop = Stop { transactions: None, time: Some(Duration::from_millis(200)) };
        let trace = increments(&mut runner, &FreeRun { stop, ..free(REPEAT, 0) });
        let ends = trace.ends();
        assert!(ends.committed > 0 && ends.lost + ends.rolled_back == 0, "{target}: {ends:?}");
        assert_eq!(sum(&mut runner), 2 * i64::try_from(ends.committed).unwrap(), "{target}");
    }
}

#[test]
fn the_trace_records_how_each_transaction_ended() {
    for target in TARGETS {
        let Some(mut runner) = open(target) else { continue };
        prepare(&mut runner);
        let own = [
            (statements(&["begin", "update t set v = 9", "rollback"]), TxEnd::RolledBack),
            (statements(&["begin", "update t set v = 9"]), TxEnd::RolledBack),
            (statements(&["update t set v = v + 1 where id = 1"]), TxEnd::Committed),
            (statements(&["insert into t values (1, 1)"]), TxEnd::Aborted),
            (statements(&["begin", "select * from t", "commit"]), TxEnd::Committed),
        ];
        let mut given = own.iter().map(|(statements, _)| statements.clone());
        let one = FreeRun { sessions: 1, ..free(REPEAT, 100) };
        let trace = one.run(&mut runner, &mut |_| given.next()).unwrap();
        check(&trace);
        let how: Vec<TxEnd> = trace.transactions.iter().map(|t| t.how).collect();
        let expected: Vec<TxEnd> = own.iter().map(|(_, how)| *how).collect();
        assert_eq!(how, expected, "{target}");
        let results: Vec<OperationResult> = trace.operations.iter().map(|o| o.result).collect();
        assert!(results.contains(&OperationResult::Rows(4)), "{target}: {results:?}");
        let refused = OperationResult::Error(ErrorClass::Constraint);
        assert!(results.contains(&refused), "{target}: {results:?}");
        assert_eq!(sum(&mut runner), 1, "{target}");
    }
}

#[test]
fn a_free_run_sets_the_level_in_every_session() {
    let Some(mut runner) = open("postgres") else { return };
    prepare(&mut runner);
    let texts =
        ["begin", "select count(*) from t", "update t set v = v + 1 where id = 1", "commit"];
    let same = statements(&texts);
    let serializable = FreeRun { level: Some(Level::Serializable), ..free(REPEAT, 200) };
    let trace = serializable.run(&mut runner, &mut |_| Some(same.clone())).unwrap();
    let failure = OperationResult::Error(ErrorClass::Serialization);
    assert!(trace.operations.iter().any(|o| o.result == failure));
    assert_eq!(sum(&mut runner), 200);
}

fn scripted(
    waiting: Waiting,
    act: impl FnMut(u64, &Call) -> Option<Act> + Send + 'static,
) -> Runner {
    let mut runner = Runner::new(Box::new(Scripted::new(waiting, Box::new(act)).unwrap()));
    runner.limits.statement = Duration::from_millis(30);
    runner.limits.deadlock = Duration::from_millis(30);
    runner.limits.cancel = Duration::from_millis(30);
    runner
}

#[test]
fn a_hung_session_is_cancelled_and_then_a_server_failure() {
    for waiting in [Waiting::Retry, Waiting::Probe, Waiting::Never, Waiting::Timeout] {
        let mut runner = scripted(waiting, |_, call| {
            let endless = matches!(call, Call::Start(sql) if sql.contains("v + 1 where id = 3"));
            endless.then_some(Act::NeverEnd)
        });
        prepare(&mut runner);
        let trace = increments(&mut runner, &free(REPEAT, 50));
        check(&trace);
        let death = trace.death.as_ref().unwrap_or_else(|| panic!("{waiting:?}"));
        assert_eq!(death.how, FailureKind::Hangs, "{waiting:?}");
        assert!(death.why.contains("cancelled") && death.why.contains("id = 3"), "{death}");
        let unanswered =
            |o: &isolde_model::trace::Operation| o.result == OperationResult::Unanswered;
        assert!(trace.operations.iter().any(unanswered), "{waiting:?}");
        assert!(trace.ends().lost > 0, "{waiting:?}");
        assert!(runner.is_down());
    }
}

#[test]
fn a_server_failure_at_any_call_is_in_the_trace_and_the_next_run_is_sound() {
    for (waiting, act, how) in [
        (Waiting::Retry, Act::Die, FailureKind::Died),
        (Waiting::Probe, Act::Die, FailureKind::Died),
        (Waiting::Probe, Act::DieUnseen, FailureKind::Died),
        (Waiting::Probe, Act::StandStill, FailureKind::Hangs),
    ] {
        for number in (10..60).step_by(7) {
            let act = act.clone();
            let mut runner =
                scripted(waiting, move |call, _| (call == number).then(|| act.clone()));
            prepare(&mut runner);
            let trace = increments(&mut runner, &free(REPEAT, 50));
            check(&trace);
            let place = format!("{waiting:?}, call {number}");
            let death = trace.death.as_ref().unwrap_or_else(|| panic!("{place}"));
            assert_eq!(death.how, how, "{place}: {death}");
            assert_eq!(death.log.as_deref(), Some("the log of the script"), "{place}");
            prepare(&mut runner);
            let second = increments(&mut runner, &free(REPEAT, 20));
            assert_eq!((second.ends().committed, second.death), (20, None), "{place}");
        }
    }
}

#[test]
fn a_killed_server_is_a_server_failure_in_the_trace() {
    for target in ["postgres", "mariadb"] {
        let Some(runner) = open(target) else { continue };
        let fault = fault::find("crash").unwrap();
        let planted = Planted { fault, rate: 0.2, seed: 1 };
        let mut runner = Runner::new(fault::plant(runner.engine, planted));
        prepare(&mut runner);
        let trace = increments(&mut runner, &free(REPEAT, 1000));
        check(&trace);
        let death = trace.death.as_ref().expect("it was killed");
        assert_eq!(death.how, FailureKind::Died, "{target}: {death}");
        let ends = trace.ends();
        assert!(ends.lost > 1 && ends.committed < 1000, "{target}: {ends:?}");
        prepare(&mut runner);
        let row = statements(&["update t set v = v + 1 where id = 1"]);
        let calm = FreeRun { sessions: 1, ..free(REPEAT, 20) };
        let trace = calm.run(&mut runner, &mut |_| Some(row.clone())).unwrap();
        assert_eq!(trace.ends().committed, 20, "{target}: it was brought back");
    }
}

#[test]
fn an_interrupt_ends_a_free_run() {
    let mut runner = scripted(Waiting::Probe, |_, _| None);
    prepare(&mut runner);
    runner.interrupted = || true;
    let mut dice = Dice(7);
    let ended = free(REPEAT, 50).run(&mut runner, &mut |_| Some(two_increments(&mut dice).into()));
    assert!(matches!(ended, Err(RunError::Interrupted)));
}

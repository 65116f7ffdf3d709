//! The runner on a scripted engine: a statement that never ends, a cancel that
//! is ignored, a server that crashes or hangs at any call.

use isolde_engines::engine::Outcome;
use isolde_engines::runner::{RunError, Runner};
use isolde_model::history::{FailureKind, TxEnd};
use isolde_model::profile::Waiting;
use isolde_model::{Case, History};
use isolde_testing::cases::{TWO_ROWS, steps};
use isolde_testing::scripted::{Act, Call, Counter, Script, Scripted};
use std::time::Duration;

const WAYS: [Waiting; 2] = [Waiting::Retry, Waiting::Probe];

fn runner(waiting: Waiting, script: Script) -> (Runner, Counter) {
    let engine = Scripted::new(waiting, script).unwrap();
    let counter = engine.counter();
    let mut runner = Runner::new(Box::new(engine));
    runner.limits.statement = Duration::from_millis(30);
    runner.limits.cancel = Duration::from_millis(30);
    (runner, counter)
}

/// Two writers of one row: the second waits for the first.
fn two_writers() -> Case {
    steps(
        TWO_ROWS,
        "s1> begin;
         s2> begin;
         s1> update t set v = 11 where id = 1;
         s2> update t set v = 12 where id = 1;
         s1> commit;
         s2> commit;",
    )
}

fn at(number: u64, act: Act) -> Script {
    Box::new(move |call, _| (call == number).then(|| act.clone()))
}

fn rows(history: &History) -> String {
    isolde_model::value::show_rows(&history.final_state[0].rows)
}

#[test]
fn a_scripted_engine_waits_and_resumes_as_a_real_one() {
    for waiting in WAYS {
        let (mut runner, _) = runner(waiting, Box::new(|_, _| None));
        let history = runner.run(&two_writers(), None).unwrap();
        assert!(history.outcome(3).waited, "{waiting:?}: {history:#?}");
        assert_eq!(history.ending("s2"), Some(TxEnd::Committed), "{waiting:?}");
        assert_eq!(rows(&history), "(1, 12) (2, 20)", "{waiting:?}");
    }
}

#[test]
fn a_server_failure_at_any_call_is_in_the_history_and_the_next_run_is_sound() {
    for (waiting, act, how) in [
        (Waiting::Retry, Act::Die, FailureKind::Died),
        (Waiting::Probe, Act::Die, FailureKind::Died),
        (Waiting::Probe, Act::DieUnseen, FailureKind::Died),
        (Waiting::Probe, Act::StandStill, FailureKind::Hangs),
        (Waiting::Retry, Act::StandStill, FailureKind::Hangs),
    ] {
        let case = two_writers();
        let (mut calm, counter) = runner(waiting, Box::new(|_, _| None));
        calm.run(&case, None).unwrap();
        let (mut fell, all) = (0, counter.calls());
        for number in 1..=all {
            let (mut runner, counter) = runner(waiting, at(number, act.clone()));
            let first = runner.run(&case, None).unwrap();
            match &first.death {
                Some(death) => {
                    assert_eq!(death.how, how, "call {number}: {death}");
                    assert_eq!(death.log.as_deref(), Some("the log of the script"));
                    assert!(runner.is_down());
                    fell += 1;
                }
                // The call belonged to clearing the database, before the run began.
                None => assert_eq!(rows(&first), "(1, 12) (2, 20)", "call {number}"),
            }
            let second = runner.run(&case, None).unwrap();
            assert!(second.death.is_none(), "{waiting:?}, call {number}: {:?}", second.death);
            assert_eq!(rows(&second), "(1, 12) (2, 20)", "{waiting:?}, call {number}");
            assert_eq!(counter.revived(), 1, "{waiting:?}, call {number}: {first:#?}");
        }
        assert!(fell + 1 >= all, "{waiting:?}: {fell} of {all}");
    }
}

#[test]
fn a_statement_that_ignores_cancel_is_a_hang() {
    for waiting in [Waiting::Retry, Waiting::Probe, Waiting::Never, Waiting::Timeout] {
        let script = |_: u64, call: &Call| {
            let endless = matches!(call, Call::Start(sql) if sql.contains("set v = 11"));
            endless.then_some(Act::NeverEnd)
        };
        let (mut runner, _) = runner(waiting, Box::new(script));
        let history = runner.run(&two_writers(), None).unwrap();
        let death = history.death.as_ref().unwrap_or_else(|| panic!("{waiting:?}: {history:#?}"));
        assert_eq!(death.how, FailureKind::Hangs, "{waiting:?}");
        assert!(death.why.contains("cancelled") && death.why.contains("set v = 11"), "{death}");
        assert_eq!(history.ending("s1"), Some(TxEnd::Lost), "{waiting:?}");
    }
}

#[test]
fn a_server_that_cannot_be_revived_is_an_error() {
    let script = |number: u64, call: &Call| match call {
        Call::Revive => Some(Act::Die),
        _ => (number == 20).then_some(Act::Die),
    };
    let (mut runner, counter) = runner(Waiting::Probe, Box::new(script));
    let _ = runner.run(&two_writers(), None);
    let error = runner.run(&two_writers(), None).unwrap_err();
    assert!(matches!(error, RunError::NotRestored(_)), "{error}");
    assert!(error.to_string().contains("did not come back"), "{error}");
    assert_eq!(counter.revived(), 0);
}

#[test]
fn a_nonsensical_response_is_recorded_unchanged() {
    let odd = Outcome::Rows { columns: vec!["x".into()], rows: vec![Vec::new()] };
    let case = two_writers();
    let (mut calm, counter) = runner(Waiting::Probe, Box::new(|_, _| None));
    calm.run(&case, None).unwrap();
    for number in 1..=counter.calls() {
        for answer in [odd.clone(), Outcome::Affected(u64::MAX), Outcome::Done] {
            let (mut runner, _) = runner(Waiting::Probe, at(number, Act::Answer(answer)));
            // The run ends, whatever the response was.
            let _ = runner.run(&case, None);
        }
    }
}

//! Histories in a few words, and what the oracles make of them.

mod replay;

use super::*;
use isolde_model::case;
use isolde_model::difference::Difference;
use isolde_model::executed_transactions::ExecutedTransaction;
use isolde_model::history::{
    DbError, ErrorClass, ErrorEffect, Event, EventKind, FinalRows, Transaction, TxEnd,
};
use isolde_model::inquiry::{Inquiry, Request, Response};
use isolde_model::value::Value;
use isolde_model::{Case, History};
use std::cell::Cell;

fn case_of(steps: &str) -> Case {
    case::parse(&format!("case: t\nlevel: serializable\n{steps}")).expect("a case")
}

/// A history in which every statement is answered at once, in the order of
/// the case; `reply` says how.
fn history_of(case: &Case, finals: &[i64], reply: impl Fn(&str) -> EventKind) -> History {
    let mut history = History {
        isolde: String::new(),
        case: case.id.clone(),
        on: Default::default(),
        level: case.level,
        seed: None,
        steps: (0..case.steps.len())
            .map(|i| isolde_model::history::SentStep::of(case, i))
            .collect(),
        events: Vec::new(),
        transactions: Vec::new(),
        final_state: vec![FinalRows {
            query: "select v from t".into(),
            columns: vec!["v".into()],
            rows: finals.iter().map(|v| vec![Value::Int(*v)]).collect(),
            error: None,
        }],
        death: None,
    };
    let mut open: Vec<(String, usize)> = Vec::new();
    for (i, step) in case.steps.iter().enumerate() {
        let mut push = |what| {
            history.events.push(Event { session: step.session.clone(), step: Some(i), what })
        };
        push(EventKind::Sent { as_sql: None });
        push(reply(&step.sql));
        let mine = open.iter().position(|(s, _)| *s == step.session);
        match step.sql.as_str() {
            "begin" => {
                open.push((step.session.clone(), history.transactions.len()));
                history.transactions.push(transaction(&step.session, i, false, TxEnd::RolledBack));
            }
            "commit" | "rollback" => {
                let (_, t) = open.remove(mine.expect("a transaction"));
                let commits = step.sql == "commit";
                let how = if commits { TxEnd::Committed } else { TxEnd::RolledBack };
                history.transactions[t].how = how;
                let what = EventKind::Ended { transaction: t, how };
                history.events.push(Event { session: step.session.clone(), step: Some(i), what });
            }
            _ if mine.is_none() && step.kind() != isolde_sql::Kind::Other => {
                history.transactions.push(transaction(&step.session, i, true, TxEnd::Committed));
            }
            _ => {}
        }
    }
    history
}

fn transaction(session: &str, begin: usize, autocommit: bool, how: TxEnd) -> Transaction {
    Transaction { session: session.into(), begin, autocommit, how }
}

fn answered(sql: &str) -> EventKind {
    match isolde_sql::kind(sql) {
        isolde_sql::Kind::Write => EventKind::Affected { count: 1 },
        isolde_sql::Kind::Select => EventKind::Rows { columns: vec!["v".into()], rows: Vec::new() },
        _ => EventKind::Done,
    }
}

const TWO: &str = "s1> begin;\ns2> begin;\ns1> update t set v = 1;\ns2> update t set v = 2;\n\
                   s1> select v from t;\ns2> commit;\ns1> commit;\n";

/// What an oracle says when each run that it asks for comes out so.
fn judge(
    oracle: Oracle,
    run: &ConcurrentRun<'_>,
    serial: impl Fn(&Case) -> History,
) -> OracleVerdict {
    let inquiry = Inquiry::new(|channel| async move { oracle.inquire(run, &channel).await });
    let judged = inquiry.answered_by(|question| match question {
        Request::Run(case) => Ok(Response::Ran(Box::new(serial(&case)))),
        Request::RunOnFixture(..) => Err("there are no tables here"),
        Request::Evaluate(_) => Err("nothing is evaluated without a schema"),
    });
    judged.unwrap().verdict
}

/// The same of one that must not ask for anything.
fn judge_alone(oracle: Oracle, run: &ConcurrentRun<'_>) -> OracleVerdict {
    judge(oracle, run, |_| panic!("{oracle} asks for a run"))
}

fn judge_tx(concurrent: &History, serial: &History, case: &Case, ordered: bool) -> OracleVerdict {
    let run = ConcurrentRun::new(case, concurrent, ordered);
    judge(Oracle::TxWss, &run, |_| serial.clone())
}

#[test]
fn equal_rows_in_another_order_are_consistent_and_other_rows_are_not() {
    let case = case_of(TWO);
    let concurrent = history_of(&case, &[1, 2], answered);
    let run = ConcurrentRun::new(&case, &concurrent, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    let same = history_of(&replay.case, &[2, 1], answered);
    assert_eq!(judge_tx(&concurrent, &same, &case, false), OracleVerdict::Consistent);
    let other = history_of(&replay.case, &[2, 2], answered);
    let verdict = judge_tx(&concurrent, &other, &case, false);
    let differences = verdict.differences().expect("a violation");
    assert!(matches!(&differences[0], Difference::Final { only_concurrent, only_serial, .. }
        if *only_concurrent == [[Value::Int(1)]] && *only_serial == [[Value::Int(2)]]));
}

#[test]
fn a_write_that_changes_another_number_of_rows_is_a_violation() {
    let case = case_of(TWO);
    let concurrent = history_of(&case, &[1], answered);
    let run = ConcurrentRun::new(&case, &concurrent, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    let serial = history_of(&replay.case, &[1], |sql| match sql {
        "update t set v = 1" => EventKind::Affected { count: 2 },
        sql => answered(sql),
    });
    let verdict = judge_tx(&concurrent, &serial, &case, false);
    assert!(matches!(&verdict.differences().unwrap()[0],
        Difference::Affected { label, concurrent: 1, serial: 2, .. } if label == "s1.2"));
}

#[test]
fn a_write_that_fails_in_one_run_only_is_a_violation() {
    let case = case_of(TWO);
    let concurrent = history_of(&case, &[1], answered);
    let run = ConcurrentRun::new(&case, &concurrent, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    let serial = history_of(&replay.case, &[1], |sql| match sql {
        "update t set v = 2" => EventKind::Error(DbError {
            code: "1062".into(),
            sqlstate: None,
            message: "duplicate".into(),
            class: ErrorClass::Constraint,
            effect: ErrorEffect::Statement,
        }),
        sql => answered(sql),
    });
    let verdict = judge_tx(&concurrent, &serial, &case, false);
    assert_eq!(verdict.differences().unwrap()[0].kind(), "success");
}

#[test]
fn reads_are_compared_only_where_the_serial_order_is_the_commit_order() {
    let case = case_of(TWO);
    let concurrent = history_of(&case, &[1], answered);
    let reads = |ordered: bool| {
        let run = ConcurrentRun::new(&case, &concurrent, ordered);
        judge(Oracle::SerialReads, &run, |case| {
            history_of(case, &[1], |sql| match sql {
                "select v from t" => {
                    EventKind::Rows { columns: vec!["v".into()], rows: vec![vec![Value::Int(9)]] }
                }
                sql => answered(sql),
            })
        })
    };
    assert_eq!(reads(true).differences().unwrap()[0].kind(), "read");
    assert!(matches!(reads(false), OracleVerdict::Unknown(_)));
}

#[test]
fn reads_that_skip_locked_rows_are_not_compared() {
    let reads = |sql: &str| {
        let case = case_of(&format!("s1> begin;\ns1> {sql};\ns1> commit;\n"));
        let concurrent = history_of(&case, &[1], answered);
        let run = ConcurrentRun::new(&case, &concurrent, true);
        judge(Oracle::SerialReads, &run, |case| {
            history_of(case, &[1], |sql| match answered(sql) {
                EventKind::Rows { columns, .. } => {
                    EventKind::Rows { columns, rows: vec![vec![Value::Int(9)]] }
                }
                other => other,
            })
        })
    };
    assert_eq!(reads("select v from t for update skip locked"), OracleVerdict::Consistent);
    assert!(reads("select v from t where a = 'skip locked' for update").differences().is_some());
    assert!(reads("select v from t as skip").differences().is_some());
    let opaque = "select v from t join u using (a) for update skip locked";
    assert_eq!(reads(opaque), OracleVerdict::Consistent);
}

#[test]
fn a_lost_transaction_makes_the_verdict_unknown_and_is_a_crash() {
    let case = case_of(TWO);
    let mut history = history_of(&case, &[1], |sql| match sql {
        "update t set v = 2" => EventKind::Error(DbError::lost("gone")),
        sql => answered(sql),
    });
    history.transactions[1].how = TxEnd::Lost;
    assert!(matches!(judge_tx(&history, &history, &case, false), OracleVerdict::Unknown(_)));
    let run = ConcurrentRun::new(&case, &history, false);
    assert_eq!(judge_alone(Oracle::Crash, &run).differences().unwrap().len(), 1);
    let fine = history_of(&case, &[1], answered);
    let run = ConcurrentRun::new(&case, &fine, false);
    assert_eq!(judge_alone(Oracle::Crash, &run), OracleVerdict::Consistent);
}

#[test]
fn unseen_orders_are_all_permutations_that_keep_each_session_in_order() {
    let case = case_of(
        "s1> update t set v = 1;\ns2> update t set v = 2;\ns1> update t set v = 3;\n\
         s3> update t set v = 4;\n",
    );
    let seen = history_of(&case, &[], answered);
    let mut together = seen.clone();
    together.events.sort_by_key(|e| !matches!(e.what, EventKind::Sent { .. }));
    let run = ConcurrentRun::new(&case, &together, false);
    let label =
        |order: &Vec<&ExecutedTransaction>| order.iter().map(|t| t.steps[0]).collect::<Vec<_>>();
    let mut found: Vec<Vec<usize>> = unseen_orders(&run, 100).iter().map(label).collect();
    found.push(vec![0, 1, 2, 3]);
    found.sort();
    // By brute force: every arrangement of the four in which 0 is before 2.
    let mut expected = Vec::new();
    for code in 0..256usize {
        let order: Vec<usize> = (0..4).map(|i| code >> (2 * i) & 3).collect();
        let at = |x| order.iter().position(|y| *y == x);
        if (0..4).all(|x| at(x).is_some()) && at(0) < at(2) {
            expected.push(order);
        }
    }
    expected.sort();
    assert_eq!(found, expected);
    // Each ended at a moment of its own, so the order was seen.
    let run = ConcurrentRun::new(&case, &seen, false);
    assert!(unseen_orders(&run, 100).is_empty());
}

/// The history with the runner's cancel before the reply to this statement.
fn with_cancel(mut history: History, sql: &str) -> History {
    let of = |e: &Event| e.step.is_some_and(|s| history.steps[s].sql == sql);
    let at = history.events.iter().position(|e| of(e) && !matches!(e.what, EventKind::Sent { .. }));
    let cancelled = Event { what: EventKind::Cancelled, ..history.events[at.unwrap()].clone() };
    history.events.insert(at.unwrap(), cancelled);
    history
}

#[test]
fn cancelled_run_is_unknown_to_every_oracle() {
    let case = case_of(TWO);
    let whole = || history_of(&case, &[1], answered);
    let lost = history_of(&case, &[1], |sql| match sql {
        "update t set v = 2" => EventKind::Error(DbError::lost("gone")),
        sql => answered(sql),
    });
    let serial = whole();
    for cancelled in [whole(), lost] {
        let cancelled = with_cancel(cancelled, "update t set v = 2");
        let run = ConcurrentRun::new(&case, &cancelled, true);
        for oracle in ORACLES {
            let verdict = judge_alone(*oracle, &run);
            assert!(matches!(&verdict, OracleVerdict::Unknown(why) if why.contains("cancelled")));
        }
    }
    let run = ConcurrentRun::new(&case, &serial, true);
    let cancelled = with_cancel(whole(), "update t set v = 2");
    for oracle in ORACLES {
        let asked = Cell::new(false);
        let verdict = judge(*oracle, &run, |_| {
            asked.set(true);
            cancelled.clone()
        });
        let unknown = matches!(&verdict, OracleVerdict::Unknown(why) if why.contains("serial"));
        assert!(unknown || !asked.get(), "{oracle}");
    }
}

#[test]
fn server_crash_counts_despite_a_cancelled_statement() {
    let case = case_of(TWO);
    let history = history_of(&case, &[1], |sql| match sql {
        "update t set v = 2" => EventKind::Error(DbError::lost("gone")),
        sql => answered(sql),
    });
    let history = with_cancel(history, "update t set v = 1");
    let run = ConcurrentRun::new(&case, &history, false);
    assert!(matches!(judge_alone(Oracle::Crash, &run), OracleVerdict::Violated(_)));
}

#[test]
fn a_deadlock_of_the_first_statement_without_autocommit_leaves_the_verdict_open() {
    let judged = |first: &str| {
        let case = case_of(&format!("s1> {first};\ns1> update t set v = 1;\ns1> commit;\n"));
        let mut history = history_of(&case_of("s1> select 1;\n"), &[1], answered);
        history.transactions = vec![transaction("s1", 1, true, TxEnd::Aborted)];
        history.steps = history_of(&case_of("s2> select 1;\n"), &[], answered).steps;
        history.events = vec![Event {
            session: "s1".into(),
            step: Some(1),
            what: EventKind::Error(DbError {
                code: "1213".into(),
                sqlstate: None,
                message: String::new(),
                class: ErrorClass::Deadlock,
                effect: ErrorEffect::RolledBack,
            }),
        }];
        let mut run = ConcurrentRun::new(&case, &history, false);
        run.executed.clear();
        // The reference model does not need to know which transaction was meant.
        assert_eq!(run.unknown_history(), None);
        run.unknown().is_some()
    };
    assert!(judged("set autocommit = 0"));
    assert!(judged("set sql_mode = '', @@session.autocommit = 0"));
    assert!(!judged("set autocommit = 1"));
    assert!(!judged("insert into t values ('autocommit')"));
    assert!(!judged("set names utf8"));
}

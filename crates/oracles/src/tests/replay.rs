//! What is replayed serially of a run.

use super::*;

fn sql_of(replay: &Replay) -> Vec<String> {
    replay.case.steps.iter().map(|s| format!("{}> {}", s.session, s.sql)).collect()
}

#[test]
fn transactions_are_replayed_in_the_order_of_their_commits_without_reads() {
    let case = case_of(TWO);
    let history = history_of(&case, &[1], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    assert_eq!(
        sql_of(&replay),
        [
            "s2> begin",
            "s2> update t set v = 2",
            "s2> commit",
            "s1> begin",
            "s1> update t set v = 1",
            "s1> commit"
        ]
    );
    assert_eq!(replay.origin, [1, 3, 5, 0, 2, 6]);
}

#[test]
fn statements_are_replayed_by_themselves_without_their_transactions() {
    let case = case_of(TWO);
    let history = history_of(&case, &[1], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    let replay = serial_statements(&run, &run.committed()).expect("no savepoints");
    assert_eq!(
        sql_of(&replay),
        ["autocommit> update t set v = 2", "autocommit> update t set v = 1"]
    );
}

#[test]
fn statements_undone_by_rollback_to_are_neither_replayed_alone_nor_compared() {
    let case = case_of(
        "s1> begin;\ns1> update t set v = 1;\ns1> savepoint a;\ns1> update t set v = 2;\n\
         s1> savepoint \"b c\";\ns1> update t set v = 3;\ns1> rollback to savepoint A;\n\
         s1> update t set v = 4;\ns1> commit;\n",
    );
    let history = history_of(&case, &[4], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    assert_eq!(run.executed[0].undone, [3, 4, 5]);
    let replay = serial_statements(&run, &run.committed()).expect("only plain statements");
    assert_eq!(
        sql_of(&replay),
        ["autocommit> update t set v = 1", "autocommit> update t set v = 4"]
    );
    let whole = serial_transactions(&run, &run.committed(), false);
    assert_eq!(whole.case.steps.len(), 9);
    let other_count = |changed: &'static str| {
        let serial = history_of(&whole.case, &[4], move |sql| match sql {
            sql if sql == changed => EventKind::Affected { count: 7 },
            sql => answered(sql),
        });
        judge_tx(&history, &serial, &case, false)
    };
    assert_eq!(other_count("update t set v = 3"), OracleVerdict::Consistent);
    assert!(other_count("update t set v = 4").differences().is_some());
}

#[test]
fn a_released_savepoint_cannot_be_rolled_back_to() {
    let case = case_of(
        "s1> begin;\ns1> savepoint a;\ns1> update t set v = 1;\ns1> release savepoint a;\n\
         s1> rollback to savepoint a;\ns1> commit;\n",
    );
    let run = history_of(&case, &[], answered);
    assert!(ConcurrentRun::new(&case, &run, false).executed[0].undone.is_empty());
}

#[test]
fn prepared_statements_are_not_replayed_by_themselves() {
    let case = case_of("s1> begin;\ns1> execute p1;\ns1> commit;\n");
    let history = history_of(&case, &[], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    assert!(serial_statements(&run, &run.committed()).is_none());
    let verdict = judge_alone(Oracle::StmtWss, &run);
    assert!(matches!(verdict, OracleVerdict::Unknown(why) if why.contains("not known")));
}

#[test]
fn rolled_back_transaction_is_not_replayed() {
    let case = case_of("s1> begin;\ns1> update t set v = 1;\ns1> rollback;\ns2> delete from t;\n");
    let history = history_of(&case, &[], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    assert_eq!(sql_of(&replay), ["s2> delete from t"]);
}

#[test]
fn autocommit_switched_off_is_replayed_before_its_transaction() {
    let case = case_of(
        "s1> set autocommit = 0;\ns1> savepoint a;\ns2> delete from t;\ns1> begin;\ns1> commit;\n",
    );
    let mut history = history_of(&case, &[], answered);
    // MySQL opens no transaction for a SAVEPOINT.
    history.transactions.retain(|t| t.begin != 1);
    history.transactions[0].begin = 2;
    history.transactions[1].begin = 3;
    for event in &mut history.events {
        if let EventKind::Ended { transaction, .. } = &mut event.what {
            *transaction = 1;
        }
    }
    let run = ConcurrentRun::new(&case, &history, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    assert_eq!(
        sql_of(&replay),
        [
            "s2> delete from t",
            "s1> set autocommit = 0",
            "s1> savepoint a",
            "s1> begin",
            "s1> commit"
        ]
    );
}

#[test]
fn statement_that_failed_by_a_conflict_is_not_replayed() {
    let case = case_of("s1> begin;\ns1> update t set v = 1;\ns1> delete from t;\ns1> commit;\n");
    let timeout = |class| {
        EventKind::Error(DbError {
            code: "1205".into(),
            sqlstate: None,
            message: String::new(),
            class,
            effect: ErrorEffect::Statement,
        })
    };
    let failing = |class: ErrorClass| {
        let reply = move |sql: &str| {
            if sql.starts_with("update") { timeout(class) } else { answered(sql) }
        };
        let history = history_of(&case, &[], reply);
        let run = ConcurrentRun::new(&case, &history, false);
        sql_of(&serial_transactions(&run, &run.committed(), false)).len()
    };
    assert_eq!(failing(ErrorClass::LockTimeout), 3);
    assert_eq!(failing(ErrorClass::Serialization), 3);
    // A broken constraint is broken in a serial run, too.
    assert_eq!(failing(ErrorClass::Constraint), 4);
}

#[test]
fn execute_by_itself_is_replayed_after_its_prepare() {
    let case = case_of("s1> prepare p from 'delete from t';\ns2> delete from t;\ns1> execute p;\n");
    let history = history_of(&case, &[], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    let replay = serial_transactions(&run, &run.committed(), false);
    assert_eq!(
        sql_of(&replay),
        ["s2> delete from t", "s1> prepare p from 'delete from t'", "s1> execute p"]
    );
}

#[test]
fn every_replay_is_a_case_that_can_be_written_down() {
    // Of s1 nothing is replayed, s2 and s3 are at one level.
    let case = case_of(
        "level s1: serializable\nlevel s2: repeatable read\nlevel s3: repeatable read\n\
         s1> begin;\ns2> delete from t;\ns3> delete from t;\ns1> select v from t;\ns1> rollback;\n",
    );
    let history = history_of(&case, &[], answered);
    let run = ConcurrentRun::new(&case, &history, false);
    for replay in [
        serial_transactions(&run, &run.committed(), false),
        serial_statements(&run, &run.committed()).expect("only plain statements"),
    ] {
        let text = isolde_model::case::format(&replay.case);
        let read = isolde_model::case::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(read.steps.len(), 2, "{text}");
    }
}

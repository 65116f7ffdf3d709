//! What separates a bug from different locking, and what a snapshot belongs to.

use super::runs::{assert_allowed, breaks, two};
use super::{ScriptedRun, changed, error, rows};
use crate::Conclusion;
use isolde_model::Level::{ReadCommitted, RepeatableRead};
use isolde_model::history::{ErrorClass, EventKind};

const SET: &str = "update t set v = v + 1 where id = 1";

fn differs_only_in_locking(run: &ScriptedRun) -> bool {
    match run.predicted() {
        Conclusion::LockingDiffers { rest, .. } => rest.is_none(),
        _ => false,
    }
}

/// s2 writes the row that s1 has locked and not changed, without waiting.
fn ignores_a_lock(left: i64) -> ScriptedRun {
    two("postgres", ReadCommitted)
        .does("s1", "select v from t where id = 1 for update", rows(&[10]))
        .does("s2", SET, changed(1))
        .does("s2", "commit", EventKind::Done)
        .does("s1", "commit", EventKind::Done)
        .leaves(&[(1, left), (2, 20)])
}

#[test]
fn missing_wait_with_right_results_is_a_lead() {
    assert!(differs_only_in_locking(&ignores_a_lock(11)));
}

#[test]
fn missing_wait_with_a_wrong_result_is_a_bug_of_that_statement() {
    let run = ignores_a_lock(10);
    assert!(matches!(run.predicted(), Conclusion::Broken { .. }));
    assert_eq!(breaks(&run, Some("s2.2")), "P12");
}

#[test]
fn missing_wait_that_leaves_a_duplicate_key_is_a_bug() {
    let run = two("postgres", ReadCommitted)
        .does("s1", "insert into t values (3, 1)", changed(1))
        .does("s2", "insert into t values (3, 2)", changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, 10), (2, 20), (3, 1), (3, 2)]);
    assert!(matches!(run.predicted(), Conclusion::Broken { .. }), "{:?}", run.predicted());
}

#[test]
fn abort_without_a_reason_is_a_lead_and_a_constraint_error_is_a_bug() {
    let run = |class| {
        ScriptedRun::on("postgres", RepeatableRead, &[(1, 10), (2, 20)])
            .does("s1", SET, error(class))
            .leaves(&[(1, 10), (2, 20)])
    };
    assert!(differs_only_in_locking(&run(ErrorClass::Serialization)));
    assert!(matches!(run(ErrorClass::Constraint).predicted(), Conclusion::Broken { .. }));
}

/// s2 runs a SELECT without a table, s1 commits a change, and s2 reads the row.
fn select_without_a_table(engine: &str, seen: i64) -> ScriptedRun {
    ScriptedRun::on(engine, RepeatableRead, &[(1, 10), (2, 20)])
        .does("s2", "begin", EventKind::Done)
        .does("s2", "select 1", rows(&[1]))
        .does("s1", SET, changed(1))
        .does("s2", "select v from t where id = 1", rows(&[seen]))
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, 11), (2, 20)])
}

#[test]
fn select_without_a_table_takes_a_snapshot_on_postgres_only() {
    assert_allowed(&select_without_a_table("postgres", 10));
    assert_eq!(breaks(&select_without_a_table("postgres", 11), Some("s2.3")), "P7");
    assert_allowed(&select_without_a_table("mysql", 11));
    assert_eq!(breaks(&select_without_a_table("mysql", 10), Some("s2.3")), "I1");
}

const CHILD: &str = "create table c (id int primary key, p int references t (id), n int)";

/// s1 updates a child row without its key, once or twice; s2 locks the parent.
fn child_updates(times: usize, waits: bool) -> ScriptedRun {
    let mut run = ScriptedRun::on("postgres", ReadCommitted, &[(1, 10)])
        .with_table(CHILD, &[&[1, 1, 0]])
        .does("s1", "begin", EventKind::Done);
    for _ in 0..times {
        run = run.does("s1", "update c set n = n + 1", changed(1));
    }
    let lock = "select v from t where id = 1 for update";
    match waits {
        true => {
            run.waits("s2", lock).does("s1", "commit", EventKind::Done).replies("s2", rows(&[10]))
        }
        false => run.does("s2", lock, rows(&[10])).does("s1", "commit", EventKind::Done),
    }
}

#[test]
fn second_update_of_a_child_locks_its_parent() {
    assert_allowed(&child_updates(1, false));
    assert_allowed(&child_updates(2, true));
    assert!(differs_only_in_locking(&child_updates(1, true)));
    assert!(differs_only_in_locking(&child_updates(2, false)));
}

/// s2 inserts a key that is taken and one that s1 is inserting; s1 deletes both.
fn ignores_conflicts(count: u64) -> ScriptedRun {
    let left: &[(i64, i64)] = if count == 2 { &[(1, 0), (2, 0)] } else { &[(2, 0)] };
    ScriptedRun::on("postgres", ReadCommitted, &[(1, 0)])
        .does("s1", "begin", EventKind::Done)
        .does("s1", "insert into t values (2, 0)", changed(1))
        .waits("s2", "insert into t values (1, 0), (2, 0) on conflict do nothing")
        .does("s1", "delete from t", changed(2))
        .does("s1", "commit", EventKind::Done)
        .replies("s2", changed(count))
        .leaves(left)
}

#[test]
fn row_that_was_taken_before_a_wait_is_not_checked_again() {
    assert_allowed(&ignores_conflicts(1));
    assert_allowed(&ignores_conflicts(2));
    assert!(matches!(ignores_conflicts(0).predicted(), Conclusion::Broken { .. }));
}

#[test]
fn returning_gives_the_written_versions() {
    let run = |sql: &str, returned: &[i64], left: &[(i64, i64)]| {
        ScriptedRun::on("postgres", ReadCommitted, &[(1, 10), (2, 20)])
            .does("s1", sql, rows(returned))
            .leaves(left)
    };
    let update = "update t set v = v + 1 where id = 1 returning v";
    assert_allowed(&run(update, &[11], &[(1, 11), (2, 20)]));
    assert_eq!(breaks(&run(update, &[10], &[(1, 11), (2, 20)]), Some("s1.1")), "P2");
    let delete = "delete from t where id = 2 returning v * 2";
    assert_allowed(&run(delete, &[40], &[(1, 10)]));
    assert_eq!(breaks(&run(delete, &[], &[(1, 10)]), Some("s1.1")), "P2");
    let insert = "insert into t values (3, 30), (1, 0) on conflict do nothing returning id";
    assert_allowed(&run(insert, &[3], &[(1, 10), (2, 20), (3, 30)]));
    let nothing = "update t set v = 0 where id = 9 returning v";
    assert_allowed(&run(nothing, &[], &[(1, 10), (2, 20)]));
}

#[test]
fn named_key_of_on_conflict_covers_no_other_key() {
    let table = "create table t (id int primary key, v int unique)";
    let run = |outcome, left: &[(i64, i64)]| {
        ScriptedRun::on("postgres", ReadCommitted, &[])
            .in_table(table, &[&[1, 10]])
            .does("s1", "insert into t values (2, 10) on conflict (id) do nothing", outcome)
            .leaves(left)
    };
    assert_allowed(&run(error(ErrorClass::Constraint), &[(1, 10)]));
    assert_eq!(breaks(&run(changed(0), &[(1, 10)]), Some("s1.1")), "P10");
    let same = ScriptedRun::on("postgres", ReadCommitted, &[])
        .in_table(table, &[&[1, 10]])
        .does("s1", "insert into t values (1, 11) on conflict (id) do nothing", changed(0))
        .leaves(&[(1, 10)]);
    assert_allowed(&same);
}

#[test]
fn execute_runs_the_statement_that_its_session_prepared() {
    let run = |seen: i64, left: i64| {
        two("mysql", ReadCommitted)
            .does("s1", "prepare p from 'update t set v = v + 1 where id = 1'", EventKind::Done)
            .does("s2", "prepare p from 'select v from t where id = 1'", EventKind::Done)
            .does("s1", "execute p", changed(1))
            .does("s2", "execute p", rows(&[seen]))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, left), (2, 20)])
    };
    assert_allowed(&run(10, 11));
    assert_eq!(breaks(&run(11, 11), Some("s2.3")), "I2");
    assert!(matches!(run(10, 10).predicted(), Conclusion::Broken { step: None, .. }));
}

#[test]
fn index_that_is_not_unique_changes_no_result_on_postgres() {
    let run = |sql: &str, engine: &str| {
        ScriptedRun::on(engine, ReadCommitted, &[(1, 10)])
            .does("s1", sql, EventKind::Done)
            .does("s1", "select v from t", rows(&[10]))
            .leaves(&[(1, 10)])
    };
    assert_allowed(&run("create index i on t (v)", "postgres"));
    let unmodelled = |run: ScriptedRun| matches!(run.predicted(), Conclusion::NotModelled { .. });
    assert!(unmodelled(run("create unique index i on t (v)", "postgres")));
    assert!(unmodelled(run("create index i on t (v)", "mysql")));
}

#[test]
fn execute_of_an_unknown_statement_must_fail() {
    let run = |outcome| {
        ScriptedRun::on("mysql", ReadCommitted, &[(1, 10)])
            .does("s1", "execute p", outcome)
            .leaves(&[(1, 10)])
    };
    assert_allowed(&run(error(ErrorClass::Other)));
    assert!(matches!(run(changed(1)).predicted(), Conclusion::NotModelled { .. }));
}

#[test]
fn blocked_execute_may_have_locked_the_rows_of_its_statement() {
    let run = |skipped: &[i64]| {
        ScriptedRun::on("postgres", ReadCommitted, &[(1, 10), (2, 20)])
            .does("s1", "prepare p as select v from t for update", EventKind::Done)
            .does("s2", "begin", EventKind::Done)
            .does("s2", "update t set v = 21 where id = 2", changed(1))
            .waits("s1", "execute p")
            .does("s3", "select v from t for update skip locked", rows(skipped))
            .does("s2", "commit", EventKind::Done)
            .replies("s1", rows(&[10, 21]))
            .leaves(&[(1, 10), (2, 21)])
    };
    assert_allowed(&run(&[]));
    assert_allowed(&run(&[10]));
    assert!(matches!(run(&[11]).predicted(), Conclusion::Broken { .. }));
}

#[test]
fn result_set_of_a_write_without_returning_is_no_row_count() {
    let run = ScriptedRun::on("postgres", ReadCommitted, &[(1, 10)])
        .does("s1", "delete from t where id = 9", rows(&[0]))
        .leaves(&[(1, 10)]);
    assert!(matches!(run.predicted(), Conclusion::NotModelled { .. }));
}

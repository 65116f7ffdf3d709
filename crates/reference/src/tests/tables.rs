//! TRUNCATE, LIMIT without an order, and constraints that are not modelled.

use super::runs::{assert_allowed, breaks, two};
use super::{ScriptedRun, changed, error, rows};
use crate::Conclusion;
use isolde_model::Level::{ReadCommitted, RepeatableRead, Serializable};
use isolde_model::history::{ErrorClass, EventKind};

/// s1 has a snapshot when s2 truncates the table.
fn truncated(ends: &str, seen: &[i64], left: &[(i64, i64)]) -> ScriptedRun {
    two("postgres", RepeatableRead)
        .does("s1", "select 1", rows(&[1]))
        .does("s2", "truncate t", EventKind::Done)
        .does("s2", "select v from t", rows(&[]))
        .does("s2", "insert into t values (1, 5)", changed(1))
        .does("s2", ends, EventKind::Done)
        .does("s1", "select v from t", rows(seen))
        .does("s1", "commit", EventKind::Done)
        .leaves(left)
}

#[test]
fn committed_truncate_empties_the_table_for_every_snapshot() {
    assert_allowed(&truncated("commit", &[], &[(1, 5)]));
    // Only rows that were there before are gone from all snapshots.
    assert_eq!(breaks(&truncated("commit", &[10, 20], &[(1, 5)]), Some("s1.3")), "P7");
    assert_eq!(breaks(&truncated("commit", &[5], &[(1, 5)]), Some("s1.3")), "P7");
}

#[test]
fn truncate_that_is_rolled_back_has_no_effect() {
    let before = [(1, 10), (2, 20)];
    assert_allowed(&truncated("rollback", &[10, 20], &before));
    assert_eq!(breaks(&truncated("rollback", &[], &before), Some("s1.3")), "P7");
}

fn is_not_modelled(run: &ScriptedRun) -> bool {
    matches!(run.predicted(), Conclusion::NotModelled { .. })
}

fn locks(sql: &str, returned: &[i64]) -> ScriptedRun {
    let first = [(1, 10), (2, 10), (3, 30)];
    ScriptedRun::on("postgres", ReadCommitted, &first).does("s1", "begin", EventKind::Done).does(
        "s1",
        sql,
        rows(returned),
    )
}

#[test]
fn limit_without_an_order_is_decided_where_it_leaves_equal_rows_or_all() {
    let all = "select v from t where id = 3 limit 1 for update";
    assert_allowed(&locks(all, &[30]));
    assert_eq!(breaks(&locks(all, &[10]), Some("s1.2")), "P2");
    let equal = "select v from t where v = 10 limit 1 for update";
    assert_allowed(&locks(equal, &[10]));
    assert_eq!(breaks(&locks(equal, &[10, 10]), Some("s1.2")), "P2");
    assert!(is_not_modelled(&locks("select v from t limit 1 for update", &[10])));
}

#[test]
fn read_that_skips_locks_may_skip_any_of_the_rows_that_limit_chose_from() {
    let one = || locks("select v from t where v = 10 limit 1 for update", &[10]);
    let skips = |returned: &[i64]| {
        one().does("s2", "select v from t for update skip locked", rows(returned))
    };
    assert_allowed(&skips(&[10, 30]));
    assert_eq!(breaks(&skips(&[10, 31]), Some("s2.1")), "P2");
    let waits = one().waits("s2", "update t set v = 11 where id = 2");
    assert_allowed(&waits);
}

#[test]
fn row_that_limit_may_have_chosen_and_another_transaction_holds_is_not_modelled() {
    let run = two("postgres", ReadCommitted)
        .does("s1", "update t set v = 10 where id = 2", changed(1))
        .does("s2", "select 1 from t limit 1 for update", rows(&[1]));
    assert!(is_not_modelled(&run));
}

#[test]
fn write_that_a_trigger_may_refuse_may_fail_and_others_may_not() {
    let run = |class: ErrorClass| {
        two("postgres", ReadCommitted)
            .does("s1", "update t set v = 11 where id = 1", error(class))
            .does("s1", "rollback", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 10), (2, 20)])
    };
    let mut triggered = run(ErrorClass::Constraint);
    assert_eq!(breaks(&triggered, Some("s1.2")), "P2");
    triggered.reading.constrained.insert("t".into());
    assert_allowed(&triggered);
}

/// s2 waits until a snapshot belongs to a serial order, and takes it then.
#[test]
fn deferrable_transaction_takes_its_snapshot_when_its_wait_ends() {
    let run = |seen: i64| {
        let mut run = two("postgres", Serializable)
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .waits("s2", "select v from t where id = 1")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", rows(&[seen]))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 11), (2, 20)]);
        run.reading.unknown_waits = true;
        run
    };
    let deferrable = |seen: i64| {
        let mut run = run(seen);
        run.reading.deferrable.insert(1);
        run
    };
    assert_allowed(&deferrable(11));
    assert_allowed(&deferrable(10));
    assert_eq!(breaks(&deferrable(12), Some("s2.2")), "P7");
}

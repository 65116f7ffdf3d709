//! Blocked statements, and what other transactions see meanwhile.

use super::runs::{assert_allowed, breaks, two};
use super::{ScriptedRun, changed, error, rows};
use crate::Conclusion;
use isolde_model::Level;
use isolde_model::Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use isolde_model::history::{ErrorClass, EventKind};

/// s2 changes the first row and is blocked by s1 at the second; s3 reads meanwhile.
fn reads_while_blocked(sql: &str, seen: i64) -> ScriptedRun {
    two("mysql", ReadUncommitted)
        .does("s3", "begin", EventKind::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", "update t set v = v + 1")
        .does("s3", sql, rows(&[seen]))
}

fn goes_on(run: ScriptedRun) -> ScriptedRun {
    run.does("s1", "commit", EventKind::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", EventKind::Done)
        .does("s3", "commit", EventKind::Done)
        .leaves(&[(1, 11), (2, 22)])
}

#[test]
fn dirty_read_sees_rows_of_a_blocked_statement_before_or_after() {
    let first = |seen| goes_on(reads_while_blocked("select v from t where id = 1", seen));
    assert_allowed(&first(10));
    assert_allowed(&first(11));
    assert_eq!(breaks(&first(12), Some("s3.2")), "I3");
    let held = |seen| goes_on(reads_while_blocked("select v from t where id = 2", seen));
    assert_allowed(&held(21));
    assert_eq!(breaks(&held(22), Some("s3.2")), "I3");
    assert_eq!(breaks(&held(20), Some("s3.2")), "I3");
}

#[test]
fn dirty_read_may_see_versions_that_a_failed_statement_undid() {
    let run = |seen| {
        reads_while_blocked("select v from t where id = 1", seen)
            .sent("s1", "update t set v = 0 where id = 1")
            .replies("s2", error(ErrorClass::Deadlock))
            .replies("s1", changed(1))
            .does("s1", "commit", EventKind::Done)
            .leaves(&[(1, 0), (2, 21)])
    };
    assert_allowed(&run(11));
    assert_allowed(&run(10));
    assert_eq!(breaks(&run(0), Some("s3.2")), "I3");
}

/// The scan may read the row before the statement changes it, and the index lookup
/// after.
#[test]
fn self_join_concurrent_with_a_blocked_statement_is_not_modelled() {
    let sql = "select x.v + y.v from t as x join t as y on x.id = y.id where x.id = 1";
    let twice = |seen| goes_on(reads_while_blocked(sql, seen));
    assert_allowed(&twice(20));
    assert_allowed(&twice(22));
    let mixed = twice(21).predicted();
    assert!(matches!(mixed, Conclusion::NotModelled { .. }), "{mixed:?}");
}

/// s1 has deleted a row of another table. That has no effect on what it reads
/// concurrently with s2.
#[test]
fn versions_of_different_tables_are_different() {
    let run = |seen| {
        ScriptedRun::on("mysql", ReadUncommitted, &[(1, 10), (2, 20)])
            .with_table("create table u (x int)", &[&[5]])
            .does("s1", "begin", EventKind::Done)
            .does("s2", "begin", EventKind::Done)
            .does("s1", "update t set v = 21 where id = 2", changed(1))
            .does("s1", "delete from u", changed(1))
            .waits("s2", "update t set v = 0")
            .does("s1", "select v from t where id = 1", rows(&[seen]))
            .does("s1", "rollback", EventKind::Done)
            .replies("s2", changed(2))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 0), (2, 0)])
    };
    assert_allowed(&run(10));
    assert_allowed(&run(0));
    assert_eq!(breaks(&run(20), Some("s1.4")), "I3");
}

/// s3 copies the rows that s2, which is blocked as well, has not deleted yet.
#[test]
fn insert_select_concurrent_with_a_blocked_statement_is_not_modelled() {
    let run = two("mysql", ReadUncommitted)
        .does("s3", "begin", EventKind::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", "delete from t")
        .waits("s3", "insert into t select id, v from t order by id, v")
        .does("s1", "commit", EventKind::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", EventKind::Done)
        .replies("s3", changed(1))
        .does("s3", "commit", EventKind::Done)
        .leaves(&[(2, 21)]);
    let prediction = run.predicted();
    assert!(matches!(prediction, Conclusion::NotModelled { .. }), "{prediction:?}");
}

/// s2 deletes the first row and is blocked at the second; s3 copies what it sees meanwhile.
fn copied_while_blocked(blocked: &str, copied: u64, left: &[(i64, i64)]) -> Conclusion {
    ScriptedRun::on("mysql", ReadUncommitted, &[(1, 10), (2, 20)])
        .with_table("create table u (x int)", &[])
        .does("s1", "begin", EventKind::Done)
        .does("s2", "begin", EventKind::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", blocked)
        .does("s3", "insert into u select v from t where v <= 21", changed(copied))
        .does("s1", "commit", EventKind::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", EventKind::Done)
        .leaves(left)
        .predicted()
}

#[test]
fn write_may_read_rows_before_or_after_a_blocked_statement_changes_them() {
    let is_allowed = |conclusion| matches!(conclusion, Conclusion::Allowed { .. });
    for copied in [2, 1] {
        assert!(is_allowed(copied_while_blocked("delete from t", copied, &[])), "{copied}");
        let left = [(1, 90), (2, 101)];
        let update = "update t set v = v + 80";
        assert!(is_allowed(copied_while_blocked(update, copied, &left)), "{copied}");
    }
    // What else a statement may have done by then is not known.
    let none = copied_while_blocked("delete from t", 0, &[]);
    assert!(matches!(none, Conclusion::NotModelled { .. }), "{none:?}");
}

/// s2 waits for s1, which changes the second row, and then tests the joined rows again.
#[test]
fn second_test_of_a_self_join_has_a_row_for_each_source() {
    let run = |on: &str, seen: &[i64]| {
        let sql = format!("select x.v + y.v from t as x join t as y on {on} for update");
        two("postgres", ReadCommitted)
            .does("s1", "update t set v = 21 where id = 2", changed(1))
            .waits("s2", &sql)
            .does("s1", "commit", EventKind::Done)
            .replies("s2", rows(seen))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 10), (2, 21)])
    };
    let other = "x.id = 1 and y.id = 2";
    assert_allowed(&run(other, &[31]));
    assert_eq!(breaks(&run(other, &[30]), Some("s2.2")), "P2");
    let same = "x.id = y.id and x.id = 2";
    assert_allowed(&run(same, &[42]));
    assert_eq!(breaks(&run(same, &[41]), Some("s2.2")), "P2");
    // The new version does not match any more.
    assert_allowed(&run("x.id = 1 and y.v = 20", &[]));
}

#[test]
fn table_that_is_read_twice_at_one_moment_explains_a_locking_read_that_waited() {
    let sql = "select x.v + y.v from t as x join t as y on x.id = y.id where x.id = 1 for update";
    let run = |seen: i64| {
        two("mysql", ReadCommitted)
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .waits("s2", sql)
            .does("s1", "commit", EventKind::Done)
            .replies("s2", rows(&[seen]))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 11), (2, 20)])
    };
    assert_allowed(&run(22));
    let mixed = run(21).predicted();
    assert!(matches!(mixed, Conclusion::NotModelled { .. }), "{mixed:?}");
}

/// The read of a session without autocommit begins a transaction. Both fail, so the
/// history contains no such transaction.
#[test]
fn select_without_autocommit_locks_at_serializable() {
    let run = |before: &str, setting| {
        two("mariadb", Serializable)
            .set("innodb_snapshot_isolation", setting)
            .does("s3", before, EventKind::Done)
            .does("s1", "insert into t values (3, 30)", changed(1))
            .waits("s3", "select v from t")
            .does("s1", "commit", EventKind::Done)
            .replies("s3", error(ErrorClass::WriteConflict))
            .leaves(&[(1, 10), (2, 20), (3, 30)])
    };
    assert_allowed(&run("set autocommit = 0", "ON"));
    assert_allowed(&run("begin", "ON"));
    assert_eq!(breaks(&run("set autocommit = 0", "OFF"), Some("s3.2")), "I4");
}

/// Two rows are equal. If one of them was skipped, it is unknown which.
#[test]
fn skip_locked_holds_no_lock_on_rows_that_it_may_have_skipped() {
    let run = |seen: &[i64]| {
        ScriptedRun::on("mysql", ReadCommitted, &[(1, 10), (2, 10)])
            .does("s1", "begin", EventKind::Done)
            .does("s2", "begin", EventKind::Done)
            .does("s1", "select v from t for update skip locked", rows(seen))
            .does("s2", "update t set v = 5 where id = 1", changed(1))
            .does("s2", "commit", EventKind::Done)
            .does("s1", "commit", EventKind::Done)
            .leaves(&[(1, 5), (2, 10)])
    };
    assert_allowed(&run(&[10]));
    assert_eq!(breaks(&run(&[10, 10]), Some("s2.2")), "I11");
}

/// Twelve rows change while s2 searches for the last of them. Which of the others it
/// read before the change, and which after, makes no difference.
#[test]
fn rows_that_match_no_condition_add_no_choices() {
    let many: Vec<(i64, i64)> = (1..=12).map(|id| (id, id)).collect();
    let run = |count: u64, last: i64| {
        let left = many.iter().map(|(id, v)| (*id, if *id == 12 { last } else { v + 100 }));
        ScriptedRun::on("mysql", RepeatableRead, &many)
            .does("s1", "begin", EventKind::Done)
            .does("s2", "begin", EventKind::Done)
            .does("s1", "update t set v = v + 100", changed(12))
            .waits("s2", "update t set v = 0 where v = 112")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(&left.collect::<Vec<_>>())
    };
    assert_allowed(&run(1, 0));
    assert_eq!(breaks(&run(1, 1), None), "I27");
    assert_eq!(breaks(&run(2, 0), Some("s2.2")), "I6");
}

/// s1 has perhaps executed a statement before. s2 changes the second row and is
/// blocked; `named` are the lock holders that the server reports.
fn waits(
    engine: &str,
    level: Level,
    before: Option<(&str, EventKind)>,
    named: &[&str],
) -> ScriptedRun {
    let run = two(engine, level);
    let run = match before {
        Some((sql, what)) => run.does("s1", sql, what),
        None => run,
    };
    run.waits_for("s2", "update t set v = 21 where id = 2", named)
        .does("s1", "commit", EventKind::Done)
        .resumes("s2")
        .replies("s2", changed(1))
        .does("s2", "commit", EventKind::Done)
}

const READ: &str = "select v from t where id = 2";
const WRITE: &str = "update t set v = 22 where id = 2";

#[test]
fn blocked_statement_needs_a_conflicting_lock_holder() {
    let left = [(1, 10), (2, 21)];
    for (engine, level, rule) in [
        ("postgres", ReadCommitted, "P12"),
        ("mysql", ReadCommitted, "I11"),
        ("sqlite", Serializable, "S1"),
    ] {
        let with_writer = waits(engine, level, Some((WRITE, changed(1))), &[]).leaves(&left);
        assert_allowed(&with_writer);
        let without_holder = waits(engine, level, None, &[]).leaves(&left);
        assert_eq!(breaks(&without_holder, Some("s2.2")), rule, "{engine}");
        let with_reader = waits(engine, level, Some((READ, rows(&[20]))), &[]).leaves(&left);
        assert_eq!(breaks(&with_reader, Some("s2.2")), rule, "{engine}");
    }
    let locked = waits("mysql", Serializable, Some((READ, rows(&[20]))), &[]).leaves(&left);
    assert_allowed(&locked);
}

#[test]
fn reported_lock_holder_must_hold_a_lock() {
    let run = |named: &[&str]| {
        waits("postgres", ReadCommitted, Some((WRITE, changed(1))), named)
            .leaves(&[(1, 10), (2, 21)])
    };
    assert_allowed(&run(&["s1"]));
    assert_eq!(breaks(&run(&["s3"]), Some("s2.2")), "P12");
}

#[test]
fn commit_waits_for_readers_in_rollback_journal_mode() {
    let with_open_reader = |engine: &str| {
        two(engine, Serializable)
            .does("s1", READ, rows(&[20]))
            .does("s2", WRITE, changed(1))
            .does("s2", "commit", EventKind::Done)
            .does("s1", "commit", EventKind::Done)
            .leaves(&[(1, 10), (2, 22)])
    };
    assert_eq!(breaks(&with_open_reader("sqlite"), Some("s2.3")), "S4");
    assert_allowed(&with_open_reader("sqlite+wal"));
    let after_the_reader = two("sqlite", Serializable)
        .does("s1", READ, rows(&[20]))
        .does("s2", WRITE, changed(1))
        .waits("s2", "commit")
        .does("s1", "commit", EventKind::Done)
        .replies("s2", EventKind::Done)
        .leaves(&[(1, 10), (2, 22)]);
    assert_allowed(&after_the_reader);
}

/// s2 has a snapshot. It waits for s1, which commits the key that s2 inserts.
#[test]
fn upsert_fails_on_a_committed_key_that_its_snapshot_lacks() {
    let run = |what: EventKind| {
        two("postgres", RepeatableRead)
            .does("s2", READ, rows(&[20]))
            .does("s1", "insert into t (id, v) values (3, 30)", changed(1))
            .waits("s2", "insert into t (id, v) values (3, 1) on conflict do nothing")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", what)
    };
    let left = [(1, 10), (2, 20), (3, 30)];
    assert_allowed(&run(error(ErrorClass::Serialization)).leaves(&left));
    let skipped = run(changed(0)).does("s2", "commit", EventKind::Done).leaves(&left);
    assert_eq!(breaks(&skipped, Some("s2.3")), "P8");
}

/// s1 has changed the row that the upsert of s3 does not change.
#[test]
fn autocommit_upsert_without_change_does_not_wait() {
    let run = |run: ScriptedRun| {
        run.does("s1", "update t set v = 11 where id = 1", changed(1))
            .does(
                "s3",
                "insert into t values (1, 5) on conflict (id) do update set id = 1",
                changed(0),
            )
            .does("s1", "commit", EventKind::Done)
            .leaves(&[(1, 11), (2, 20)])
    };
    assert_allowed(&run(two("tidb", RepeatableRead)));
    let begun = two("tidb", RepeatableRead).does("s3", "begin", EventKind::Done);
    assert_eq!(breaks(&run(begun), Some("s3.2")), "T7");
    assert_eq!(breaks(&run(two("mysql", RepeatableRead)), Some("s3.1")), "I11");
}

/// s3 finds the first row with the value that it sets, and is blocked at the second.
/// s1 has changed the first row, and commits meanwhile.
#[test]
fn autocommit_update_may_skip_a_row_that_was_unchanged() {
    let run = |run: ScriptedRun, count: u64, first: i64| {
        let run = run
            .does("s1", "update t set v = 30 where id = 1", changed(1))
            .does("s1", "select v from t where id = 2 for update", rows(&[20]))
            .waits("s3", "update t set v = 10")
            .does("s1", "commit", EventKind::Done)
            .replies("s3", changed(count));
        run.leaves(&[(1, first), (2, 10)])
    };
    let tidb = || two("tidb", RepeatableRead);
    assert_allowed(&run(tidb(), 1, 30));
    assert_allowed(&run(tidb(), 2, 10));
    assert_eq!(breaks(&run(tidb(), 1, 10), Some("s3.1")), "T2");
    let begun = tidb().does("s3", "begin", EventKind::Done);
    assert_eq!(breaks(&run(begun, 1, 30), Some("s3.2")), "T2");
}

/// s3 holds the first row when s2 locks the keys of both, and s1 changes the second meanwhile.
#[test]
fn key_share_lock_returns_a_row_as_it_was_before_a_change_of_other_columns() {
    let run = |level, change: &str, seen: EventKind, last: (i64, i64)| {
        two("postgres", level)
            .does("s3", "begin", EventKind::Done)
            .does("s3", "select v from t where id = 1 for update", rows(&[10]))
            .waits("s2", "select v from t for key share")
            .does("s1", change, changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s3", "commit", EventKind::Done)
            .replies("s2", seen)
            .does("s2", "rollback", EventKind::Done)
            .leaves(&[(1, 10), last])
    };
    let value = "update t set v = 21 where id = 2";
    for level in [ReadCommitted, RepeatableRead] {
        assert_allowed(&run(level, value, rows(&[10, 20]), (2, 21)));
    }
    assert_allowed(&run(ReadCommitted, value, rows(&[10, 21]), (2, 21)));
    assert_eq!(breaks(&run(ReadCommitted, value, rows(&[10, 22]), (2, 21)), Some("s2.2")), "P2");
    // A change of the key conflicts.
    let key = "update t set id = 3 where id = 2";
    let refused = error(ErrorClass::Serialization);
    assert_allowed(&run(RepeatableRead, key, refused, (3, 20)));
    breaks(&run(RepeatableRead, key, rows(&[10, 20]), (3, 20)), Some("s2.2"));
}

#[test]
fn lock_table_explains_a_wait_and_not_a_wrong_result() {
    let run = |seen: i64| {
        two("postgres", ReadCommitted)
            .does("s1", "set enable_seqscan = off", EventKind::Done)
            .does("s1", "lock table t in access exclusive mode", EventKind::Done)
            .waits("s2", "select v from t where id = 1")
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .does("s1", "commit", EventKind::Done)
            .replies("s2", rows(&[seen]))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 11), (2, 20)])
    };
    assert_allowed(&run(11));
    assert_eq!(breaks(&run(12), Some("s2.2")), "P1");
    let alone = two("postgres", ReadCommitted)
        .does("s1", "update t set v = 11 where id = 1", changed(1))
        .waits("s2", "select v from t where id = 1");
    assert!(!matches!(alone.predicted(), Conclusion::Allowed { .. }));
}

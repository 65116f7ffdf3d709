//! Records that another transaction is writing: uncommitted rows, and rows that
//! replace others with the same key.

use super::runs::{assert_allowed, breaks, two};
use super::{ScriptedRun, changed, rows};
use isolde_model::Level;
use isolde_model::Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use isolde_model::history::EventKind;

/// s1 writes a row that s2 searches for. s2 does not wait and finds nothing.
fn passes_by(level: Level, writes: &str, looks: &str, nothing: EventKind) -> ScriptedRun {
    ScriptedRun::on("mariadb", level, &[(1, 10), (2, 20), (4, 40)])
        .does("s1", "begin", EventKind::Done)
        .does("s2", "begin", EventKind::Done)
        .does("s1", writes, changed(1))
        .does("s2", looks, nothing)
        .does("s1", "rollback", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, 10), (2, 20), (4, 40)])
}

const INSERTS: &str = "insert into t values (3, 30)";
const CHANGES: &str = "update t set v = 30 where id = 4";

#[test]
fn locking_scan_waits_for_uncommitted_rows() {
    let update = "update t set v = 0 where v = 30";
    let delete = "delete from t where v = 30";
    let locks = "select v from t where v = 30 for update";
    for writes in [INSERTS, CHANGES] {
        for level in [RepeatableRead, Serializable] {
            let run = passes_by(level, writes, update, changed(0));
            assert_eq!(breaks(&run, Some("s2.2")), "I11");
        }
        for level in [ReadUncommitted, ReadCommitted, RepeatableRead] {
            // Only an UPDATE has a semi-consistent read.
            let run = passes_by(level, writes, delete, changed(0));
            assert_eq!(breaks(&run, Some("s2.2")), "I11");
            let run = passes_by(level, writes, locks, rows(&[]));
            assert_eq!(breaks(&run, Some("s2.2")), "I11");
        }
        for level in [ReadUncommitted, ReadCommitted] {
            assert_allowed(&passes_by(level, writes, update, changed(0)));
        }
        assert_allowed(&passes_by(
            RepeatableRead,
            writes,
            "delete from t where v = 31",
            changed(0),
        ));
        let least = "select v from t where v = 30 order by v limit 1 for update";
        let run = passes_by(RepeatableRead, writes, least, rows(&[]));
        assert!(!matches!(run.predicted(), crate::Conclusion::Broken { .. }));
    }
}

#[test]
fn shared_lock_may_be_on_an_unchanged_index() {
    let shares = "select v from t where v = 30 for share";
    let run = passes_by(RepeatableRead, INSERTS, shares, rows(&[]));
    assert_eq!(breaks(&run, Some("s2.2")), "I11");
    assert_allowed(&passes_by(RepeatableRead, CHANGES, shares, rows(&[])));
}

/// s3 inserts a row before s2 is blocked by s1, or while it is.
#[test]
fn blocked_scan_may_have_passed_a_row_inserted_meanwhile() {
    let run = |before: bool| {
        let run = two("mysql", ReadCommitted).does("s3", "begin", EventKind::Done);
        let run =
            if before { run.does("s3", "insert into t values (3, 30)", changed(1)) } else { run };
        let run = run
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .waits("s2", "delete from t where v > 5");
        let run =
            if before { run } else { run.does("s3", "insert into t values (3, 30)", changed(1)) };
        run.does("s1", "commit", EventKind::Done)
            .replies("s2", changed(2))
            .does("s3", "commit", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(3, 30)])
    };
    assert_allowed(&run(false));
    assert_eq!(breaks(&run(true), Some("s2.2")), "I11");
}

#[test]
fn tidb_scan_does_not_wait_for_uncommitted_inserts() {
    let mut run = passes_by(RepeatableRead, INSERTS, "delete from t where v = 30", changed(0));
    run.history.on.engine = "tidb".into();
    assert_allowed(&run);
}

/// s2 is blocked at a row that s1 has replaced by one with the same primary key.
fn waits_for_replaced(level: Level, how: &[(&str, u64)], count: u64, last: i64) -> ScriptedRun {
    let mut run = two("mariadb", level);
    for (sql, count) in how {
        run = run.does("s1", sql, changed(*count));
    }
    run.waits("s2", "update t set v = 0 where id = 1")
        .does("s1", "commit", EventKind::Done)
        .replies("s2", changed(count))
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, last), (2, 20)])
}

#[test]
fn blocked_update_finds_the_row_that_replaced_its_target() {
    let replaced: &[(&str, u64)] = &[("replace into t values (1, 30)", 2)];
    let anew: &[(&str, u64)] =
        &[("delete from t where id = 1", 1), ("insert into t values (1, 30)", 1)];
    for how in [replaced, anew] {
        for level in [ReadUncommitted, ReadCommitted, RepeatableRead] {
            assert_allowed(&waits_for_replaced(level, how, 1, 0));
            assert_eq!(breaks(&waits_for_replaced(level, how, 0, 30), Some("s2.2")), "I6");
        }
    }
}

/// Only the new row matches the condition of s2.
#[test]
fn semi_consistent_read_skips_a_record_whose_old_row_does_not_match() {
    let run = |level: Level| {
        two("mariadb", level)
            .does("s1", "replace into t values (1, 30)", changed(2))
            .does("s2", "update t set v = 0 where v = 30", changed(0))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 30), (2, 20)])
    };
    assert_allowed(&run(ReadCommitted));
    assert_eq!(breaks(&run(RepeatableRead), Some("s2.2")), "I11");
}

/// s1 replaces the row with the unique value by one with another primary key, which
/// the scan of s2 may have passed.
#[test]
fn blocked_update_may_miss_a_row_replaced_under_another_key() {
    let run = |count: u64, last: i64| {
        ScriptedRun::on("mariadb", ReadCommitted, &[])
            .in_table("create table t (id int primary key, v int unique, w int)", &[&[5, 10, 1]])
            .does("s1", "begin", EventKind::Done)
            .does("s2", "begin", EventKind::Done)
            .does("s1", "replace into t values (3, 10, 1)", changed(2))
            .waits("s2", "update t set w = 2 where w = 1")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves_rows(&[&[3, 10, last]])
    };
    assert_allowed(&run(1, 2));
    assert_allowed(&run(0, 1));
}

#[test]
fn insert_ignore_waits_for_a_key_whose_row_is_being_replaced() {
    let run = |sql: &str| {
        two("mysql", ReadCommitted)
            .does("s1", sql, changed(2))
            .does("s2", "insert or ignore into t values (1, 5)", changed(0))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 30), (2, 20)])
    };
    assert_eq!(breaks(&run("replace into t values (1, 30)"), Some("s2.2")), "I18");
}

/// s2 has a view with the first row. s1 deletes that row, and s2 inserts another
/// with its key.
#[test]
fn insert_into_a_deleted_record_hides_the_row_of_the_view() {
    let run = |seen: &[i64]| {
        two("mysql", RepeatableRead)
            .does("s2", "select v from t where id = 1", rows(&[10]))
            .does("s1", "delete from t where id = 1", changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "select v from t where id = 1", rows(&[10]))
            .does("s2", "insert into t values (1, 30)", changed(1))
            .does("s2", "select v from t where id = 1", rows(seen))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 30), (2, 20)])
    };
    assert_allowed(&run(&[30]));
    assert_eq!(breaks(&run(&[10, 30]), Some("s2.5")), "I1");
}

/// s2 reads while s1 has replaced a row, and after s1 has rolled back.
#[test]
fn rollback_restores_a_replaced_row() {
    let run = |seen: &[i64], after: &[i64]| {
        two("mysql", ReadUncommitted)
            .does("s1", "replace into t values (1, 30)", changed(2))
            .does("s2", "select v from t where id = 1", rows(seen))
            .does("s1", "rollback", EventKind::Done)
            .does("s2", "select v from t where id = 1", rows(after))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 10), (2, 20)])
    };
    assert_allowed(&run(&[30], &[10]));
    assert_eq!(breaks(&run(&[10, 30], &[10]), Some("s2.2")), "I3");
    assert_eq!(breaks(&run(&[30], &[]), Some("s2.3")), "I3");
}

/// No committed row matches the condition of s2. Only a statement that searches by a
/// key or an index waits for the row that s1 inserts, and then finds it.
#[test]
fn update_that_waits_for_an_inserted_row_finds_it() {
    let run = |filter: &str, count: u64| {
        let last = if count == 1 { 0 } else { 30 };
        two("mariadb", ReadCommitted)
            .does("s1", INSERTS, changed(1))
            .waits("s2", &format!("update t set v = 0 where {filter}"))
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 10), (2, 20), (3, last)])
    };
    for filter in ["id = 3", "v = 30"] {
        assert_allowed(&run(filter, 1));
        assert_eq!(breaks(&run(filter, 0), Some("s2.2")), "I6");
    }
}

/// s2 is blocked at a row that comes after the one that s1 has inserted.
#[test]
fn update_that_waits_for_another_row_may_have_passed_an_inserted_row() {
    let run = |count: u64, last: i64| {
        two("mariadb", ReadCommitted)
            .does("s1", "insert into t values (0, 30)", changed(1))
            .does("s1", "update t set v = 21 where id = 2", changed(1))
            .waits("s2", "update t set v = v + 1 where v > 15")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(0, last), (1, 10), (2, 22)])
    };
    assert_allowed(&run(1, 30));
    assert_allowed(&run(2, 31));
}

//! Records that others are writing: rows that are not committed, and rows that
//! take the place of others with their key.

use super::runs::{breaks, is_inside, two};
use super::{Told, changed, rows};
use crate::Level::{self, ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use crate::history::What;

/// s1 writes the third row, which s2 looks for, finds nothing, and does not
/// wait.
fn passes_by(level: Level, writes: &str, looks: &str, nothing: What) -> Told {
    Told::on("mariadb", level, &[(1, 10), (2, 20), (4, 40)])
        .does("s1", "begin", What::Done)
        .does("s2", "begin", What::Done)
        .does("s1", writes, changed(1))
        .does("s2", looks, nothing)
        .does("s1", "rollback", What::Done)
        .does("s2", "commit", What::Done)
        .leaves(&[(1, 10), (2, 20), (4, 40)])
}

const INSERTS: &str = "insert into t values (3, 30)";
const CHANGES: &str = "update t set v = 30 where id = 4";

#[test]
fn a_scan_waits_for_a_row_that_another_has_not_committed() {
    let update = "update t set v = 0 where v = 30";
    let delete = "delete from t where v = 30";
    let locks = "select v from t where v = 30 for update";
    for writes in [INSERTS, CHANGES] {
        for level in [RepeatableRead, Serializable] {
            let told = passes_by(level, writes, update, changed(0));
            assert_eq!(breaks(&told, Some("s2.2")), "I11");
        }
        for level in [ReadUncommitted, ReadCommitted, RepeatableRead] {
            // Only an UPDATE has a semi-consistent read.
            let told = passes_by(level, writes, delete, changed(0));
            assert_eq!(breaks(&told, Some("s2.2")), "I11");
            let told = passes_by(level, writes, locks, rows(&[]));
            assert_eq!(breaks(&told, Some("s2.2")), "I11");
        }
        for level in [ReadUncommitted, ReadCommitted] {
            is_inside(&passes_by(level, writes, update, changed(0)));
        }
        is_inside(&passes_by(RepeatableRead, writes, "delete from t where v = 31", changed(0)));
        let least = "select v from t where v = 30 order by v limit 1 for update";
        let told = passes_by(RepeatableRead, writes, least, rows(&[]));
        assert!(!matches!(told.predicted(), crate::semantics::Prediction::Outside { .. }));
    }
}

#[test]
fn a_shared_lock_may_be_on_an_index_that_did_not_change() {
    let shares = "select v from t where v = 30 for share";
    let told = passes_by(RepeatableRead, INSERTS, shares, rows(&[]));
    assert_eq!(breaks(&told, Some("s2.2")), "I11");
    is_inside(&passes_by(RepeatableRead, CHANGES, shares, rows(&[])));
}

/// s3 adds a row while s2 waits for s1.
#[test]
fn a_row_that_came_while_the_scan_waited_may_be_behind_it() {
    let run = |before: bool| {
        let told = two("mysql", ReadCommitted).does("s3", "begin", What::Done);
        let told =
            if before { told.does("s3", "insert into t values (3, 30)", changed(1)) } else { told };
        let told = told
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .waits("s2", "delete from t where v > 5");
        let told =
            if before { told } else { told.does("s3", "insert into t values (3, 30)", changed(1)) };
        told.does("s1", "commit", What::Done)
            .replies("s2", changed(2))
            .does("s3", "commit", What::Done)
            .does("s2", "commit", What::Done)
            .leaves(&[(3, 30)])
    };
    is_inside(&run(false));
    assert_eq!(breaks(&run(true), Some("s2.2")), "I11");
}

#[test]
fn where_rows_are_found_before_they_are_locked_open_inserts_are_not_met() {
    let mut told = passes_by(RepeatableRead, INSERTS, "delete from t where v = 30", changed(0));
    told.history.on.engine = "tidb".into();
    is_inside(&told);
}

/// s2 waits for a row that s1 has replaced by another with its primary key.
fn waits_for_replaced(level: Level, how: &[(&str, u64)], count: u64, last: i64) -> Told {
    let mut told = two("mariadb", level);
    for (sql, count) in how {
        told = told.does("s1", sql, changed(*count));
    }
    told.waits("s2", "update t set v = 0 where id = 1")
        .does("s1", "commit", What::Done)
        .replies("s2", changed(count))
        .does("s2", "commit", What::Done)
        .leaves(&[(1, last), (2, 20)])
}

#[test]
fn a_row_that_takes_the_place_of_another_is_met_by_who_waits_for_it() {
    let replaced: &[(&str, u64)] = &[("replace into t values (1, 30)", 2)];
    let anew: &[(&str, u64)] =
        &[("delete from t where id = 1", 1), ("insert into t values (1, 30)", 1)];
    for how in [replaced, anew] {
        for level in [ReadUncommitted, ReadCommitted, RepeatableRead] {
            is_inside(&waits_for_replaced(level, how, 1, 0));
            assert_eq!(breaks(&waits_for_replaced(level, how, 0, 30), Some("s2.2")), "I6");
        }
    }
}

/// What s2 looks for is only in the new row.
#[test]
fn a_semi_consistent_read_passes_by_a_record_whose_old_row_does_not_match() {
    let run = |level: Level| {
        two("mariadb", level)
            .does("s1", "replace into t values (1, 30)", changed(2))
            .does("s2", "update t set v = 0 where v = 30", changed(0))
            .does("s1", "commit", What::Done)
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 30), (2, 20)])
    };
    is_inside(&run(ReadCommitted));
    assert_eq!(breaks(&run(RepeatableRead), Some("s2.2")), "I11");
}

/// The row with the unique value comes back under another primary key, which
/// the scan may have passed.
#[test]
fn a_row_that_is_replaced_under_another_key_may_be_missed() {
    let run = |count: u64, last: i64| {
        Told::on("mariadb", ReadCommitted, &[])
            .in_table("create table t (id int primary key, v int unique, w int)", &[&[5, 10, 1]])
            .does("s1", "begin", What::Done)
            .does("s2", "begin", What::Done)
            .does("s1", "replace into t values (3, 10, 1)", changed(2))
            .waits("s2", "update t set w = 2 where w = 1")
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves_rows(&[&[3, 10, last]])
    };
    is_inside(&run(1, 2));
    is_inside(&run(0, 1));
}

#[test]
fn a_key_whose_row_is_being_replaced_is_waited_for() {
    let run = |sql: &str| {
        two("mysql", ReadCommitted)
            .does("s1", sql, changed(2))
            .does("s2", "insert or ignore into t values (1, 5)", changed(0))
            .does("s1", "commit", What::Done)
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 30), (2, 20)])
    };
    assert_eq!(breaks(&run("replace into t values (1, 30)"), Some("s2.2")), "I18");
}

/// s2 has a view with the first row, s1 deletes it, and s2 adds another.
#[test]
fn a_new_row_in_an_old_record_hides_what_the_view_showed() {
    let run = |seen: &[i64]| {
        two("mysql", RepeatableRead)
            .does("s2", "select v from t where id = 1", rows(&[10]))
            .does("s1", "delete from t where id = 1", changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", "select v from t where id = 1", rows(&[10]))
            .does("s2", "insert into t values (1, 30)", changed(1))
            .does("s2", "select v from t where id = 1", rows(seen))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 30), (2, 20)])
    };
    is_inside(&run(&[30]));
    assert_eq!(breaks(&run(&[10, 30]), Some("s2.5")), "I1");
}

/// s3 looks beside s1, which has replaced a row and takes that back.
#[test]
fn a_replaced_row_is_the_old_one_again_after_a_rollback() {
    let run = |seen: &[i64], after: &[i64]| {
        two("mysql", ReadUncommitted)
            .does("s1", "replace into t values (1, 30)", changed(2))
            .does("s2", "select v from t where id = 1", rows(seen))
            .does("s1", "rollback", What::Done)
            .does("s2", "select v from t where id = 1", rows(after))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 10), (2, 20)])
    };
    is_inside(&run(&[30], &[10]));
    assert_eq!(breaks(&run(&[10, 30], &[10]), Some("s2.2")), "I3");
    assert_eq!(breaks(&run(&[30], &[]), Some("s2.3")), "I3");
}

/// Nothing that is committed matches what s2 looks for: only who looks it up by
/// a key or an index waits for the row that s1 adds, and then meets it.
#[test]
fn an_update_that_waits_for_a_new_row_meets_it() {
    let run = |filter: &str, count: u64| {
        let last = if count == 1 { 0 } else { 30 };
        two("mariadb", ReadCommitted)
            .does("s1", INSERTS, changed(1))
            .waits("s2", &format!("update t set v = 0 where {filter}"))
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 10), (2, 20), (3, last)])
    };
    for filter in ["id = 3", "v = 30"] {
        is_inside(&run(filter, 1));
        assert_eq!(breaks(&run(filter, 0), Some("s2.2")), "I6");
    }
}

/// s2 has a row to wait for behind the one that s1 adds.
#[test]
fn an_update_that_waits_for_another_row_may_have_passed_by_a_new_one() {
    let run = |count: u64, last: i64| {
        two("mariadb", ReadCommitted)
            .does("s1", "insert into t values (0, 30)", changed(1))
            .does("s1", "update t set v = 21 where id = 2", changed(1))
            .waits("s2", "update t set v = v + 1 where v > 15")
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves(&[(0, last), (1, 10), (2, 22)])
    };
    is_inside(&run(1, 30));
    is_inside(&run(2, 31));
}

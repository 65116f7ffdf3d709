//! Rows that move within an index or to another partition while another statement
//! scans.

use super::runs::{assert_allowed, breaks, two};
use super::{ScriptedRun, changed, rows};
use isolde_model::Level::{ReadCommitted, ReadUncommitted, RepeatableRead};
use isolde_model::history::EventKind;

/// s2 changes all rows and is blocked by s1 at the second; s3 reads meanwhile.
fn reads_while_blocked(sql: &str, look: &str, seen: &[i64], left: [(i64, i64); 2]) -> ScriptedRun {
    two("mariadb", ReadUncommitted)
        .does("s3", "begin", EventKind::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", sql)
        .does("s3", look, rows(seen))
        .does("s1", "commit", EventKind::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", EventKind::Done)
        .does("s3", "commit", EventKind::Done)
        .leaves(&left)
}

#[test]
fn dirty_read_may_miss_a_row_that_moves_in_an_index() {
    let moves = |seen: &[i64]| {
        let look = "select v from t where v = 10";
        reads_while_blocked("update t set id = id + 100", look, seen, [(101, 10), (102, 21)])
    };
    assert_allowed(&moves(&[10]));
    assert_allowed(&moves(&[]));
    let stays = |seen: &[i64]| {
        let look = "select id from t where id = 1";
        reads_while_blocked("update t set v = v + 100", look, seen, [(1, 110), (2, 121)])
    };
    assert_allowed(&stays(&[1]));
    assert_eq!(breaks(&stays(&[]), Some("s3.2")), "I3");
}

/// s2 is blocked by s1, which has changed a row and changes it once more.
fn changes_again(sql: &str, seen: &[i64], left: (i64, i64)) -> ScriptedRun {
    two("mysql", ReadCommitted)
        .does("s1", "update t set v = 11 where id = 1", changed(1))
        .waits("s2", "select v from t where v > 0 for update")
        .does("s1", sql, changed(1))
        .does("s1", "commit", EventKind::Done)
        .replies("s2", rows(seen))
        .does("s2", "commit", EventKind::Done)
        .leaves(&[left, (2, 20)])
}

#[test]
fn blocked_scan_may_miss_a_row_that_moves_behind_it() {
    let moves = |seen: &[i64]| changes_again("update t set id = 0 where id = 1", seen, (0, 11));
    assert_allowed(&moves(&[11, 20]));
    assert_allowed(&moves(&[20]));
    assert_eq!(breaks(&moves(&[11]), Some("s2.2")), "I6");
    let stays = |seen: &[i64]| changes_again("update t set v = 12 where id = 1", seen, (1, 12));
    assert_allowed(&stays(&[12, 20]));
    assert_eq!(breaks(&stays(&[20]), Some("s2.2")), "I6");
}

/// s1 gives the row that blocks s2 another primary key, behind or ahead of the
/// scan of s2.
#[test]
fn blocked_scan_finds_a_row_that_moves_ahead_of_it() {
    let run = |id: i64, count: u64| {
        let v = |v: i64| if count == 2 || v == 20 { 0 } else { v };
        two("mariadb", ReadCommitted)
            .does("s1", &format!("update t set id = {id} where id = 1"), changed(1))
            .waits("s2", "update t set v = 0 where v > 5")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(id, v(10)), (2, 0)])
    };
    assert_allowed(&run(5, 2));
    assert_eq!(breaks(&run(5, 1), Some("s2.2")), "I6");
    assert_allowed(&run(0, 2));
    assert_allowed(&run(0, 1));
}

/// s1 changes a unique column of a row that s2 searches for by other columns.
#[test]
fn scan_misses_a_moved_row_only_if_it_may_use_that_index() {
    let run = |filter: &str, count: u64| {
        let last = if count == 1 { 0 } else { 10 };
        ScriptedRun::on("mariadb", ReadCommitted, &[])
            .in_table("create table t (id int primary key, v int, w int unique)", &[&[1, 10, 5]])
            .does("s1", "begin", EventKind::Done)
            .does("s2", "begin", EventKind::Done)
            .does("s1", "update t set w = 9 where id = 1", changed(1))
            .waits("s2", &format!("update t set v = 0 {filter}"))
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves_rows(&[&[1, last, 9]])
    };
    for filter in ["where id = 1", "where v = 10", ""] {
        assert_allowed(&run(filter, 1));
        assert_eq!(breaks(&run(filter, 0), Some("s2.2")), "I6");
    }
    for filter in ["where w > 0", "where id = 1 and w > 0"] {
        assert_allowed(&run(filter, 1));
        assert_allowed(&run(filter, 0));
    }
}

#[test]
fn scan_may_miss_a_row_that_moves_to_another_partition() {
    let run = |partitioned: Option<&str>, count: u64, last: i64| {
        let mut run = two("mariadb", ReadCommitted);
        run.reading.schema.tables[0].partitioned_by = partitioned.map(Into::into);
        run.does("s1", "update t set v = 30 where id = 1", changed(1))
            .waits("s2", "update t set v = 0")
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, last), (2, 0)])
    };
    assert_allowed(&run(Some("v"), 1, 30));
    assert_allowed(&run(Some("v"), 2, 0));
    assert_allowed(&run(None, 2, 0));
    assert_eq!(breaks(&run(None, 1, 30), Some("s2.2")), "I6");
}

#[test]
fn insert_reuses_the_record_of_a_row_whose_key_changed() {
    let run = |seen: &[i64]| {
        two("mariadb", RepeatableRead)
            .does("s2", "select v from t", rows(&[10, 20]))
            .does("s1", "update t set id = 100 where id = 1", changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "select v from t where v < 99", rows(&[10, 20]))
            .does("s2", "insert into t values (1, 99)", changed(1))
            .does("s2", "select v from t", rows(seen))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 99), (2, 20), (100, 10)])
    };
    assert_allowed(&run(&[99, 20]));
    assert_eq!(breaks(&run(&[99, 10, 20]), Some("s2.5")), "I1");
}

//! Rows that go to another place of an index, or to another partition, while
//! somebody looks for them.

use super::runs::{breaks, is_inside, two};
use super::{Told, changed, rows};
use crate::Level::{ReadCommitted, ReadUncommitted, RepeatableRead};
use crate::history::What;

/// s3 looks while s2, which changes all rows, waits for s1 with the second.
fn looks_beside(sql: &str, look: &str, seen: &[i64], left: [(i64, i64); 2]) -> Told {
    two("mariadb", ReadUncommitted)
        .does("s3", "begin", What::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", sql)
        .does("s3", look, rows(seen))
        .does("s1", "commit", What::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", What::Done)
        .does("s3", "commit", What::Done)
        .leaves(&left)
}

#[test]
fn a_dirty_read_may_miss_a_row_that_is_on_its_way_in_an_index() {
    let moves = |seen: &[i64]| {
        let look = "select v from t where v = 10";
        looks_beside("update t set id = id + 100", look, seen, [(101, 10), (102, 21)])
    };
    is_inside(&moves(&[10]));
    is_inside(&moves(&[]));
    let stays = |seen: &[i64]| {
        let look = "select id from t where id = 1";
        looks_beside("update t set v = v + 100", look, seen, [(1, 110), (2, 121)])
    };
    is_inside(&stays(&[1]));
    assert_eq!(breaks(&stays(&[]), Some("s3.2")), "I3");
}

/// s2 waits for s1, which has changed a row and changes it once more.
fn changes_again(sql: &str, seen: &[i64], left: (i64, i64)) -> Told {
    two("mysql", ReadCommitted)
        .does("s1", "update t set v = 11 where id = 1", changed(1))
        .waits("s2", "select v from t where v > 0 for update")
        .does("s1", sql, changed(1))
        .does("s1", "commit", What::Done)
        .replies("s2", rows(seen))
        .does("s2", "commit", What::Done)
        .leaves(&[left, (2, 20)])
}

#[test]
fn a_row_may_go_behind_a_scan_that_waits() {
    let moves = |seen: &[i64]| changes_again("update t set id = 0 where id = 1", seen, (0, 11));
    is_inside(&moves(&[11, 20]));
    is_inside(&moves(&[20]));
    assert_eq!(breaks(&moves(&[11]), Some("s2.2")), "I6");
    let stays = |seen: &[i64]| changes_again("update t set v = 12 where id = 1", seen, (1, 12));
    is_inside(&stays(&[12, 20]));
    assert_eq!(breaks(&stays(&[20]), Some("s2.2")), "I6");
}

/// s1 gives a row that s2 waits for another primary key, behind or ahead of the
/// scan.
#[test]
fn a_row_that_goes_on_is_met_again() {
    let run = |id: i64, count: u64| {
        let v = |v: i64| if count == 2 || v == 20 { 0 } else { v };
        two("mariadb", ReadCommitted)
            .does("s1", &format!("update t set id = {id} where id = 1"), changed(1))
            .waits("s2", "update t set v = 0 where v > 5")
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves(&[(id, v(10)), (2, 0)])
    };
    is_inside(&run(5, 2));
    assert_eq!(breaks(&run(5, 1), Some("s2.2")), "I6");
    is_inside(&run(0, 2));
    is_inside(&run(0, 1));
}

/// s1 changes a unique column of a row that s2 looks for by others.
#[test]
fn a_row_that_moves_in_an_index_is_missed_only_by_who_may_read_that() {
    let run = |filter: &str, count: u64| {
        let last = if count == 1 { 0 } else { 10 };
        Told::on("mariadb", ReadCommitted, &[])
            .in_table("create table t (id int primary key, v int, w int unique)", &[&[1, 10, 5]])
            .does("s1", "begin", What::Done)
            .does("s2", "begin", What::Done)
            .does("s1", "update t set w = 9 where id = 1", changed(1))
            .waits("s2", &format!("update t set v = 0 {filter}"))
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves_rows(&[&[1, last, 9]])
    };
    for filter in ["where id = 1", "where v = 10", ""] {
        is_inside(&run(filter, 1));
        assert_eq!(breaks(&run(filter, 0), Some("s2.2")), "I6");
    }
    for filter in ["where w > 0", "where id = 1 and w > 0"] {
        is_inside(&run(filter, 1));
        is_inside(&run(filter, 0));
    }
}

#[test]
fn a_row_may_go_to_a_partition_that_the_scan_has_left() {
    let run = |partitioned: Option<&str>, count: u64, last: i64| {
        let mut told = two("mariadb", ReadCommitted);
        told.reading.schema.tables[0].partitioned_by = partitioned.map(Into::into);
        told.does("s1", "update t set v = 30 where id = 1", changed(1))
            .waits("s2", "update t set v = 0")
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, last), (2, 0)])
    };
    is_inside(&run(Some("v"), 1, 30));
    is_inside(&run(Some("v"), 2, 0));
    is_inside(&run(None, 2, 0));
    assert_eq!(breaks(&run(None, 1, 30), Some("s2.2")), "I6");
}

#[test]
fn a_new_row_takes_the_record_of_one_that_has_got_another_key() {
    let run = |seen: &[i64]| {
        two("mariadb", RepeatableRead)
            .does("s2", "select v from t", rows(&[10, 20]))
            .does("s1", "update t set id = 100 where id = 1", changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", "select v from t where v < 99", rows(&[10, 20]))
            .does("s2", "insert into t values (1, 99)", changed(1))
            .does("s2", "select v from t", rows(seen))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 99), (2, 20), (100, 10)])
    };
    is_inside(&run(&[99, 20]));
    assert_eq!(breaks(&run(&[99, 10, 20]), Some("s2.5")), "I1");
}

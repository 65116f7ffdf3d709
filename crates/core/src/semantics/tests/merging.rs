//! Runs of engines whose writers meet column by column.

use super::runs::{breaks, is_inside};
use super::{Told, changed, error, rows};
use crate::Level::Snapshot;
use crate::history::{ErrorClass, What};

const FIRST: [(i64, i64); 2] = [(1, 10), (2, 20)];
const THREE: &str = "create table t (id int, v int, w int)";

fn two() -> Told {
    begun(Told::on("duckdb", Snapshot, &FIRST))
}

fn begun(told: Told) -> Told {
    told.does("s1", "begin", What::Done).does("s2", "begin", What::Done)
}

fn three_columns() -> Told {
    begun(Told::on("duckdb", Snapshot, &[]).in_table(THREE, &[&[1, 10, 100]]))
}

/// Two transactions that write; the second, and what is left.
fn both(first: &str, second: &str, what: What, left: &[&[i64]]) -> Told {
    three_columns()
        .does("s1", first, changed(1))
        .does("s2", second, what)
        .does("s1", "commit", What::Done)
        .does("s2", "commit", What::Done)
        .leaves_rows(left)
}

#[test]
fn columns_apart_are_put_together() {
    let run = |left: &[i64]| both("update t set v = 1", "update t set w = 2", changed(1), &[left]);
    is_inside(&run(&[1, 1, 2]));
    assert_eq!(breaks(&run(&[1, 10, 2]), None), "D6");
    assert_eq!(breaks(&run(&[1, 1, 100]), None), "D6");
}

#[test]
fn whoever_began_to_write_first_may_commit_last() {
    let run = |left: &[i64]| {
        three_columns()
            .does("s1", "update t set v = 1", changed(1))
            .does("s2", "update t set w = 2", changed(1))
            .does("s2", "commit", What::Done)
            .does("s1", "commit", What::Done)
            .leaves_rows(&[left])
    };
    is_inside(&run(&[1, 1, 2]));
    assert_eq!(breaks(&run(&[1, 1, 100]), None), "D6");
}

#[test]
fn one_value_has_one_writer() {
    let run = three_columns().does("s1", "update t set v = 1", changed(1));
    let second = "update t set v = 2, w = 5";
    assert_eq!(breaks(&run.does("s2", second, changed(1)), Some("s2.2")), "D2");
    let fails = three_columns()
        .does("s1", "update t set v = 1", changed(1))
        .does("s2", second, error(ErrorClass::WriteConflict))
        .does("s1", "commit", What::Done)
        .leaves_rows(&[&[1, 1, 100]]);
    is_inside(&fails);
    let alone = three_columns().does("s2", second, error(ErrorClass::WriteConflict));
    assert_eq!(breaks(&alone, Some("s2.2")), "D9");
}

#[test]
fn a_value_that_stays_as_it_was_may_have_been_written_or_not() {
    let equal = |what| {
        three_columns().does("s1", "update t set v = 10", changed(1)).does(
            "s2",
            "update t set v = 2",
            what,
        )
    };
    is_inside(&equal(changed(1)));
    is_inside(&equal(error(ErrorClass::WriteConflict)));
    assert_eq!(breaks(&equal(error(ErrorClass::Constraint)), Some("s2.2")), "D9");
}

#[test]
fn a_change_is_not_lost_to_a_deletion() {
    for (first, second) in
        [("delete from t", "update t set v = 1"), ("update t set v = 1", "delete from t")]
    {
        assert_eq!(breaks(&both(first, second, changed(1), &[]), Some("s2.3")), "D2");
    }
    let harmless = |left: &[&[i64]]| {
        three_columns()
            .does("s1", "update t set v = 1", changed(1))
            .does("s2", "delete from t", changed(1))
            .does("s1", "rollback", What::Done)
            .does("s2", "commit", What::Done)
            .leaves_rows(left)
    };
    is_inside(&harmless(&[]));
    assert_eq!(breaks(&harmless(&[&[1, 10, 100]]), None), "D6");
}

#[test]
fn a_key_that_is_set_moves_its_row() {
    let lost = two()
        .does("s1", "update t set v = 11 where id = 1", changed(1))
        .does("s2", "update t set id = id where id = 1", changed(1))
        .does("s1", "commit", What::Done)
        .does("s2", "commit", What::Done)
        .leaves(&FIRST);
    assert_eq!(breaks(&lost, Some("s2.3")), "D2");
    let twice = two().does("s1", "update t set id = 5 where id = 1", changed(1)).does(
        "s2",
        "update t set id = 6 where id = 1",
        changed(1),
    );
    assert_eq!(breaks(&twice, Some("s2.2")), "D2");
}

#[test]
fn keys_are_looked_up_in_the_index() {
    let unseen = |what| {
        two()
            .does("s2", "select v from t where id = 1", rows(&[10]))
            .does("s1", "insert into t (id, v) values (3, 30)", changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", "insert into t (id, v) values (3, 31)", what)
    };
    is_inside(&unseen(error(ErrorClass::Constraint)).leaves(&[(1, 10), (2, 20), (3, 30)]));
    assert_eq!(breaks(&unseen(changed(1)), Some("s2.3")), "D3");
    let at_commit = |what| {
        two()
            .does("s1", "insert into t (id, v) values (3, 30)", changed(1))
            .does("s2", "insert into t (id, v) values (3, 31)", changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", "commit", what)
    };
    let failed = at_commit(error(ErrorClass::Constraint));
    is_inside(&failed.leaves(&[(1, 10), (2, 20), (3, 30)]));
    assert_eq!(breaks(&at_commit(What::Done), Some("s2.3")), "D3");
}

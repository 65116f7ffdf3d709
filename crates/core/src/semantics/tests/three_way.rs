//! Runs of an engine that merges transactions when they commit.

use super::runs::{breaks, is_inside};
use super::{Told, changed, error, rows};
use crate::Level::{ReadCommitted, Serializable};
use crate::history::{ErrorClass, What};
use crate::semantics::{Explanation, Subject, explain};

const KEYED: &str = "create table t (id int primary key, v int, w int)";
const KEYLESS: &str = "create table t (id int, v int, w int)";
const FIRST: [&[i64]; 2] = [&[1, 10, 100], &[2, 20, 200]];

fn two(table: &str) -> Told {
    Told::on("dolt", ReadCommitted, &[])
        .in_table(table, &FIRST)
        .does("s1", "begin", What::Done)
        .does("s2", "begin", What::Done)
}

/// Two transactions that change a row each; how the second COMMIT ends.
fn both(table: &str, one: &str, other: &str, what: What, left: &[&[i64]]) -> Told {
    two(table)
        .does("s1", one, changed(1))
        .does("s2", other, changed(1))
        .does("s1", "commit", What::Done)
        .does("s2", "commit", what)
        .leaves_rows(left)
}

fn conflict() -> What {
    error(ErrorClass::Deadlock)
}

#[test]
fn a_transaction_sees_what_was_there_when_it_began() {
    let run = |seen: i64| {
        two(KEYED)
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", "select v from t where id = 1", rows(&[seen]))
            .does("s2", "commit", What::Done)
            .leaves_rows(&[&[1, 11, 100], FIRST[1]])
    };
    is_inside(&run(10));
    assert_eq!(breaks(&run(11), Some("s2.2")), "O1");
}

#[test]
fn cells_of_two_transactions_make_one_row() {
    let set = ["update t set v = 1 where id = 1", "update t set w = 2 where id = 1"];
    let run = |left: &[i64]| both(KEYED, set[0], set[1], What::Done, &[left, FIRST[1]]);
    is_inside(&run(&[1, 1, 2]));
    assert_eq!(breaks(&run(&[1, 10, 2]), None), "O6");
    let refused = both(KEYED, set[0], set[1], conflict(), &[&[1, 1, 100], FIRST[1]]);
    assert_eq!(breaks(&refused, Some("s2.3")), "O9");
}

#[test]
fn changes_that_are_alike_are_one_change() {
    let more = "update t set v = v + 1 where id = 1";
    let left: [&[i64]; 2] = [&[1, 11, 100], FIRST[1]];
    is_inside(&both(KEYED, more, more, What::Done, &left));
    let twice: [&[i64]; 2] = [&[1, 12, 100], FIRST[1]];
    assert_eq!(breaks(&both(KEYED, more, more, What::Done, &twice), None), "O6");
}

#[test]
fn what_cannot_be_merged_fails_the_commit() {
    let one = "update t set v = 1 where id = 1";
    let left: [&[i64]; 2] = [&[1, 1, 100], FIRST[1]];
    for other in [
        "update t set v = 2 where id = 1",
        "delete from t where id = 1",
        "update t set id = 9 where id = 1",
    ] {
        is_inside(&both(KEYED, one, other, conflict(), &left));
        assert_eq!(breaks(&both(KEYED, one, other, What::Done, &left), Some("s2.3")), "O2");
    }
    let (add, another) = ("insert into t values (3, 1, 1)", "insert into t values (3, 1, 2)");
    let left: [&[i64]; 3] = [FIRST[0], FIRST[1], &[3, 1, 1]];
    is_inside(&both(KEYED, add, another, conflict(), &left));
    is_inside(&both(KEYED, add, add, What::Done, &left));
}

#[test]
fn rows_without_a_key_are_counted() {
    let (one, other) = ("update t set v = 1 where id = 1", "update t set w = 2 where id = 1");
    let left: [&[i64]; 2] = [&[1, 1, 100], FIRST[1]];
    is_inside(&both(KEYLESS, one, other, conflict(), &left));
    assert_eq!(breaks(&both(KEYLESS, one, other, What::Done, &left), Some("s2.3")), "O2");
    let apart = "update t set w = 2 where id = 2";
    is_inside(&both(KEYLESS, one, apart, What::Done, &[&[1, 1, 100], &[2, 20, 2]]));
}

#[test]
fn two_that_move_a_row_apart_leave_two() {
    let (one, other) = ("update t set id = 8 where id = 1", "update t set id = 9 where id = 1");
    let left: [&[i64]; 3] = [FIRST[1], &[8, 10, 100], &[9, 10, 100]];
    is_inside(&both(KEYED, one, other, What::Done, &left));
}

#[test]
fn a_key_that_the_merge_has_twice_fails_the_commit() {
    let table = "create table t (id int primary key, v int unique, w int)";
    let (one, other) = ("update t set v = 5 where id = 1", "update t set v = 5 where id = 2");
    let left: [&[i64]; 2] = [&[1, 5, 100], FIRST[1]];
    is_inside(&both(table, one, other, error(ErrorClass::Constraint), &left));
    assert_eq!(breaks(&both(table, one, other, What::Done, &left), Some("s2.3")), "O3");
}

#[test]
fn serializable_is_a_name() {
    let skew = Told::on("dolt", Serializable, &[])
        .in_table(KEYED, &FIRST)
        .does("s1", "begin", What::Done)
        .does("s2", "begin", What::Done)
        .does("s1", "update t set v = (select sum(w) from t) where id = 1", changed(1))
        .does("s2", "update t set w = (select sum(v) from t) where id = 2", changed(1))
        .does("s1", "commit", What::Done)
        .does("s2", "commit", What::Done)
        .leaves_rows(&[&[1, 300, 100], &[2, 20, 30]]);
    let subject = &Subject { history: &skew.history, reading: &skew.reading };
    let inquiry = crate::inquiry::Inquiry::new(|desk| async move { explain(subject, &desk).await });
    let explanation = skew.answered(inquiry);
    assert!(matches!(explanation, Explanation::Inside { order: None, .. }), "{explanation:?}");
}

//! Runs of an engine that merges transactions when they commit.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, changed, error, rows};
use crate::subject::Subject;
use crate::{Conclusion, SerialSearch, analyse};
use isolde_model::Level::{ReadCommitted, Serializable};
use isolde_model::history::{ErrorClass, EventKind};

const KEYED: &str = "create table t (id int primary key, v int, w int)";
const KEYLESS: &str = "create table t (id int, v int, w int)";
const FIRST: [&[i64]; 2] = [&[1, 10, 100], &[2, 20, 200]];

fn two(table: &str) -> ScriptedRun {
    ScriptedRun::on("dolt", ReadCommitted, &[])
        .in_table(table, &FIRST)
        .does("s1", "begin", EventKind::Done)
        .does("s2", "begin", EventKind::Done)
}

/// Two transactions that change one row each; `what` is the reply to the second
/// COMMIT.
fn both(table: &str, one: &str, other: &str, what: EventKind, left: &[&[i64]]) -> ScriptedRun {
    two(table)
        .does("s1", one, changed(1))
        .does("s2", other, changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", what)
        .leaves_rows(left)
}

fn conflict() -> EventKind {
    error(ErrorClass::Deadlock)
}

#[test]
fn snapshot_is_taken_at_begin() {
    let run = |seen: i64| {
        two(KEYED)
            .does("s1", "update t set v = 11 where id = 1", changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "select v from t where id = 1", rows(&[seen]))
            .does("s2", "commit", EventKind::Done)
            .leaves_rows(&[&[1, 11, 100], FIRST[1]])
    };
    assert_allowed(&run(10));
    assert_eq!(breaks(&run(11), Some("s2.2")), "O1");
}

#[test]
fn merge_combines_cells_of_two_transactions() {
    let set = ["update t set v = 1 where id = 1", "update t set w = 2 where id = 1"];
    let run = |left: &[i64]| both(KEYED, set[0], set[1], EventKind::Done, &[left, FIRST[1]]);
    assert_allowed(&run(&[1, 1, 2]));
    assert_eq!(breaks(&run(&[1, 10, 2]), None), "O6");
    let refused = both(KEYED, set[0], set[1], conflict(), &[&[1, 1, 100], FIRST[1]]);
    assert_eq!(breaks(&refused, Some("s2.3")), "O9");
}

#[test]
fn merge_takes_equal_changes_as_one_change() {
    let more = "update t set v = v + 1 where id = 1";
    let left: [&[i64]; 2] = [&[1, 11, 100], FIRST[1]];
    assert_allowed(&both(KEYED, more, more, EventKind::Done, &left));
    let twice: [&[i64]; 2] = [&[1, 12, 100], FIRST[1]];
    assert_eq!(breaks(&both(KEYED, more, more, EventKind::Done, &twice), None), "O6");
}

#[test]
fn commit_fails_when_rows_cannot_be_merged() {
    let one = "update t set v = 1 where id = 1";
    let left: [&[i64]; 2] = [&[1, 1, 100], FIRST[1]];
    for other in [
        "update t set v = 2 where id = 1",
        "delete from t where id = 1",
        "update t set id = 9 where id = 1",
    ] {
        assert_allowed(&both(KEYED, one, other, conflict(), &left));
        assert_eq!(breaks(&both(KEYED, one, other, EventKind::Done, &left), Some("s2.3")), "O2");
    }
    let (add, another) = ("insert into t values (3, 1, 1)", "insert into t values (3, 1, 2)");
    let left: [&[i64]; 3] = [FIRST[0], FIRST[1], &[3, 1, 1]];
    assert_allowed(&both(KEYED, add, another, conflict(), &left));
    assert_allowed(&both(KEYED, add, add, EventKind::Done, &left));
}

#[test]
fn merge_of_a_table_without_key_conflicts_on_equal_rows() {
    let (one, other) = ("update t set v = 1 where id = 1", "update t set w = 2 where id = 1");
    let left: [&[i64]; 2] = [&[1, 1, 100], FIRST[1]];
    assert_allowed(&both(KEYLESS, one, other, conflict(), &left));
    assert_eq!(breaks(&both(KEYLESS, one, other, EventKind::Done, &left), Some("s2.3")), "O2");
    let apart = "update t set w = 2 where id = 2";
    assert_allowed(&both(KEYLESS, one, apart, EventKind::Done, &[&[1, 1, 100], &[2, 20, 2]]));
}

#[test]
fn merge_of_two_primary_key_updates_keeps_both_rows() {
    let (one, other) = ("update t set id = 8 where id = 1", "update t set id = 9 where id = 1");
    let left: [&[i64]; 3] = [FIRST[1], &[8, 10, 100], &[9, 10, 100]];
    assert_allowed(&both(KEYED, one, other, EventKind::Done, &left));
}

#[test]
fn commit_fails_when_the_merge_duplicates_a_unique_key() {
    let table = "create table t (id int primary key, v int unique, w int)";
    let (one, other) = ("update t set v = 5 where id = 1", "update t set v = 5 where id = 2");
    let left: [&[i64]; 2] = [&[1, 5, 100], FIRST[1]];
    assert_allowed(&both(table, one, other, error(ErrorClass::Constraint), &left));
    assert_eq!(breaks(&both(table, one, other, EventKind::Done, &left), Some("s2.3")), "O3");
}

#[test]
fn dolt_serializable_permits_write_skew() {
    let skew = ScriptedRun::on("dolt", Serializable, &[])
        .in_table(KEYED, &FIRST)
        .does("s1", "begin", EventKind::Done)
        .does("s2", "begin", EventKind::Done)
        .does("s1", "update t set v = (select sum(w) from t) where id = 1", changed(1))
        .does("s2", "update t set w = (select sum(v) from t) where id = 2", changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
        .leaves_rows(&[&[1, 300, 100], &[2, 20, 30]]);
    let subject = &Subject::new(&skew.history, &skew.reading);
    let inquiry = isolde_model::inquiry::Inquiry::new(|channel| async move {
        analyse(subject, &channel, SerialSearch::WherePromised).await.conclusion
    });
    let explanation = skew.answered(inquiry);
    assert!(matches!(explanation, Conclusion::Allowed { order: None, .. }), "{explanation:?}");
}

//! Runs of engines that detect write conflicts by column.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, changed, error, rows};
use isolde_model::Level::Snapshot;
use isolde_model::history::{ErrorClass, EventKind};

const FIRST: [(i64, i64); 2] = [(1, 10), (2, 20)];
const THREE: &str = "create table t (id int, v int, w int)";

fn two() -> ScriptedRun {
    begun(ScriptedRun::on("duckdb", Snapshot, &FIRST))
}

fn begun(run: ScriptedRun) -> ScriptedRun {
    run.does("s1", "begin", EventKind::Done).does("s2", "begin", EventKind::Done)
}

fn three_columns() -> ScriptedRun {
    begun(ScriptedRun::on("duckdb", Snapshot, &[]).in_table(THREE, &[&[1, 10, 100]]))
}

/// Two transactions that write; `what` is the reply to the second write, and
/// `left` are the final rows.
fn both(first: &str, second: &str, what: EventKind, left: &[&[i64]]) -> ScriptedRun {
    three_columns()
        .does("s1", first, changed(1))
        .does("s2", second, what)
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
        .leaves_rows(left)
}

#[test]
fn updates_of_different_columns_are_merged() {
    let run = |left: &[i64]| both("update t set v = 1", "update t set w = 2", changed(1), &[left]);
    assert_allowed(&run(&[1, 1, 2]));
    assert_eq!(breaks(&run(&[1, 10, 2]), None), "D6");
    assert_eq!(breaks(&run(&[1, 1, 100]), None), "D6");
}

#[test]
fn merged_columns_do_not_depend_on_the_commit_order() {
    let run = |left: &[i64]| {
        three_columns()
            .does("s1", "update t set v = 1", changed(1))
            .does("s2", "update t set w = 2", changed(1))
            .does("s2", "commit", EventKind::Done)
            .does("s1", "commit", EventKind::Done)
            .leaves_rows(&[left])
    };
    assert_allowed(&run(&[1, 1, 2]));
    assert_eq!(breaks(&run(&[1, 1, 100]), None), "D6");
}

#[test]
fn update_of_a_column_with_an_open_write_conflicts() {
    let run = three_columns().does("s1", "update t set v = 1", changed(1));
    let second = "update t set v = 2, w = 5";
    assert_eq!(breaks(&run.does("s2", second, changed(1)), Some("s2.2")), "D2");
    let fails = three_columns()
        .does("s1", "update t set v = 1", changed(1))
        .does("s2", second, error(ErrorClass::WriteConflict))
        .does("s1", "commit", EventKind::Done)
        .leaves_rows(&[&[1, 1, 100]]);
    assert_allowed(&fails);
    let alone = three_columns().does("s2", second, error(ErrorClass::WriteConflict));
    assert_eq!(breaks(&alone, Some("s2.2")), "D9");
}

#[test]
fn update_to_an_equal_value_may_or_may_not_conflict() {
    let equal = |what| {
        three_columns().does("s1", "update t set v = 10", changed(1)).does(
            "s2",
            "update t set v = 2",
            what,
        )
    };
    assert_allowed(&equal(changed(1)));
    assert_allowed(&equal(error(ErrorClass::WriteConflict)));
    assert_eq!(breaks(&equal(error(ErrorClass::Constraint)), Some("s2.2")), "D9");
}

#[test]
fn delete_and_update_of_one_row_conflict() {
    for (first, second) in
        [("delete from t", "update t set v = 1"), ("update t set v = 1", "delete from t")]
    {
        assert_eq!(breaks(&both(first, second, changed(1), &[]), Some("s2.3")), "D2");
    }
    let harmless = |left: &[&[i64]]| {
        three_columns()
            .does("s1", "update t set v = 1", changed(1))
            .does("s2", "delete from t", changed(1))
            .does("s1", "rollback", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves_rows(left)
    };
    assert_allowed(&harmless(&[]));
    assert_eq!(breaks(&harmless(&[&[1, 10, 100]]), None), "D6");
}

#[test]
fn assignment_to_a_key_conflicts_with_other_writes_of_the_row() {
    let lost = two()
        .does("s1", "update t set v = 11 where id = 1", changed(1))
        .does("s2", "update t set id = id where id = 1", changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
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
fn unique_check_finds_keys_that_the_snapshot_lacks() {
    let unseen = |what| {
        two()
            .does("s2", "select v from t where id = 1", rows(&[10]))
            .does("s1", "insert into t (id, v) values (3, 30)", changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "insert into t (id, v) values (3, 31)", what)
    };
    assert_allowed(&unseen(error(ErrorClass::Constraint)).leaves(&[(1, 10), (2, 20), (3, 30)]));
    assert_eq!(breaks(&unseen(changed(1)), Some("s2.3")), "D3");
    let at_commit = |what| {
        two()
            .does("s1", "insert into t (id, v) values (3, 30)", changed(1))
            .does("s2", "insert into t (id, v) values (3, 31)", changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "commit", what)
    };
    let failed = at_commit(error(ErrorClass::Constraint));
    assert_allowed(&failed.leaves(&[(1, 10), (2, 20), (3, 30)]));
    assert_eq!(breaks(&at_commit(EventKind::Done), Some("s2.3")), "D3");
}

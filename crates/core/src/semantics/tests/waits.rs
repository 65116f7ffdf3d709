//! Statements that wait, and what others see meanwhile.

use super::runs::{breaks, is_inside, two};
use super::{Told, changed, error, rows};
use crate::Level::{self, ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use crate::history::{ErrorClass, What};
use crate::semantics::Prediction;

/// s2 changes the first row, and waits for s1 with the second; s3 looks.
fn looks_beside(sql: &str, seen: i64) -> Told {
    two("mysql", ReadUncommitted)
        .does("s3", "begin", What::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", "update t set v = v + 1")
        .does("s3", sql, rows(&[seen]))
}

fn goes_on(told: Told) -> Told {
    told.does("s1", "commit", What::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", What::Done)
        .does("s3", "commit", What::Done)
        .leaves(&[(1, 11), (2, 22)])
}

#[test]
fn a_dirty_read_sees_the_rows_of_a_waiting_statement_before_or_after() {
    let first = |seen| goes_on(looks_beside("select v from t where id = 1", seen));
    is_inside(&first(10));
    is_inside(&first(11));
    assert_eq!(breaks(&first(12), Some("s3.2")), "I3");
    let held = |seen| goes_on(looks_beside("select v from t where id = 2", seen));
    is_inside(&held(21));
    assert_eq!(breaks(&held(22), Some("s3.2")), "I3");
    assert_eq!(breaks(&held(20), Some("s3.2")), "I3");
}

#[test]
fn a_dirty_read_may_have_seen_what_a_failed_statement_took_back() {
    let run = |seen| {
        looks_beside("select v from t where id = 1", seen)
            .sent("s1", "update t set v = 0 where id = 1")
            .replies("s2", error(ErrorClass::Deadlock))
            .replies("s1", changed(1))
            .does("s1", "commit", What::Done)
            .leaves(&[(1, 0), (2, 21)])
    };
    is_inside(&run(11));
    is_inside(&run(10));
    assert_eq!(breaks(&run(0), Some("s3.2")), "I3");
}

/// The scan may meet the row before the statement changes it, and the index after.
#[test]
fn a_table_that_is_read_twice_beside_a_waiting_statement_is_not_modelled() {
    let sql = "select x.v + y.v from t as x join t as y on x.id = y.id where x.id = 1";
    let twice = |seen| goes_on(looks_beside(sql, seen));
    is_inside(&twice(20));
    is_inside(&twice(22));
    let mixed = twice(21).predicted();
    assert!(matches!(mixed, Prediction::NotModelled { .. }), "{mixed:?}");
}

/// s1 has deleted a row of another table, which has nothing to do with what
/// it looks at beside s2.
#[test]
fn versions_of_different_tables_are_different() {
    let run = |seen| {
        Told::on("mysql", ReadUncommitted, &[(1, 10), (2, 20)])
            .beside("create table u (x int)", &[&[5]])
            .does("s1", "begin", What::Done)
            .does("s2", "begin", What::Done)
            .does("s1", "update t set v = 21 where id = 2", changed(1))
            .does("s1", "delete from u", changed(1))
            .waits("s2", "update t set v = 0")
            .does("s1", "select v from t where id = 1", rows(&[seen]))
            .does("s1", "rollback", What::Done)
            .replies("s2", changed(2))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 0), (2, 0)])
    };
    is_inside(&run(10));
    is_inside(&run(0));
    assert_eq!(breaks(&run(20), Some("s1.4")), "I3");
}

/// s3 takes over what s2, which waited as well, has not deleted yet.
#[test]
fn what_a_write_reads_beside_a_statement_that_waits_is_not_modelled() {
    let told = two("mysql", ReadUncommitted)
        .does("s3", "begin", What::Done)
        .does("s1", "update t set v = 21 where id = 2", changed(1))
        .waits("s2", "delete from t")
        .waits("s3", "insert into t select id, v from t order by id, v")
        .does("s1", "commit", What::Done)
        .replies("s2", changed(2))
        .does("s2", "commit", What::Done)
        .replies("s3", changed(1))
        .does("s3", "commit", What::Done)
        .leaves(&[(2, 21)]);
    let prediction = told.predicted();
    assert!(matches!(prediction, Prediction::NotModelled { .. }), "{prediction:?}");
}

/// The read of a session without autocommit begins a transaction, and fails
/// with it: none is recorded.
#[test]
fn a_read_without_autocommit_locks_at_serializable() {
    let run = |before: &str, setting| {
        two("mariadb", Serializable)
            .set("innodb_snapshot_isolation", setting)
            .does("s3", before, What::Done)
            .does("s1", "insert into t values (3, 30)", changed(1))
            .waits("s3", "select v from t")
            .does("s1", "commit", What::Done)
            .replies("s3", error(ErrorClass::WriteConflict))
            .leaves(&[(1, 10), (2, 20), (3, 30)])
    };
    is_inside(&run("set autocommit = 0", "ON"));
    is_inside(&run("begin", "ON"));
    assert_eq!(breaks(&run("set autocommit = 0", "OFF"), Some("s3.2")), "I4");
}

/// Two rows look alike. If one of them was skipped nobody knows which.
#[test]
fn rows_that_may_have_been_skipped_are_not_held() {
    let run = |seen: &[i64]| {
        Told::on("mysql", ReadCommitted, &[(1, 10), (2, 10)])
            .does("s1", "begin", What::Done)
            .does("s2", "begin", What::Done)
            .does("s1", "select v from t for update skip locked", rows(seen))
            .does("s2", "update t set v = 5 where id = 1", changed(1))
            .does("s2", "commit", What::Done)
            .does("s1", "commit", What::Done)
            .leaves(&[(1, 5), (2, 10)])
    };
    is_inside(&run(&[10]));
    assert_eq!(breaks(&run(&[10, 10]), Some("s2.2")), "I11");
}

/// Twelve rows change while s2 looks for the last of them: which of the others
/// it saw before and which after makes no difference.
#[test]
fn rows_that_a_statement_passes_by_are_no_choice() {
    let many: Vec<(i64, i64)> = (1..=12).map(|id| (id, id)).collect();
    let run = |count: u64, last: i64| {
        let left = many.iter().map(|(id, v)| (*id, if *id == 12 { last } else { v + 100 }));
        Told::on("mysql", RepeatableRead, &many)
            .does("s1", "begin", What::Done)
            .does("s2", "begin", What::Done)
            .does("s1", "update t set v = v + 100", changed(12))
            .waits("s2", "update t set v = 0 where v = 112")
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves(&left.collect::<Vec<_>>())
    };
    is_inside(&run(1, 0));
    assert_eq!(breaks(&run(1, 1), None), "I27");
    assert_eq!(breaks(&run(2, 0), Some("s2.2")), "I6");
}

/// s2 changes the second row and waits, for those that are named; s1 has done
/// something before.
fn waits(engine: &str, level: Level, before: Option<(&str, What)>, named: &[&str]) -> Told {
    let told = two(engine, level);
    let told = match before {
        Some((sql, what)) => told.does("s1", sql, what),
        None => told,
    };
    told.waits_for("s2", "update t set v = 21 where id = 2", named)
        .does("s1", "commit", What::Done)
        .resumes("s2")
        .replies("s2", changed(1))
        .does("s2", "commit", What::Done)
}

const READ: &str = "select v from t where id = 2";
const WRITE: &str = "update t set v = 22 where id = 2";

#[test]
fn who_waits_does_so_for_somebody_who_holds_what_it_wants() {
    let left = [(1, 10), (2, 21)];
    for (engine, level, rule) in [
        ("postgres", ReadCommitted, "P12"),
        ("mysql", ReadCommitted, "I11"),
        ("sqlite", Serializable, "S1"),
    ] {
        let for_writer = waits(engine, level, Some((WRITE, changed(1))), &[]).leaves(&left);
        is_inside(&for_writer);
        let for_nobody = waits(engine, level, None, &[]).leaves(&left);
        assert_eq!(breaks(&for_nobody, Some("s2.2")), rule, "{engine}");
        let for_reader = waits(engine, level, Some((READ, rows(&[20]))), &[]).leaves(&left);
        assert_eq!(breaks(&for_reader, Some("s2.2")), rule, "{engine}");
    }
    let locked = waits("mysql", Serializable, Some((READ, rows(&[20]))), &[]).leaves(&left);
    is_inside(&locked);
}

#[test]
fn whoever_is_named_holds_something() {
    let run = |named: &[&str]| {
        waits("postgres", ReadCommitted, Some((WRITE, changed(1))), named)
            .leaves(&[(1, 10), (2, 21)])
    };
    is_inside(&run(&["s1"]));
    assert_eq!(breaks(&run(&["s3"]), Some("s2.2")), "P12");
}

#[test]
fn a_commit_waits_for_readers_where_the_journal_is_rolled_back() {
    let beside_a_reader = |engine: &str| {
        two(engine, Serializable)
            .does("s1", READ, rows(&[20]))
            .does("s2", WRITE, changed(1))
            .does("s2", "commit", What::Done)
            .does("s1", "commit", What::Done)
            .leaves(&[(1, 10), (2, 22)])
    };
    assert_eq!(breaks(&beside_a_reader("sqlite"), Some("s2.3")), "S4");
    is_inside(&beside_a_reader("sqlite+wal"));
    let after_the_reader = two("sqlite", Serializable)
        .does("s1", READ, rows(&[20]))
        .does("s2", WRITE, changed(1))
        .waits("s2", "commit")
        .does("s1", "commit", What::Done)
        .replies("s2", What::Done)
        .leaves(&[(1, 10), (2, 22)]);
    is_inside(&after_the_reader);
}

/// s2, who keeps a snapshot, waits for s1 to commit the key that it inserts.
#[test]
fn an_upsert_that_waited_for_a_row_that_it_does_not_see_fails() {
    let run = |what: What| {
        two("postgres", RepeatableRead)
            .does("s2", READ, rows(&[20]))
            .does("s1", "insert into t (id, v) values (3, 30)", changed(1))
            .waits("s2", "insert into t (id, v) values (3, 1) on conflict do nothing")
            .does("s1", "commit", What::Done)
            .replies("s2", what)
    };
    let left = [(1, 10), (2, 20), (3, 30)];
    is_inside(&run(error(ErrorClass::Serialization)).leaves(&left));
    let skipped = run(changed(0)).does("s2", "commit", What::Done).leaves(&left);
    assert_eq!(breaks(&skipped, Some("s2.3")), "P8");
}

/// s1 has changed the row that s3 leaves as it is.
#[test]
fn an_upsert_by_itself_that_changes_nothing_waits_for_nobody() {
    let run = |told: Told| {
        told.does("s1", "update t set v = 11 where id = 1", changed(1))
            .does(
                "s3",
                "insert into t values (1, 5) on conflict (id) do update set id = 1",
                changed(0),
            )
            .does("s1", "commit", What::Done)
            .leaves(&[(1, 11), (2, 20)])
    };
    is_inside(&run(two("tidb", RepeatableRead)));
    let begun = two("tidb", RepeatableRead).does("s3", "begin", What::Done);
    assert_eq!(breaks(&run(begun), Some("s3.2")), "T7");
    assert_eq!(breaks(&run(two("mysql", RepeatableRead)), Some("s3.1")), "I11");
}

/// s3 finds the first row as it would leave it, and waits for the second; s1
/// changes the first meanwhile.
#[test]
fn an_update_by_itself_may_leave_a_row_as_it_found_it() {
    let run = |told: Told, count: u64, first: i64| {
        let told = told
            .does("s1", "update t set v = 30 where id = 1", changed(1))
            .does("s1", "select v from t where id = 2 for update", rows(&[20]))
            .waits("s3", "update t set v = 10")
            .does("s1", "commit", What::Done)
            .replies("s3", changed(count));
        told.leaves(&[(1, first), (2, 10)])
    };
    let tidb = || two("tidb", RepeatableRead);
    is_inside(&run(tidb(), 1, 30));
    is_inside(&run(tidb(), 2, 10));
    assert_eq!(breaks(&run(tidb(), 1, 10), Some("s3.1")), "T2");
    let begun = tidb().does("s3", "begin", What::Done);
    assert_eq!(breaks(&run(begun, 1, 30), Some("s3.2")), "T2");
}

//! Runs of transactions that find out at their COMMIT, and of table locks.

use super::runs::{breaks, is_inside};
use super::{Told, changed, error, rows};
use crate::Level::{self, ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use crate::history::{ErrorClass, What};

const FIRST: [(i64, i64); 2] = [(1, 10), (2, 20)];
const READ: &str = "select v from t where id = 1";
const SET: &str = "update t set v = 11 where id = 1";

fn two(engine: &str, level: Level) -> Told {
    Told::on(engine, level, &FIRST).does("s1", "begin", What::Done).does("s2", "begin", What::Done)
}

/// s2 reads what s1 has written: before it commits, and after.
fn reads(engine: &str, level: Level, before: i64, after: i64) -> Told {
    two(engine, level)
        .does("s1", SET, changed(1))
        .does("s2", READ, rows(&[before]))
        .does("s1", "commit", What::Done)
        .does("s2", READ, rows(&[after]))
        .does("s2", "commit", What::Done)
        .leaves(&[(1, 11), (2, 20)])
}

#[test]
fn an_optimistic_snapshot_is_kept_at_every_level() {
    for level in [ReadCommitted, RepeatableRead] {
        is_inside(&reads("tidb+optimistic", level, 10, 10));
        assert_eq!(breaks(&reads("tidb+optimistic", level, 10, 11), Some("s2.3")), "T16");
        assert_eq!(breaks(&reads("tidb+optimistic", level, 11, 10), Some("s2.2")), "T16");
    }
}

/// Both write, s2 the row that is named; s1 commits first.
fn both_write(id: i64, commit: What, left: &[(i64, i64)]) -> Told {
    two("tidb+optimistic", RepeatableRead)
        .does("s1", SET, changed(1))
        .does("s2", &format!("update t set v = v + 5 where id = {id}"), changed(1))
        .does("s1", "commit", What::Done)
        .does("s2", "commit", commit)
        .leaves(left)
}

#[test]
fn the_first_to_commit_wins() {
    let conflict = || error(ErrorClass::WriteConflict);
    is_inside(&both_write(1, conflict(), &[(1, 11), (2, 20)]));
    let lost_update = both_write(1, What::Done, &[(1, 15), (2, 20)]);
    assert_eq!(breaks(&lost_update, Some("s2.3")), "T18");
    is_inside(&both_write(2, What::Done, &[(1, 11), (2, 25)]));
    let no_reason = both_write(2, conflict(), &[(1, 11), (2, 20)]);
    assert_eq!(breaks(&no_reason, Some("s2.3")), "T17");
    let wrong_error = both_write(1, error(ErrorClass::Constraint), &[(1, 11), (2, 20)]);
    assert_eq!(breaks(&wrong_error, Some("s2.3")), "T17");
}

/// s1 adds a row, and s2 perhaps one with the same key before s1 commits.
fn inserts(id: i64, other: bool, commit: What) -> Told {
    let insert = format!("insert into t (id, v) values ({id}, 30)");
    let told = two("tidb+optimistic", RepeatableRead).does("s1", &insert, changed(1));
    let told = if other { told.does("s2", &insert, changed(1)) } else { told };
    told.does("s2", "commit", What::Done).does("s1", "commit", commit)
}

#[test]
fn keys_are_checked_at_the_commit() {
    is_inside(&inserts(1, false, error(ErrorClass::Constraint)));
    assert_eq!(breaks(&inserts(1, false, What::Done), Some("s1.3")), "T19");
    is_inside(&inserts(3, true, error(ErrorClass::WriteConflict)));
    assert_eq!(breaks(&inserts(3, true, What::Done), Some("s1.3")), "T18");
    is_inside(&inserts(3, false, What::Done));
    assert_eq!(breaks(&inserts(3, false, error(ErrorClass::Constraint)), Some("s1.3")), "T17");
}

#[test]
fn a_key_that_is_there_twice_may_hide_a_row_and_shows_no_other() {
    let read = |v: i64| {
        two("tidb+optimistic", RepeatableRead)
            .does("s1", "insert into t (id, v) values (1, 30)", changed(1))
            .does("s1", READ, rows(&[v]))
            .does("s1", "rollback", What::Done)
    };
    is_inside(&read(30));
    assert_eq!(breaks(&read(10), Some("s1.3")), "T16");
}

#[test]
fn a_shared_cache_locks_tables_unless_reads_are_uncommitted() {
    let cache = "sqlite+shared-cache";
    is_inside(&reads(cache, ReadUncommitted, 11, 11));
    assert_eq!(breaks(&reads(cache, ReadUncommitted, 10, 11), Some("s2.2")), "S14");
    for seen in [10, 11] {
        assert_eq!(breaks(&reads(cache, Serializable, seen, 11), Some("s2.2")), "S13");
    }
    let waits = |seen: i64| {
        two(cache, Serializable)
            .does("s1", SET, changed(1))
            .waits("s2", READ)
            .does("s1", "commit", What::Done)
            .replies("s2", What::Resumed)
            .replies("s2", rows(&[seen]))
    };
    is_inside(&waits(11));
    assert_eq!(breaks(&waits(10), Some("s2.2")), "S12");
}

#[test]
fn who_has_read_a_table_keeps_others_from_writing_it() {
    let writes = |between: Option<&str>| {
        let told = two("sqlite+shared-cache", Serializable).does("s1", READ, rows(&[10]));
        let told = match between {
            Some(end) => told.does("s1", end, What::Done),
            None => told,
        };
        told.does("s2", SET, changed(1))
    };
    is_inside(&writes(Some("commit")));
    assert_eq!(breaks(&writes(None), Some("s2.2")), "S13");
}

//! Runs of optimistic transactions, which check for conflicts at COMMIT, and of
//! table locks.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, changed, error, rows};
use isolde_model::Level;
use isolde_model::Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use isolde_model::history::{ErrorClass, EventKind};

const FIRST: [(i64, i64); 2] = [(1, 10), (2, 20)];
const READ: &str = "select v from t where id = 1";
const SET: &str = "update t set v = 11 where id = 1";

fn two(engine: &str, level: Level) -> ScriptedRun {
    ScriptedRun::on(engine, level, &FIRST).does("s1", "begin", EventKind::Done).does(
        "s2",
        "begin",
        EventKind::Done,
    )
}

/// s2 reads the row that s1 has written: before s1 commits, and after.
fn reads(engine: &str, level: Level, before: i64, after: i64) -> ScriptedRun {
    two(engine, level)
        .does("s1", SET, changed(1))
        .does("s2", READ, rows(&[before]))
        .does("s1", "commit", EventKind::Done)
        .does("s2", READ, rows(&[after]))
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, 11), (2, 20)])
}

#[test]
fn optimistic_transaction_keeps_its_snapshot_at_every_level() {
    for level in [ReadCommitted, RepeatableRead] {
        assert_allowed(&reads("tidb+optimistic", level, 10, 10));
        assert_eq!(breaks(&reads("tidb+optimistic", level, 10, 11), Some("s2.3")), "T16");
        assert_eq!(breaks(&reads("tidb+optimistic", level, 11, 10), Some("s2.2")), "T16");
    }
}

/// s1 updates row 1 and s2 row `id`; s1 commits first.
fn both_write(id: i64, commit: EventKind, left: &[(i64, i64)]) -> ScriptedRun {
    two("tidb+optimistic", RepeatableRead)
        .does("s1", SET, changed(1))
        .does("s2", &format!("update t set v = v + 5 where id = {id}"), changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", commit)
        .leaves(left)
}

#[test]
fn optimistic_commit_fails_on_a_row_that_was_committed_since() {
    let conflict = || error(ErrorClass::WriteConflict);
    assert_allowed(&both_write(1, conflict(), &[(1, 11), (2, 20)]));
    let lost_update = both_write(1, EventKind::Done, &[(1, 15), (2, 20)]);
    assert_eq!(breaks(&lost_update, Some("s2.3")), "T18");
    assert_allowed(&both_write(2, EventKind::Done, &[(1, 11), (2, 25)]));
    let no_reason = both_write(2, conflict(), &[(1, 11), (2, 20)]);
    assert_eq!(breaks(&no_reason, Some("s2.3")), "T17");
    let wrong_error = both_write(1, error(ErrorClass::Constraint), &[(1, 11), (2, 20)]);
    assert_eq!(breaks(&wrong_error, Some("s2.3")), "T17");
}

/// s1 inserts a row; with `other`, s2 inserts one with the same key and commits
/// first.
fn inserts(id: i64, other: bool, commit: EventKind) -> ScriptedRun {
    let insert = format!("insert into t (id, v) values ({id}, 30)");
    let run = two("tidb+optimistic", RepeatableRead).does("s1", &insert, changed(1));
    let run = if other { run.does("s2", &insert, changed(1)) } else { run };
    run.does("s2", "commit", EventKind::Done).does("s1", "commit", commit)
}

#[test]
fn optimistic_commit_checks_unique_keys() {
    assert_allowed(&inserts(1, false, error(ErrorClass::Constraint)));
    assert_eq!(breaks(&inserts(1, false, EventKind::Done), Some("s1.3")), "T19");
    assert_allowed(&inserts(3, true, error(ErrorClass::WriteConflict)));
    assert_eq!(breaks(&inserts(3, true, EventKind::Done), Some("s1.3")), "T18");
    assert_allowed(&inserts(3, false, EventKind::Done));
    assert_eq!(breaks(&inserts(3, false, error(ErrorClass::Constraint)), Some("s1.3")), "T17");
}

#[test]
fn buffered_duplicate_key_hides_the_row_of_the_snapshot() {
    let read = |v: i64| {
        two("tidb+optimistic", RepeatableRead)
            .does("s1", "insert into t (id, v) values (1, 30)", changed(1))
            .does("s1", READ, rows(&[v]))
            .does("s1", "rollback", EventKind::Done)
    };
    assert_allowed(&read(30));
    assert_eq!(breaks(&read(10), Some("s1.3")), "T16");
}

#[test]
fn shared_cache_locks_tables_except_for_dirty_reads() {
    let cache = "sqlite+shared-cache";
    assert_allowed(&reads(cache, ReadUncommitted, 11, 11));
    assert_eq!(breaks(&reads(cache, ReadUncommitted, 10, 11), Some("s2.2")), "S14");
    for seen in [10, 11] {
        assert_eq!(breaks(&reads(cache, Serializable, seen, 11), Some("s2.2")), "S13");
    }
    let waits = |seen: i64| {
        two(cache, Serializable)
            .does("s1", SET, changed(1))
            .waits("s2", READ)
            .does("s1", "commit", EventKind::Done)
            .replies("s2", EventKind::Resumed)
            .replies("s2", rows(&[seen]))
    };
    assert_allowed(&waits(11));
    assert_eq!(breaks(&waits(10), Some("s2.2")), "S12");
}

#[test]
fn shared_cache_read_lock_blocks_writers_of_the_table() {
    let writes = |between: Option<&str>| {
        let run = two("sqlite+shared-cache", Serializable).does("s1", READ, rows(&[10]));
        let run = match between {
            Some(end) => run.does("s1", end, EventKind::Done),
            None => run,
        };
        run.does("s2", SET, changed(1))
    };
    assert_allowed(&writes(Some("commit")));
    assert_eq!(breaks(&writes(None), Some("s2.2")), "S13");
}

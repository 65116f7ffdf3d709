//! Small runs, each in an allowed and in a forbidden variant.

use super::{ScriptedRun, changed, error, rows};
use crate::Conclusion;
use isolde_model::Level;
use isolde_model::Level::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use isolde_model::history::{ErrorClass, EventKind};

const FIRST: [(i64, i64); 2] = [(1, 10), (2, 20)];
const READ: &str = "select v from t where id = 1";
const SET: &str = "update t set v = 11 where id = 1";

pub fn two(engine: &str, level: Level) -> ScriptedRun {
    ScriptedRun::on(engine, level, &FIRST).does("s1", "begin", EventKind::Done).does(
        "s2",
        "begin",
        EventKind::Done,
    )
}

pub fn assert_allowed(run: &ScriptedRun) {
    let prediction = run.predicted();
    assert!(matches!(prediction, Conclusion::Allowed { .. }), "{prediction:?}");
}

/// The rule that a run breaks: at the statement with this label, or at the final
/// rows.
pub fn breaks(run: &ScriptedRun, label: Option<&str>) -> &'static str {
    match run.predicted() {
        Conclusion::Broken { step, rule, .. } => {
            assert_eq!(step.map(|s| run.history.steps[s].label.as_str()), label);
            rule.expect("a rule is broken").id
        }
        Conclusion::LockingDiffers { step, rule, .. } => {
            assert_eq!(Some(run.history.steps[step].label.as_str()), label);
            rule.id
        }
        other => panic!("{other:?}"),
    }
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
fn select_sees_the_versions_that_its_level_permits() {
    assert_allowed(&reads("postgres", ReadCommitted, 10, 11));
    assert_eq!(breaks(&reads("postgres", ReadCommitted, 10, 10), Some("s2.3")), "P1");
    assert_eq!(breaks(&reads("postgres", ReadCommitted, 11, 11), Some("s2.2")), "P1");
    assert_allowed(&reads("postgres", RepeatableRead, 10, 10));
    assert_eq!(breaks(&reads("postgres", RepeatableRead, 10, 11), Some("s2.3")), "P7");
    assert_allowed(&reads("mysql", ReadUncommitted, 11, 11));
    assert_eq!(breaks(&reads("mysql", ReadUncommitted, 10, 11), Some("s2.2")), "I3");
    assert_allowed(&reads("mysql", ReadCommitted, 10, 11));
    assert_allowed(&reads("mysql", RepeatableRead, 10, 10));
    assert_eq!(breaks(&reads("mysql", RepeatableRead, 10, 11), Some("s2.3")), "I1");
    assert_allowed(&reads("sqlite+wal", Serializable, 10, 10));
    assert_eq!(breaks(&reads("sqlite+wal", Serializable, 11, 11), Some("s2.2")), "S2");
}

#[test]
fn rollback_removes_the_versions_of_its_transaction() {
    let run = |left: i64| {
        ScriptedRun::on("postgres", ReadCommitted, &FIRST)
            .does("s1", "begin", EventKind::Done)
            .does("s1", SET, changed(1))
            .does("s1", READ, rows(&[11]))
            .does("s1", "rollback", EventKind::Done)
            .leaves(&[(1, left), (2, 20)])
    };
    assert_allowed(&run(10));
    assert_eq!(breaks(&run(11), None), "P17");
}

#[test]
fn update_waits_for_a_row_with_a_lock_holder() {
    let at_once = two("postgres", ReadCommitted).does("s1", SET, changed(1)).does(
        "s2",
        "update t set v = v + 1 where id = 1",
        changed(1),
    );
    assert_eq!(breaks(&at_once, Some("s2.2")), "P12");
    let another_row = two("postgres", ReadCommitted)
        .does("s1", SET, changed(1))
        .does("s2", "update t set v = v + 1 where id = 2", changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, 11), (2, 21)]);
    assert_allowed(&another_row);
}

/// s2 searches for a value that s1 has changed, and is blocked by s1.
fn after_a_wait(level: Level, what: EventKind) -> ScriptedRun {
    two("postgres", level)
        .does("s1", SET, changed(1))
        .waits("s2", "update t set v = 5 where v = 10")
        .does("s1", "commit", EventKind::Done)
        .replies("s2", what)
}

#[test]
fn update_tests_a_row_again_after_a_lock_wait() {
    let run =
        |count| after_a_wait(ReadCommitted, changed(count)).does("s2", "commit", EventKind::Done);
    assert_allowed(&run(0).leaves(&[(1, 11), (2, 20)]));
    assert_eq!(breaks(&run(1).leaves(&[(1, 5), (2, 20)]), Some("s2.2")), "P2");
    let failed = after_a_wait(RepeatableRead, error(ErrorClass::Serialization));
    assert_allowed(&failed.leaves(&[(1, 11), (2, 20)]));
    let went_on = after_a_wait(RepeatableRead, changed(0)).does("s2", "commit", EventKind::Done);
    assert_eq!(breaks(&went_on.leaves(&[(1, 11), (2, 20)]), Some("s2.2")), "P7w");
}

/// The reply of s2, which was blocked by s1, is recorded before the end of s1.
fn recorded_first(in_one_moment: bool) -> ScriptedRun {
    let waits = two("postgres", ReadCommitted)
        .does("s1", SET, changed(1))
        .waits("s2", "update t set v = v + 1 where id = 1");
    let done = if in_one_moment {
        waits.sent("s1", "commit").replies("s2", changed(1)).replies("s1", EventKind::Done)
    } else {
        waits.replies("s2", changed(1)).does("s1", "commit", EventKind::Done)
    };
    done.does("s2", "commit", EventKind::Done).leaves(&[(1, 12), (2, 20)])
}

#[test]
fn concurrent_replies_may_have_finished_in_any_order() {
    assert_allowed(&recorded_first(true));
    assert_eq!(breaks(&recorded_first(false), Some("s2.2")), "P12");
}

#[test]
fn error_without_a_cause_breaks_a_rule() {
    let alone = |class| {
        ScriptedRun::on("postgres", RepeatableRead, &FIRST)
            .does("s1", "begin", EventKind::Done)
            .does("s1", SET, error(class))
            .leaves(&FIRST)
    };
    for class in [
        ErrorClass::Constraint,
        ErrorClass::Deadlock,
        ErrorClass::Serialization,
        ErrorClass::LockTimeout,
        ErrorClass::Busy,
        ErrorClass::ReadOnly,
    ] {
        assert_eq!(breaks(&alone(class), Some("s1.2")), "P7", "{class:?}");
    }
    let own_error = alone(ErrorClass::Rejected).predicted();
    assert!(matches!(own_error, Conclusion::NotModelled { .. }), "{own_error:?}");
    let taken = |what| {
        ScriptedRun::on("postgres", RepeatableRead, &FIRST)
            .does("s1", "begin", EventKind::Done)
            .does("s1", "insert into t (id, v) values (1, 5)", what)
            .leaves(&FIRST)
    };
    assert_allowed(&taken(error(ErrorClass::Constraint)));
    assert_eq!(breaks(&taken(changed(1)), Some("s1.2")), "P10");
}

#[test]
fn sqlite_has_one_writer_at_a_time() {
    let second = two("sqlite+wal", Serializable).does("s1", SET, changed(1)).does(
        "s2",
        "update t set v = 0 where id = 2",
        changed(1),
    );
    assert_eq!(breaks(&second, Some("s2.2")), "S1");
    let stale = |what: EventKind| {
        two("sqlite+wal", Serializable)
            .does("s2", READ, rows(&[10]))
            .does("s1", SET, changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "update t set v = 0 where id = 2", what)
    };
    let refused = stale(error(ErrorClass::Serialization)).leaves(&[(1, 11), (2, 20)]);
    assert_allowed(&refused);
    let went_on = stale(changed(1)).does("s2", "commit", EventKind::Done);
    assert_eq!(breaks(&went_on.leaves(&[(1, 11), (2, 0)]), Some("s2.3")), "S3");
}

/// An UPDATE that does not change the row. It sets a column that it reads or one that
/// it does not.
#[test]
fn mysql_may_write_an_unchanged_row_that_it_does_not_compare() {
    let run = |engine: &str, sql: &str, seen: i64| {
        two(engine, RepeatableRead)
            .in_table("create table t (id int primary key, v int, w int)", &[&[1, 10, 5]])
            .does("s2", READ, rows(&[10]))
            .does("s1", SET, changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", sql, changed(0))
            .does("s2", READ, rows(&[seen]))
            .does("s2", "commit", EventKind::Done)
            .leaves_rows(&[&[1, 11, 5]])
    };
    let (unread, read) = ("update t set w = 5 where id = 1", "update t set w = 5 where w = 5");
    assert_allowed(&run("mysql", unread, 11));
    assert_allowed(&run("mysql", unread, 10));
    assert_allowed(&run("mysql", read, 10));
    assert_eq!(breaks(&run("mysql", read, 11), Some("s2.4")), "I1");
    assert_allowed(&run("mariadb", unread, 10));
    assert_eq!(breaks(&run("mariadb", unread, 11), Some("s2.4")), "I1");
}

#[test]
fn value_out_of_range_of_its_type_is_not_modelled() {
    let run = |sqlstate: &str| {
        let EventKind::Error(mut failed) = error(ErrorClass::Constraint) else { unreachable!() };
        failed.sqlstate = Some(sqlstate.into());
        two("mariadb", RepeatableRead)
            .does("s1", SET, EventKind::Error(failed))
            .leaves(&[(1, 10), (2, 20)])
    };
    assert!(matches!(run("22003").predicted(), Conclusion::NotModelled { .. }));
    assert_eq!(breaks(&run("23000"), Some("s1.2")), "I6");
}

/// s2 ignores a row because of a duplicate key: of a row that s1 has changed or
/// inserted.
#[test]
fn insert_or_ignore_of_a_visible_key_does_not_conflict() {
    let run = |sql: &str, key: i64, left: &[(i64, i64)]| {
        two("turso+mvcc", Level::Snapshot)
            .does("s1", sql, changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", &format!("insert or ignore into t values ({key}, 5)"), changed(0))
            .does("s2", "commit", EventKind::Done)
            .leaves(left)
    };
    assert_allowed(&run(SET, 1, &[(1, 11), (2, 20)]));
    let added = run("insert into t values (3, 30)", 3, &[(1, 10), (2, 20), (3, 30)]);
    assert_eq!(breaks(&added, Some("s2.2")), "U4");
}

/// s1 changes the first row and inserts one; s2 is blocked by s1.
#[test]
fn second_test_is_cited_only_where_it_changes_the_result() {
    let explains = |first: &str, second: &str, count: u64, left: &[(i64, i64)]| {
        let run = two("postgres", ReadCommitted)
            .does("s1", first, changed(1))
            .does("s1", "insert into t values (3, 30)", changed(1))
            .waits("s2", second)
            .does("s1", "commit", EventKind::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(left);
        let Conclusion::Allowed { rules, .. } = run.predicted() else { panic!("{first} {second}") };
        let step = run.history.steps.iter().position(|s| s.label == "s2.2").unwrap();
        rules[step].iter().any(|rule| rule.id == "P3")
    };
    let after = |first| [(1, first), (2, 0), (3, 30)];
    let same = "update t set v = 10 where id = 1";
    assert!(!explains(same, "update t set v = 0", 2, &after(0)));
    assert!(!explains(SET, "update t set v = 0", 2, &after(0)));
    assert!(!explains("delete from t where id = 1", "update t set v = 0", 1, &after(0)[1..]));
    assert!(explains(SET, "update t set v = v - 10 where id = 1", 1, &[(1, 1), (2, 20), (3, 30)]));
    assert!(explains(SET, "update t set v = 0 where v in (10, 20)", 1, &after(11)));
    assert!(explains(SET, "delete from t where v in (10, 20)", 1, &[(1, 11), (3, 30)]));
    assert!(!explains(SET, "delete from t where v < 30", 2, &[(3, 30)]));
}

/// INSERT OR IGNORE is no read: the first SELECT after it takes the snapshot.
#[test]
fn insert_or_ignore_takes_no_snapshot() {
    let run = |seen| {
        two("mysql", RepeatableRead)
            .does("s2", "insert or ignore into t values (2, 5)", changed(0))
            .does("s1", SET, changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", READ, rows(&[seen]))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, 11), (2, 20)])
    };
    assert_allowed(&run(11));
    assert_eq!(breaks(&run(10), Some("s2.3")), "I1");
}

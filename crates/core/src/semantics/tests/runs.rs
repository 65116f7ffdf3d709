//! Small runs, each as it should be and as it should not be.

use super::{Told, changed, error, rows};
use crate::Level::{self, ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
use crate::history::{ErrorClass, What};
use crate::semantics::Prediction;

const FIRST: [(i64, i64); 2] = [(1, 10), (2, 20)];
const READ: &str = "select v from t where id = 1";
const SET: &str = "update t set v = 11 where id = 1";

pub fn two(engine: &str, level: Level) -> Told {
    Told::on(engine, level, &FIRST).does("s1", "begin", What::Done).does("s2", "begin", What::Done)
}

pub fn is_inside(told: &Told) {
    let prediction = told.predicted();
    assert!(matches!(prediction, Prediction::Inside { .. }), "{prediction:?}");
}

/// Outside at this statement, or at the final rows; the rule that it breaks.
pub fn breaks(told: &Told, label: Option<&str>) -> &'static str {
    match told.predicted() {
        Prediction::Outside { step, rule, .. } => {
            assert_eq!(step.map(|s| told.history.steps[s].label.as_str()), label);
            rule.id
        }
        other => panic!("{other:?}"),
    }
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
fn what_each_level_sees_of_another_transaction() {
    is_inside(&reads("postgres", ReadCommitted, 10, 11));
    assert_eq!(breaks(&reads("postgres", ReadCommitted, 10, 10), Some("s2.3")), "P1");
    assert_eq!(breaks(&reads("postgres", ReadCommitted, 11, 11), Some("s2.2")), "P1");
    is_inside(&reads("postgres", RepeatableRead, 10, 10));
    assert_eq!(breaks(&reads("postgres", RepeatableRead, 10, 11), Some("s2.3")), "P7");
    is_inside(&reads("mysql", ReadUncommitted, 11, 11));
    assert_eq!(breaks(&reads("mysql", ReadUncommitted, 10, 11), Some("s2.2")), "I3");
    is_inside(&reads("mysql", ReadCommitted, 10, 11));
    is_inside(&reads("mysql", RepeatableRead, 10, 10));
    assert_eq!(breaks(&reads("mysql", RepeatableRead, 10, 11), Some("s2.3")), "I1");
    is_inside(&reads("sqlite+wal", Serializable, 10, 10));
    assert_eq!(breaks(&reads("sqlite+wal", Serializable, 11, 11), Some("s2.2")), "S2");
}

#[test]
fn what_is_rolled_back_is_gone() {
    let run = |left: i64| {
        Told::on("postgres", ReadCommitted, &FIRST)
            .does("s1", "begin", What::Done)
            .does("s1", SET, changed(1))
            .does("s1", READ, rows(&[11]))
            .does("s1", "rollback", What::Done)
            .leaves(&[(1, left), (2, 20)])
    };
    is_inside(&run(10));
    assert_eq!(breaks(&run(11), None), "P17");
}

#[test]
fn a_row_that_another_holds_is_waited_for() {
    let at_once = two("postgres", ReadCommitted).does("s1", SET, changed(1)).does(
        "s2",
        "update t set v = v + 1 where id = 1",
        changed(1),
    );
    assert_eq!(breaks(&at_once, Some("s2.2")), "P12");
    let another_row = two("postgres", ReadCommitted)
        .does("s1", SET, changed(1))
        .does("s2", "update t set v = v + 1 where id = 2", changed(1))
        .does("s1", "commit", What::Done)
        .does("s2", "commit", What::Done)
        .leaves(&[(1, 11), (2, 21)]);
    is_inside(&another_row);
}

/// s2 looks for a value that s1, for whom it waits, has changed.
fn after_a_wait(level: Level, what: What) -> Told {
    two("postgres", level)
        .does("s1", SET, changed(1))
        .waits("s2", "update t set v = 5 where v = 10")
        .does("s1", "commit", What::Done)
        .replies("s2", what)
}

#[test]
fn what_was_waited_for_is_looked_at_again() {
    let run = |count| after_a_wait(ReadCommitted, changed(count)).does("s2", "commit", What::Done);
    is_inside(&run(0).leaves(&[(1, 11), (2, 20)]));
    assert_eq!(breaks(&run(1).leaves(&[(1, 5), (2, 20)]), Some("s2.2")), "P2");
    let failed = after_a_wait(RepeatableRead, error(ErrorClass::Serialization));
    is_inside(&failed.leaves(&[(1, 11), (2, 20)]));
    let went_on = after_a_wait(RepeatableRead, changed(0)).does("s2", "commit", What::Done);
    assert_eq!(breaks(&went_on.leaves(&[(1, 11), (2, 20)]), Some("s2.2")), "P7w");
}

/// s2 goes on before s1, for whom it waits, is recorded to have ended.
fn recorded_first(in_one_moment: bool) -> Told {
    let waits = two("postgres", ReadCommitted)
        .does("s1", SET, changed(1))
        .waits("s2", "update t set v = v + 1 where id = 1");
    let done = if in_one_moment {
        waits.sent("s1", "commit").replies("s2", changed(1)).replies("s1", What::Done)
    } else {
        waits.replies("s2", changed(1)).does("s1", "commit", What::Done)
    };
    done.does("s2", "commit", What::Done).leaves(&[(1, 12), (2, 20)])
}

#[test]
fn what_finished_together_may_have_done_so_in_any_order() {
    is_inside(&recorded_first(true));
    assert_eq!(breaks(&recorded_first(false), Some("s2.2")), "P12");
}

#[test]
fn errors_need_a_reason() {
    let alone = |class| {
        Told::on("postgres", RepeatableRead, &FIRST)
            .does("s1", "begin", What::Done)
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
    assert!(matches!(own_error, Prediction::NotModelled { .. }), "{own_error:?}");
    let taken = |what| {
        Told::on("postgres", RepeatableRead, &FIRST)
            .does("s1", "begin", What::Done)
            .does("s1", "insert into t (id, v) values (1, 5)", what)
            .leaves(&FIRST)
    };
    is_inside(&taken(error(ErrorClass::Constraint)));
    assert_eq!(breaks(&taken(changed(1)), Some("s1.2")), "P10");
}

#[test]
fn one_writer_at_a_time() {
    let second = two("sqlite+wal", Serializable).does("s1", SET, changed(1)).does(
        "s2",
        "update t set v = 0 where id = 2",
        changed(1),
    );
    assert_eq!(breaks(&second, Some("s2.2")), "S1");
    let stale = |what: What| {
        two("sqlite+wal", Serializable)
            .does("s2", READ, rows(&[10]))
            .does("s1", SET, changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", "update t set v = 0 where id = 2", what)
    };
    let refused = stale(error(ErrorClass::Serialization)).leaves(&[(1, 11), (2, 20)]);
    is_inside(&refused);
    let went_on = stale(changed(1)).does("s2", "commit", What::Done);
    assert_eq!(breaks(&went_on.leaves(&[(1, 11), (2, 0)]), Some("s2.3")), "S3");
}

/// An UPDATE that leaves the row as it is, by a column that it reads or not.
#[test]
fn a_row_that_stays_as_it_was_may_be_written_where_it_is_not_compared() {
    let run = |engine: &str, sql: &str, seen: i64| {
        two(engine, RepeatableRead)
            .in_table("create table t (id int primary key, v int, w int)", &[&[1, 10, 5]])
            .does("s2", READ, rows(&[10]))
            .does("s1", SET, changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", sql, changed(0))
            .does("s2", READ, rows(&[seen]))
            .does("s2", "commit", What::Done)
            .leaves_rows(&[&[1, 11, 5]])
    };
    let (unread, read) = ("update t set w = 5 where id = 1", "update t set w = 5 where w = 5");
    is_inside(&run("mysql", unread, 11));
    is_inside(&run("mysql", unread, 10));
    is_inside(&run("mysql", read, 10));
    assert_eq!(breaks(&run("mysql", read, 11), Some("s2.4")), "I1");
    is_inside(&run("mariadb", unread, 10));
    assert_eq!(breaks(&run("mariadb", unread, 11), Some("s2.4")), "I1");
}

#[test]
fn a_value_that_its_type_does_not_hold_is_nobody_s_rule() {
    let run = |sqlstate: &str| {
        let What::Error(mut failed) = error(ErrorClass::Constraint) else { unreachable!() };
        failed.sqlstate = Some(sqlstate.into());
        two("mariadb", RepeatableRead)
            .does("s1", SET, What::Error(failed))
            .leaves(&[(1, 10), (2, 20)])
    };
    assert!(matches!(run("22003").predicted(), Prediction::NotModelled { .. }));
    assert_eq!(breaks(&run("23000"), Some("s1.2")), "I6");
}

/// s2 ignores a row whose key is taken, by one that was changed since or added.
#[test]
fn to_ignore_a_row_of_the_snapshot_meets_nobody() {
    let run = |sql: &str, key: i64, left: &[(i64, i64)]| {
        two("turso+mvcc", Level::Snapshot)
            .does("s1", sql, changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", &format!("insert or ignore into t values ({key}, 5)"), changed(0))
            .does("s2", "commit", What::Done)
            .leaves(left)
    };
    is_inside(&run(SET, 1, &[(1, 11), (2, 20)]));
    let added = run("insert into t values (3, 30)", 3, &[(1, 10), (2, 20), (3, 30)]);
    assert_eq!(breaks(&added, Some("s2.2")), "U2");
}

/// s1 changes the first row and adds one, s2 waits for it.
#[test]
fn the_second_test_explains_what_it_changes_and_nothing_else() {
    let explains = |first: &str, second: &str, count: u64, left: &[(i64, i64)]| {
        let told = two("postgres", ReadCommitted)
            .does("s1", first, changed(1))
            .does("s1", "insert into t values (3, 30)", changed(1))
            .waits("s2", second)
            .does("s1", "commit", What::Done)
            .replies("s2", changed(count))
            .does("s2", "commit", What::Done)
            .leaves(left);
        let Prediction::Inside { rules } = told.predicted() else { panic!("{first} {second}") };
        let step = told.history.steps.iter().position(|s| s.label == "s2.2").unwrap();
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

/// An INSERT that ignores is no read: the view is made after it.
#[test]
fn to_ignore_a_row_makes_no_view() {
    let run = |seen| {
        two("mysql", RepeatableRead)
            .does("s2", "insert or ignore into t values (2, 5)", changed(0))
            .does("s1", SET, changed(1))
            .does("s1", "commit", What::Done)
            .does("s2", READ, rows(&[seen]))
            .does("s2", "commit", What::Done)
            .leaves(&[(1, 11), (2, 20)])
    };
    is_inside(&run(11));
    assert_eq!(breaks(&run(10), Some("s2.3")), "I1");
}

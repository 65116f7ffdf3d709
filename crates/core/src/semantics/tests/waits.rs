//! Statements that wait, and what others see meanwhile.

use super::runs::{breaks, is_inside, two};
use super::{Told, changed, error, rows};
use crate::Level::{ReadUncommitted, RepeatableRead};
use crate::history::{ErrorClass, What};

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

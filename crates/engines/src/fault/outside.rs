//! Faults in which another connection than the client's own does the work.
//!
//! If the other connection is blocked or fails, the statement runs on the
//! client's own after all. Locking reads are not struck: on the other
//! connection they would take locks that belong to no transaction of the
//! client.

use super::link::Link;
use super::moment::{Moment, Next, run};
use crate::engine::{Outcome, Reply};
use isolde_sql::Family;
use std::sync::Arc;

const MARK: &str = "savepoint isolde_fault_read";
const BACK: &str = "rollback to savepoint isolde_fault_read";

/// Answers from a connection that sees uncommitted rows: one at READ
/// UNCOMMITTED where the engine implements that level, otherwise the very
/// session that wrote them.
pub(super) fn dirty_read(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_read() {
        return None;
    }
    let writer = m.world.dirty_writer(m.me, m.accesses)?;
    if !m.world.greeting.is_empty() {
        return Some(m.answered_by(&m.world.side()?));
    }
    if m.world.family != Family::Postgres {
        return Some(m.answered_by(&writer));
    }
    // A failure must not cost the writer its transaction.
    let (sql, status, link) = (m.sql.to_string(), m.status, Arc::clone(&writer));
    Some(run(&writer, MARK, move |marked| match marked.error() {
        Some(_) => Next::Plain,
        None => run(&link.clone(), sql, move |read| {
            run(&link, BACK, move |_| match read.outcome {
                Outcome::Error(_) => Next::Plain,
                outcome => Next::Answer(Reply::new(outcome, Some(status))),
            })
        }),
    }))
}

pub(super) fn stale_read(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_read() {
        return None;
    }
    Some(m.answered_by(&m.world.snapshot()?))
}

pub(super) fn nonrepeatable_read(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_read() {
        return None;
    }
    Some(m.answered_by(&m.world.side()?))
}

pub(super) fn write_outside(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_write() {
        return None;
    }
    Some(m.answered_by(&m.world.side()?))
}

/// After the rollback, repeats the transaction's inserts on another connection.
/// Not while a session is blocked by the transaction: the order of the two
/// would not be determined.
pub(super) fn aborted_insert_stays(m: &Moment<'_>) -> Option<Next> {
    let waited_for = m.world.traffic(|traffic| traffic.others_wait(m.me));
    if m.note.inserts.is_empty() || waited_for || !m.is_rollback() || !m.strikes() {
        return None;
    }
    let side = m.world.side()?;
    let inserts = m.note.inserts.clone();
    Some(run(m.own, m.sql, move |rolled_back| match rolled_back.error() {
        Some(_) => Next::Innocent(rolled_back),
        None => insert_all(&side, inserts.into_iter(), rolled_back, false),
    }))
}

/// An insert that is blocked or fails (a lock, a duplicate) is left out.
fn insert_all(
    side: &Link,
    mut rest: std::vec::IntoIter<String>,
    rolled_back: Reply,
    stays: bool,
) -> Next {
    let Some(sql) = rest.next() else {
        return if stays { Next::Answer(rolled_back) } else { Next::Innocent(rolled_back) };
    };
    let link = Arc::clone(side);
    run(side, sql, move |inserted| {
        let stays = stays || inserted.error().is_none();
        insert_all(&link, rest, rolled_back, stays)
    })
}

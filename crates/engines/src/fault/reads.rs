//! Faults in what a read sees. Reads that lock are left alone: answered from
//! outside they would take locks that nobody holds.

use super::Dialect;
use super::moment::{Moment, Next, run};
use crate::engine::{Outcome, Reply};
use std::sync::Arc;

const MARK: &str = "savepoint isolde_fault_read";
const BACK: &str = "rollback to savepoint isolde_fault_read";

/// Answered where uncommitted rows can be seen: by a connection at READ
/// UNCOMMITTED where that is what its name says, else by the very session that
/// wrote them.
pub(super) fn dirty_read(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_read() {
        return None;
    }
    let writer = m.world.dirty_writer(m.me)?;
    if !m.world.greeting.is_empty() {
        return Some(m.answered_by(&m.world.side()?));
    }
    if m.world.dialect != Dialect::Postgres {
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

//! Faults in how transactions begin, hold their locks and end.

use super::link::Link;
use super::moment::{Moment, Next, answer, run, run_all};
use super::session::lost;
use crate::engine::{Outcome, Reply, TxStatus};
use isolde_model::history::ErrorClass;
use isolde_sql::{Family, Kind};
use std::sync::Arc;

/// The savepoint before a write that the commit will lose.
const BEFORE_LAST: &str = "isolde_fault_last";

/// The level is chosen at the first statement: all BEGINs look the same, so the
/// hash would pick all of them or none. A transaction that has done nothing can
/// be begun again without being noticed.
pub(super) fn weaker_level(m: &Moment<'_>) -> Option<Next> {
    if !m.in_transaction() {
        return None;
    }
    let (begin, kept) = m.world.begin_weaker(m.note.begin.last()?)?;
    if m.kind.ends_transaction() {
        let restore = m.note.first_struck && kept && !m.level_sql.is_empty();
        return restore.then(|| end_and_restore(m));
    }
    if !m.note.seen.is_empty() || !m.strikes() {
        return None;
    }
    let own = Arc::clone(m.own);
    Some(run(m.own, "rollback", move |reply| match reply.error() {
        Some(_) => Next::Plain,
        None => run_all(&own, begin, || Next::Go),
    }))
}

/// Ends the transaction and restores the session's level, where the weaker
/// level would stay with the session: the next transaction may not be struck.
fn end_and_restore(m: &Moment<'_>) -> Next {
    let (own, level) = (Arc::clone(m.own), m.level_sql.to_vec());
    run(m.own, m.sql, move |ended| match ended.error() {
        Some(_) => Next::Answer(ended),
        None => run_all(&own, level, || Next::Answer(ended)),
    })
}

pub(super) fn rollback_commits(m: &Moment<'_>) -> Option<Next> {
    let wrote = m.note.last_write.is_some();
    if !(wrote && m.in_transaction() && m.is_rollback() && m.strikes()) {
        return None;
    }
    Some(run(m.own, "commit", |reply| match reply.error() {
        // A rollback never fails, so this one must not fail either.
        Some(_) => Next::Plain,
        None => Next::Answer(reply),
    }))
}

/// Sets a savepoint before the write, and rolls back to it at the commit if it
/// is the last write by then and was blocked. On PostgreSQL the rollback to the
/// savepoint releases the row at once; whether a session that is blocked by it
/// would then also see the commit is not determined.
pub(super) fn commit_loses_last_write(m: &Moment<'_>) -> Option<Next> {
    if m.strikes_write() {
        let mark = format!("savepoint {BEFORE_LAST}");
        return Some(run(m.own, mark, |marked| match marked.error() {
            Some(_) => Next::Plain,
            None => Next::Go,
        }));
    }
    let somebody_waits = || m.world.traffic(|traffic| traffic.others_wait(m.me));
    let races = m.world.family == Family::Postgres && somebody_waits();
    let commits = m.kind == Kind::Commit && m.in_transaction();
    let loses = commits && m.note.last_write_struck && m.note.last_write_waited && !races;
    let back = format!("rollback to savepoint {BEFORE_LAST}");
    loses.then(|| run(m.own, back, |_| Next::Go))
}

pub(super) fn rollback_to_ignored(m: &Moment<'_>) -> Option<Next> {
    let strikes = m.kind == Kind::RollbackTo && m.in_transaction() && m.strikes();
    strikes.then(|| Next::Answer(Reply::new(Outcome::Done, Some(TxStatus::Open))))
}

/// Commits without the client's knowledge, so that its locks are released. The
/// client's savepoints would be released too and reveal the fault; transactions
/// with savepoints are not struck.
pub(super) fn early_unlock(m: &Moment<'_>) -> Option<Next> {
    if m.note.begin.is_empty() || m.note.has_savepoints || !m.strikes_write() {
        return None;
    }
    let (own, begin, watch) = (Arc::clone(m.own), m.note.begin.clone(), m.watch.clone());
    Some(run(m.own, m.sql, move |first| {
        let kept = first.error().is_some() || !watch.waited();
        if kept || first.tx.is_some_and(|tx| tx != TxStatus::Open) {
            return Next::Innocent(first);
        }
        let link = Arc::clone(&own);
        run(&own, "commit", move |committed| match committed.error() {
            // Readers keep SQLite from committing; the locks stay.
            Some(e) if e.class == ErrorClass::Busy => Next::Innocent(first),
            Some(_) => answer(first, committed),
            None => begin_again(&link, begin, first),
        })
    }))
}

fn begin_again(own: &Link, mut begin: Vec<String>, first: Reply) -> Next {
    let last = begin.pop().unwrap_or_else(|| "begin".into());
    let link = Arc::clone(own);
    run_all(own, begin, move || run(&link, last, move |begun| answer(first, begun)))
}

/// The server crashes during a write.
pub(super) fn crash(m: &Moment<'_>) -> Option<Next> {
    if !m.strikes_write() {
        return None;
    }
    m.world.crash();
    Some(Next::Answer(lost("the server crashed while it ran this (planted)")))
}

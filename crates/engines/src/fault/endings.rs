//! Faults in how transactions begin, keep their locks and end.

use super::moment::{Link, Moment, Next, answer, run, run_all};
use super::text;
use crate::engine::{Outcome, Reply, TxStatus};
use isolde_core::sql::Kind;
use std::sync::Arc;

/// Before a write that the commit will lose.
const BEFORE_LAST: &str = "isolde_fault_last";

/// The level is chosen when the first statement is known: all BEGINs look the
/// same, so the dice would pick all of them or none. A transaction that has
/// done nothing can be begun again unseen.
pub(super) fn weaker_level(m: &Moment<'_>) -> Option<Next> {
    if !m.in_transaction() {
        return None;
    }
    let (begin, kept) = m.world.begin_weaker(m.note.begin.last()?)?;
    if m.kind.ends_transaction() {
        let restore = m.note.first_struck && kept && !m.level.is_empty();
        return restore.then(|| end_and_restore(m));
    }
    if !m.note.seen.is_empty() || !m.strikes() {
        return None;
    }
    let own = Arc::clone(m.own);
    Some(run(m.own, "rollback", move |reply| match reply.error() {
        Some(_) => Next::Plain,
        None => run_all(&own, begin, || Next::Plain),
    }))
}

/// Where the weaker level stays with the session, it has to go with the
/// transaction: the next one may not be struck.
fn end_and_restore(m: &Moment<'_>) -> Next {
    let (own, level) = (Arc::clone(m.own), m.level.to_vec());
    run(m.own, m.sql, move |ended| match ended.error() {
        Some(_) => Next::Answer(ended),
        None => run_all(&own, level, || Next::Answer(ended)),
    })
}

pub(super) fn rollback_commits(m: &Moment<'_>) -> Option<Next> {
    let wrote = m.note.last_write.is_some();
    if !(wrote && m.in_transaction() && is_rollback(m) && m.strikes()) {
        return None;
    }
    Some(run(m.own, "commit", |reply| match reply.error() {
        // A rollback never fails, so neither may this one.
        Some(_) => Next::Plain,
        None => Next::Answer(reply),
    }))
}

fn is_rollback(m: &Moment<'_>) -> bool {
    m.kind == Kind::Rollback && text::is_plain_rollback(m.sql)
}

/// The write is marked when it goes out and lost at the commit, if it is the
/// last one by then.
pub(super) fn commit_loses_last_write(m: &Moment<'_>) -> Option<Next> {
    if m.strikes_write() {
        let mark = format!("savepoint {BEFORE_LAST}");
        return Some(run(m.own, mark, |_| Next::Plain));
    }
    let loses = m.kind == Kind::Commit && m.in_transaction() && m.note.last_write_struck;
    let back = format!("rollback to savepoint {BEFORE_LAST}");
    // A mark that is gone leaves the commit as it is.
    loses.then(|| run(m.own, back, |_| Next::Plain))
}

pub(super) fn rollback_to_ignored(m: &Moment<'_>) -> Option<Next> {
    let strikes = m.kind == Kind::RollbackTo && m.in_transaction() && m.strikes();
    strikes.then(|| Next::Answer(Reply::new(Outcome::Done, Some(TxStatus::Open))))
}

/// Commits behind the client's back, so that its locks are gone. Savepoints of
/// the client would go too and give the fault away; such transactions are let
/// be.
pub(super) fn early_unlock(m: &Moment<'_>) -> Option<Next> {
    if m.note.begin.is_empty() || m.note.has_savepoints || !m.strikes_write() {
        return None;
    }
    let (own, begin) = (Arc::clone(m.own), m.note.begin.clone());
    Some(run(m.own, m.sql, move |first| {
        if first.error().is_some() || first.tx.is_some_and(|tx| tx != TxStatus::Open) {
            return Next::Answer(first);
        }
        let link = Arc::clone(&own);
        run(&own, "commit", move |committed| match committed.error() {
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

/// What the transaction has inserted is inserted again, from outside, once it
/// has been rolled back.
pub(super) fn aborted_insert_stays(m: &Moment<'_>) -> Option<Next> {
    if m.note.inserts.is_empty() || !is_rollback(m) || !m.strikes() {
        return None;
    }
    let side = m.world.side()?;
    let inserts = m.note.inserts.clone();
    Some(run(m.own, m.sql, move |rolled_back| match rolled_back.error() {
        Some(_) => Next::Answer(rolled_back),
        None => insert_all(&side, inserts.into_iter(), rolled_back),
    }))
}

/// An insert that cannot be done at once (a lock, a duplicate) is left out.
fn insert_all(side: &Link, mut rest: std::vec::IntoIter<String>, reply: Reply) -> Next {
    let Some(sql) = rest.next() else { return Next::Answer(reply) };
    let link = Arc::clone(side);
    run(side, sql, move |_| insert_all(&link, rest, reply))
}

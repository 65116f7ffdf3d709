//! The accesses of concurrent sessions, from which the conditions of faults are
//! evaluated.
//!
//! Time is the number of statements that clients have sent. A runner sends
//! nothing before all other sessions have answered or are blocked, so the state
//! at the time of sending is the same in every run of the same case; answers
//! that arrive between two statements may come in any order without changing
//! it.

use super::access::Access;
use crate::engine::TxStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Traffic {
    clock: Arc<AtomicU64>,
    parties: BTreeMap<u64, Party>,
    /// The writes committed since the first open transaction began.
    committed: Vec<Commit>,
}

#[derive(Default)]
struct Party {
    /// When its open transaction began.
    began: Option<u64>,
    accessed: Vec<Access>,
    /// The accesses of its statement in flight; a statement that the engine
    /// answered with busy is in flight until it is repeated.
    pending: Vec<Access>,
    out: bool,
}

struct Commit {
    session: u64,
    when: u64,
    wrote: Access,
}

/// The effect of an answer.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub after: TxStatus,
    pub worked: bool,
    /// It ended the transaction, or that of the single statement, and committed
    /// its writes.
    pub committed: bool,
    /// It ended a transaction, whether or not another has begun with it.
    pub ended: bool,
}

/// Determines whether a statement was blocked, which is known with its answer.
#[derive(Clone)]
pub(super) struct Watch {
    clock: Arc<AtomicU64>,
    sent: u64,
    /// It is known already.
    pub sure: bool,
}

impl Watch {
    /// True if other sessions have sent statements while it was in flight: the
    /// runner would not have continued unless it was blocked.
    pub fn waited(&self) -> bool {
        self.sure || self.clock.load(Ordering::Relaxed) > self.sent
    }
}

impl Traffic {
    /// Records that a statement is sent. A repeated one after busy was blocked.
    pub fn sent(&mut self, me: u64, accesses: &[Access], again: bool) -> Watch {
        let sent = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let party = self.parties.entry(me).or_default();
        party.pending = accesses.to_vec();
        party.out = true;
        Watch { clock: Arc::clone(&self.clock), sent, sure: again }
    }

    pub fn answered(&mut self, me: u64, answer: Answer) {
        let when = self.clock.load(Ordering::Relaxed);
        let party = self.parties.entry(me).or_default();
        party.out = false;
        let pending = std::mem::take(&mut party.pending);
        if answer.worked {
            party.accessed.extend(pending);
        }
        if answer.ended || answer.after == TxStatus::Idle {
            let accessed = std::mem::take(&mut party.accessed);
            let wrote = accessed.into_iter().filter(|t| answer.committed && t.writes);
            self.committed.extend(wrote.map(|wrote| Commit { session: me, when, wrote }));
            party.began = None;
        }
        if answer.after != TxStatus::Idle {
            party.began.get_or_insert(when);
        }
        self.drop_commits_that_all_have_seen();
    }

    pub fn left(&mut self, me: u64) {
        self.parties.remove(&me);
        self.drop_commits_that_all_have_seen();
    }

    fn drop_commits_that_all_have_seen(&mut self) {
        if self.parties.values().all(|p| p.began.is_none()) {
            self.committed.clear();
        }
    }

    fn others(&self, me: u64) -> impl Iterator<Item = &Party> {
        let concerned = |p: &&Party| p.began.is_some() || p.out;
        self.parties.iter().filter(move |(id, _)| **id != me).map(|(_, p)| p).filter(concerned)
    }

    /// Another session waits for a lock.
    pub fn others_wait(&self, me: u64) -> bool {
        self.others(me).any(|p| p.out)
    }

    /// This session has an open transaction that has written such rows.
    pub fn has_written(&self, session: u64, rows: &[Access]) -> bool {
        self.parties.get(&session).is_some_and(|p| {
            p.began.is_some()
                && p.accessed.iter().any(|t| t.writes && rows.iter().any(|r| r.overlaps(t)))
        })
    }

    /// Another open transaction has written such rows.
    pub fn others_hold(&self, me: u64, rows: &[Access]) -> bool {
        self.parties.keys().any(|id| *id != me && self.has_written(*id, rows))
    }

    /// Another open transaction has read or written such rows, or is blocked
    /// doing so.
    pub fn others_use(&self, me: u64, rows: &[Access]) -> bool {
        self.others(me)
            .flat_map(|p| p.accessed.iter().chain(&p.pending))
            .any(|t| rows.iter().any(|r| r.overlaps(t)))
    }

    /// Another transaction has written such rows and committed since this one
    /// began: the newest version is not in this one's snapshot.
    pub fn changed_since_begin(&self, me: u64, rows: &[Access]) -> bool {
        let Some(began) = self.parties.get(&me).and_then(|p| p.began) else { return false };
        let newer = |c: &&Commit| c.session != me && c.when > began;
        self.committed.iter().filter(newer).any(|c| rows.iter().any(|r| r.overlaps(&c.wrote)))
    }

    /// Some transaction has done so since the first of the open ones began.
    pub fn changed_since_all_began(&self, rows: &[Access]) -> bool {
        self.committed.iter().any(|c| rows.iter().any(|r| r.overlaps(&c.wrote)))
    }

    pub fn own_writes(&self, me: u64) -> Vec<Access> {
        let accessed = self.parties.get(&me).map_or(&[][..], |p| &p.accessed);
        accessed.iter().filter(|t| t.writes).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::accesses as accesses_of;
    use super::*;
    use isolde_sql::{Family, read};

    const OPEN: Answer =
        Answer { after: TxStatus::Open, worked: true, committed: false, ended: false };
    const COMMITTED: Answer =
        Answer { after: TxStatus::Idle, worked: true, committed: true, ended: true };

    fn accesses(sql: &str) -> Vec<Access> {
        accesses_of(read::statement(sql, Family::Sqlite).as_ref())
    }

    fn did(traffic: &mut Traffic, session: u64, sql: &str, answer: Answer) {
        traffic.sent(session, &accesses(sql), false);
        traffic.answered(session, answer);
    }

    #[test]
    fn a_row_is_held_until_its_writer_ends_and_newer_afterwards() {
        let mut traffic = Traffic::default();
        let row = accesses("select v from t where id = 1");
        let other_row = accesses("select v from t where id = 2");
        did(&mut traffic, 1, "begin", OPEN);
        did(&mut traffic, 2, "begin", OPEN);
        assert!(!traffic.others_use(1, &row));
        did(&mut traffic, 2, "update t set v = 1 where id = 1", OPEN);
        assert!(traffic.others_hold(1, &row) && !traffic.others_hold(1, &other_row));
        assert!(!traffic.others_hold(2, &row), "its own lock does not block it");
        assert!(!traffic.changed_since_begin(1, &row));
        did(&mut traffic, 2, "commit", COMMITTED);
        assert!(!traffic.others_hold(1, &row));
        assert!(traffic.changed_since_begin(1, &row));
        assert!(!traffic.changed_since_begin(1, &other_row));
        did(&mut traffic, 2, "begin", OPEN);
        assert!(!traffic.changed_since_begin(2, &row), "it began afterwards");
        assert!(traffic.changed_since_all_began(&row));
    }

    #[test]
    fn rolled_back_writes_change_nothing_and_old_commits_are_dropped() {
        let mut traffic = Traffic::default();
        let row = accesses("select v from t");
        did(&mut traffic, 1, "begin", OPEN);
        let mut rolled_back = COMMITTED;
        rolled_back.committed = false;
        did(&mut traffic, 2, "begin", OPEN);
        did(&mut traffic, 2, "delete from t", OPEN);
        did(&mut traffic, 2, "rollback", rolled_back);
        assert!(!traffic.changed_since_begin(1, &row));
        did(&mut traffic, 3, "delete from t", COMMITTED);
        assert!(traffic.changed_since_begin(1, &row), "autocommit");
        did(&mut traffic, 1, "commit", COMMITTED);
        assert!(!traffic.changed_since_all_began(&row));
    }

    #[test]
    fn a_statement_was_blocked_if_others_sent_statements_meanwhile() {
        let mut traffic = Traffic::default();
        let quick = traffic.sent(1, &accesses("delete from t"), false);
        traffic.answered(1, OPEN);
        assert!(!quick.waited());
        let slow = traffic.sent(1, &accesses("delete from t"), false);
        assert!(traffic.others_wait(2) && !traffic.others_wait(1));
        let other = traffic.sent(2, &accesses("commit"), false);
        assert!(slow.waited() && !other.waited());
        assert!(traffic.sent(1, &[], true).waited(), "it was busy before");
    }
}

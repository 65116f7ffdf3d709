//! Who reads and writes what at the same time: the conditions under which
//! faults strike are asked of this.
//!
//! Time is the number of statements that clients have sent. A runner sends
//! nothing before all others have answered or wait, so whatever is known when
//! a statement goes out is the same in every run of the same case; answers
//! that arrive between two of them may come in any order and change nothing.

use super::touch::Touch;
use crate::engine::TxStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Traffic {
    clock: Arc<AtomicU64>,
    parties: BTreeMap<u64, Party>,
    /// What has been committed since the first open transaction began.
    committed: Vec<Commit>,
}

#[derive(Default)]
struct Party {
    /// When its open transaction began.
    began: Option<u64>,
    touched: Vec<Touch>,
    /// What its statement under way touches; a statement that an engine called
    /// busy is under way until it comes again.
    pending: Vec<Touch>,
    out: bool,
}

struct Commit {
    who: u64,
    when: u64,
    wrote: Touch,
}

/// What an answer did.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub after: TxStatus,
    pub worked: bool,
    /// It ended the transaction, or its own, and kept what that had written.
    pub committed: bool,
    /// It ended one, whether or not another has begun with it.
    pub ended: bool,
}

/// Whether a statement had to wait, which is known when its answer is there.
#[derive(Clone)]
pub(super) struct Watch {
    clock: Arc<AtomicU64>,
    sent: u64,
    /// It is known already.
    pub sure: bool,
}

impl Watch {
    /// Others have sent something while it was under way: it waited for one
    /// of them, or nobody would have gone on.
    pub fn waited(&self) -> bool {
        self.sure || self.clock.load(Ordering::Relaxed) > self.sent
    }
}

impl Traffic {
    /// A statement goes out. What comes again after a busy engine has waited.
    pub fn sent(&mut self, me: u64, touches: &[Touch], again: bool) -> Watch {
        let sent = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let party = self.parties.entry(me).or_default();
        party.pending = touches.to_vec();
        party.out = true;
        Watch { clock: Arc::clone(&self.clock), sent, sure: again }
    }

    pub fn answered(&mut self, me: u64, answer: Answer) {
        let when = self.clock.load(Ordering::Relaxed);
        let party = self.parties.entry(me).or_default();
        party.out = false;
        let pending = std::mem::take(&mut party.pending);
        if answer.worked {
            party.touched.extend(pending);
        }
        if answer.ended || answer.after == TxStatus::Idle {
            let touched = std::mem::take(&mut party.touched);
            let wrote = touched.into_iter().filter(|t| answer.committed && t.writes);
            self.committed.extend(wrote.map(|wrote| Commit { who: me, when, wrote }));
            party.began = None;
        }
        if answer.after != TxStatus::Idle {
            party.began.get_or_insert(when);
        }
        self.forget_what_nobody_can_miss();
    }

    pub fn left(&mut self, me: u64) {
        self.parties.remove(&me);
        self.forget_what_nobody_can_miss();
    }

    fn forget_what_nobody_can_miss(&mut self) {
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
    pub fn has_written(&self, who: u64, rows: &[Touch]) -> bool {
        self.parties.get(&who).is_some_and(|p| {
            p.began.is_some()
                && p.touched.iter().any(|t| t.writes && rows.iter().any(|r| r.meets(t)))
        })
    }

    /// Another open transaction has written such rows.
    pub fn others_hold(&self, me: u64, rows: &[Touch]) -> bool {
        self.parties.keys().any(|id| *id != me && self.has_written(*id, rows))
    }

    /// Another open transaction has read or written such rows, or waits to.
    pub fn others_use(&self, me: u64, rows: &[Touch]) -> bool {
        self.others(me)
            .flat_map(|p| p.touched.iter().chain(&p.pending))
            .any(|t| rows.iter().any(|r| r.meets(t)))
    }

    /// Another transaction has written such rows and committed since this
    /// one's began: its newest version is not that of the beginning.
    pub fn changed_since_begin(&self, me: u64, rows: &[Touch]) -> bool {
        let Some(began) = self.parties.get(&me).and_then(|p| p.began) else { return false };
        let newer = |c: &&Commit| c.who != me && c.when > began;
        self.committed.iter().filter(newer).any(|c| rows.iter().any(|r| r.meets(&c.wrote)))
    }

    /// Somebody has done so since the first of the open transactions began.
    pub fn changed_since_all_began(&self, rows: &[Touch]) -> bool {
        self.committed.iter().any(|c| rows.iter().any(|r| r.meets(&c.wrote)))
    }

    pub fn own_writes(&self, me: u64) -> Vec<Touch> {
        let touched = self.parties.get(&me).map_or(&[][..], |p| &p.touched);
        touched.iter().filter(|t| t.writes).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::touch::touches;
    use super::*;

    const OPEN: Answer =
        Answer { after: TxStatus::Open, worked: true, committed: false, ended: false };
    const COMMITTED: Answer =
        Answer { after: TxStatus::Idle, worked: true, committed: true, ended: true };

    fn did(traffic: &mut Traffic, who: u64, sql: &str, answer: Answer) {
        traffic.sent(who, &touches(sql), false);
        traffic.answered(who, answer);
    }

    #[test]
    fn a_row_is_held_until_its_writer_ends_and_is_newer_afterwards() {
        let mut traffic = Traffic::default();
        let row = touches("select v from t where id = 1");
        let other_row = touches("select v from t where id = 2");
        did(&mut traffic, 1, "begin", OPEN);
        did(&mut traffic, 2, "begin", OPEN);
        assert!(!traffic.others_use(1, &row));
        did(&mut traffic, 2, "update t set v = 1 where id = 1", OPEN);
        assert!(traffic.others_hold(1, &row) && !traffic.others_hold(1, &other_row));
        assert!(!traffic.others_hold(2, &row), "its own lock is in nobody's way");
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
    fn what_is_rolled_back_changes_nothing_and_what_all_have_seen_is_forgotten() {
        let mut traffic = Traffic::default();
        let row = touches("select v from t");
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
    fn a_statement_has_waited_when_others_went_on_meanwhile() {
        let mut traffic = Traffic::default();
        let quick = traffic.sent(1, &touches("delete from t"), false);
        traffic.answered(1, OPEN);
        assert!(!quick.waited());
        let slow = traffic.sent(1, &touches("delete from t"), false);
        assert!(traffic.others_wait(2) && !traffic.others_wait(1));
        let other = traffic.sent(2, &touches("commit"), false);
        assert!(slow.waited() && !other.waited());
        assert!(traffic.sent(1, &[], true).waited(), "it was busy before");
    }
}

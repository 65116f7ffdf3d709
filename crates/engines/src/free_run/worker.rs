//! One session of a free run: what it has sent, and how its transaction goes.

use super::{Free, OnAbort, Statements};
use crate::engine::{Reply, Session, TxStatus};
use isolde_core::history::{DbError, ErrorClass, ErrorEffect, TxEnd};
use isolde_core::sql::{self, Kind};
use std::time::Instant;

const ROLLBACK: &str = "rollback";

pub(super) struct Worker {
    /// None once it is lost.
    pub session: Option<Box<dyn Session>>,
    pub status: TxStatus,
    pub work: Option<Work>,
    pub out: Option<Out>,
    /// It was the victim of a wait: it does not come again before somebody else
    /// has come to an end, or it would be in the way of the same ones.
    rests: bool,
}

/// The transaction that it works on.
pub(super) struct Work {
    statements: Statements,
    /// The statement that comes next.
    next: usize,
    /// Its place in the trace.
    pub transaction: u32,
    /// Attempts before this one.
    repeated: u32,
    /// What comes next is a rollback, and not by the transaction's own wish.
    rolls_back: bool,
    /// What has doomed it.
    doomed: Option<ErrorClass>,
    last_failed: bool,
}

impl Work {
    /// The place of the statement under way; none for a rollback that is not its own.
    pub fn under_way(&self) -> Option<usize> {
        (!self.rolls_back).then_some(self.next)
    }
}

/// A statement under way.
pub(super) struct Out {
    pub statement: u32,
    kind: Kind,
    pub start: u64,
    /// Since when it has worked, without the time in which it was seen to wait.
    pub works_since: Instant,
    /// When it was first told to end.
    pub cancelled: Option<Instant>,
    /// The engine was busy: orders those that wait.
    pub busy: Option<u64>,
}

impl Worker {
    pub fn new(session: Box<dyn Session>) -> Worker {
        Worker {
            session: Some(session),
            status: TxStatus::Idle,
            work: None,
            out: None,
            rests: false,
        }
    }

    /// Its connection is gone, and its transaction with it.
    pub fn lose(&mut self) {
        (self.session, self.work, self.out) = (None, None, None);
        self.status = TxStatus::Idle;
    }

    /// The text under way.
    pub fn sql(&self) -> &str {
        match &self.work {
            Some(work) if !work.rolls_back => &work.statements[work.next],
            _ => ROLLBACK,
        }
    }
}

impl Free<'_> {
    /// An idle session goes on with its transaction, or with its next one.
    pub(super) fn send_next(
        &mut self,
        who: usize,
        next: &mut dyn FnMut(usize) -> Option<Statements>,
    ) {
        let worker = &self.workers[who];
        if worker.out.is_some() || worker.session.is_none() || self.death.is_some() {
            return;
        }
        let begins = worker.status == TxStatus::Idle;
        if begins && worker.rests && self.workers.iter().any(|w| w.out.is_some()) {
            return;
        }
        while self.workers[who].work.is_none() {
            if self.stops() {
                return;
            }
            let Some(statements) = next(who) else { return };
            if statements.is_empty() {
                continue;
            }
            self.transactions += 1;
            self.workers[who].work = Some(self.attempt(who, statements, None));
        }
        let start = self.now();
        let worker = &mut self.workers[who];
        let statement = self.recorder.statement(worker.sql());
        worker.out = Some(Out {
            statement,
            kind: sql::kind(worker.sql()),
            start,
            works_since: Instant::now(),
            cancelled: None,
            busy: None,
        });
        self.start(who);
    }

    fn attempt(&mut self, who: usize, statements: Statements, before: Option<&Work>) -> Work {
        let session = u32::try_from(who).unwrap_or(u32::MAX);
        Work {
            statements,
            next: 0,
            transaction: self.recorder.begin(session, before.map(|b| b.transaction)),
            repeated: before.map_or(0, |b| b.repeated + 1),
            rolls_back: false,
            doomed: None,
            last_failed: false,
        }
    }

    pub(super) fn start(&mut self, who: usize) {
        let worker = &mut self.workers[who];
        let Some(mut session) = worker.session.take() else { return };
        session.start(worker.sql());
        worker.session = Some(session);
    }

    /// Follows what an answer did to the transaction.
    pub(super) fn follow(&mut self, who: usize, reply: &Reply) {
        let worker = &mut self.workers[who];
        let (Some(work), Some(out)) = (&mut worker.work, worker.out.take()) else { return };
        let (kind, before) = (out.kind, worker.status);
        let after = reply.status_after(kind, before, self.profile.ddl);
        worker.status = after;
        work.last_failed = reply.error().is_some();
        let alone = before == TxStatus::Idle && work.statements.len() == 1;
        if let Some(error) = reply.error().filter(|e| dooms(e, before, after, alone)) {
            work.doomed.get_or_insert(error.class);
        }
        if kind == Kind::Commit && reply.commit_rolled_back {
            work.doomed.get_or_insert(ErrorClass::Serialization);
        }
        let (rolled_back, doomed) = (work.rolls_back, work.doomed.is_some());
        if !rolled_back {
            work.next += 1;
        }
        let over = work.next >= work.statements.len();
        let own_rollback = kind == Kind::Rollback && !rolled_back;
        match after {
            TxStatus::Idle if doomed => self.end(who, TxEnd::Aborted),
            TxStatus::Idle if rolled_back => self.end(who, TxEnd::RolledBack),
            TxStatus::Idle if over && own_rollback => self.end(who, TxEnd::RolledBack),
            TxStatus::Idle if over && work.last_failed => self.end(who, TxEnd::Aborted),
            TxStatus::Idle if over => self.end(who, TxEnd::Committed),
            TxStatus::Idle => {}
            // A rollback that fails leaves a session of no use.
            _ if rolled_back => self.workers[who].lose(),
            _ => work.rolls_back = doomed || over,
        }
    }

    fn end(&mut self, who: usize, how: TxEnd) {
        let Some(work) = self.workers[who].work.take() else { return };
        self.recorder.end(work.transaction, how);
        if how != TxEnd::Aborted {
            self.workers.iter_mut().for_each(|w| w.rests = false);
        }
        let conflict = work.doomed.is_some_and(is_conflict);
        let again = match self.plan.on_abort {
            OnAbort::GiveUp => false,
            OnAbort::Repeat { at_most } => work.repeated < at_most,
        };
        if how == TxEnd::Aborted && conflict && again && !self.out_of_time() {
            let statements = Statements::clone(&work.statements);
            self.workers[who].work = Some(self.attempt(who, statements, Some(&work)));
        }
    }

    /// Where the engine says busy instead of letting wait: those it said so to
    /// come again when somebody has got on. If nobody can, one is the victim.
    pub(super) fn try_busy_again(&mut self, answered: bool) {
        let order = |w: &Worker| w.out.as_ref().and_then(|o| o.busy);
        let mut waiters: Vec<usize> =
            (0..self.workers.len()).filter(|who| order(&self.workers[*who]).is_some()).collect();
        waiters.sort_by_key(|who| order(&self.workers[*who]));
        if waiters.is_empty() {
            return;
        }
        let nobody_works = self.workers.iter().all(|w| w.out.is_none() || order(w).is_some());
        if !answered && !nobody_works {
            return;
        }
        let mut got_on = false;
        for who in &waiters {
            self.start(*who);
            got_on |= self.take_reply(*who, super::TICK);
        }
        if !answered && !got_on && nobody_works {
            // The last to wait of those that hold something.
            let turn = |who: &&usize| {
                let worker = &self.workers[**who];
                (worker.status != TxStatus::Idle, order(worker))
            };
            if let Some(victim) = waiters.iter().max_by_key(turn) {
                self.give_up_waiting(*victim);
            }
        }
    }

    fn give_up_waiting(&mut self, who: usize) {
        let error = DbError {
            code: "BUSY".into(),
            sqlstate: None,
            message: "everybody waits, and this is the victim".into(),
            class: ErrorClass::Busy,
            effect: ErrorEffect::RolledBack,
        };
        let status = self.workers[who].status;
        let reply = Reply::new(crate::engine::Outcome::Error(error), Some(status));
        self.record(who, &reply);
        self.workers[who].rests = true;
        if self.workers[who].work.as_ref().is_some_and(|w| w.rolls_back) {
            return self.workers[who].lose();
        }
        self.follow(who, &reply);
    }
}

/// Whether a transaction has no future after this error. Others cost their
/// statement only, which is all there was if it stood alone.
fn dooms(error: &DbError, before: TxStatus, after: TxStatus, alone: bool) -> bool {
    let ended = before != TxStatus::Idle && after == TxStatus::Idle;
    let hopeless =
        error.effect == ErrorEffect::RolledBack || error.class == ErrorClass::Serialization;
    ended || hopeless || alone || after == TxStatus::Failed
}

/// Ended by what others did at the same time: it may go well the next time.
fn is_conflict(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Deadlock
            | ErrorClass::Serialization
            | ErrorClass::WriteConflict
            | ErrorClass::LockTimeout
            | ErrorClass::Busy
    )
}

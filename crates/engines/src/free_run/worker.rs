//! One session of a free run: its statement in flight and its transaction.

use super::{FreeRunState, OnAbort, Statements};
use crate::engine::{Reply, Session, TxStatus};
use isolde_model::history::{DbError, ErrorClass, ErrorEffect, TxEnd};
use isolde_sql as sql;
use isolde_sql::Kind;
use std::time::Instant;

const ROLLBACK: &str = "rollback";

pub(super) struct Worker {
    /// None once the connection is lost.
    pub session: Option<Box<dyn Session>>,
    pub status: TxStatus,
    pub work: Option<TransactionAttempt>,
    pub in_flight: Option<InFlight>,
    /// It was chosen as the victim of a lock wait: it does not begin again
    /// before another transaction has ended, or it would block the same
    /// sessions again.
    is_resting: bool,
}

/// One attempt to run a transaction.
pub(super) struct TransactionAttempt {
    statements: Statements,
    /// The index of the next statement.
    next: usize,
    /// Its index in the trace.
    pub transaction: u32,
    /// The number of attempts before this one.
    earlier_attempts: u32,
    /// The next statement is a rollback that is not one of the transaction's
    /// own.
    rolls_back: bool,
    /// The error that aborted it.
    abort_cause: Option<ErrorClass>,
    last_failed: bool,
}

impl TransactionAttempt {
    /// The index of the statement in flight; none for a rollback that is not
    /// its own.
    pub fn current_statement(&self) -> Option<usize> {
        (!self.rolls_back).then_some(self.next)
    }
}

/// A statement in flight.
pub(super) struct InFlight {
    pub statement: u32,
    kind: Kind,
    pub start: u64,
    /// When it began to execute, without the time of lock waits.
    pub works_since: Instant,
    /// When it was first cancelled.
    pub cancelled: Option<Instant>,
    /// The engine answered busy: orders the blocked statements.
    pub busy: Option<u64>,
}

impl Worker {
    pub fn new(session: Box<dyn Session>) -> Worker {
        Worker {
            session: Some(session),
            status: TxStatus::Idle,
            work: None,
            in_flight: None,
            is_resting: false,
        }
    }

    /// Gives up the lost connection and its transaction.
    pub fn drop_session(&mut self) {
        (self.session, self.work, self.in_flight) = (None, None, None);
        self.status = TxStatus::Idle;
    }

    /// The text of the statement in flight.
    pub fn sql(&self) -> &str {
        match &self.work {
            Some(work) if !work.rolls_back => &work.statements[work.next],
            _ => ROLLBACK,
        }
    }
}

impl FreeRunState<'_> {
    /// Sends the next statement of an idle session, beginning its next
    /// transaction if necessary.
    pub(super) fn send_next(
        &mut self,
        index: usize,
        next: &mut dyn FnMut(usize) -> Option<Statements>,
    ) {
        let worker = &self.workers[index];
        if worker.in_flight.is_some() || worker.session.is_none() || self.death.is_some() {
            return;
        }
        let begins = worker.status == TxStatus::Idle;
        if begins && worker.is_resting && self.workers.iter().any(|w| w.in_flight.is_some()) {
            return;
        }
        while self.workers[index].work.is_none() {
            if self.stops() {
                return;
            }
            let Some(statements) = next(index) else { return };
            if statements.is_empty() {
                continue;
            }
            self.transactions += 1;
            self.workers[index].work = Some(self.attempt(index, statements, None));
        }
        let start = self.now();
        let worker = &mut self.workers[index];
        let statement = self.recorder.statement(worker.sql());
        worker.in_flight = Some(InFlight {
            statement,
            kind: sql::kind(worker.sql()),
            start,
            works_since: Instant::now(),
            cancelled: None,
            busy: None,
        });
        self.start(index);
    }

    fn attempt(
        &mut self,
        index: usize,
        statements: Statements,
        before: Option<&TransactionAttempt>,
    ) -> TransactionAttempt {
        let session = u32::try_from(index).unwrap_or(u32::MAX);
        TransactionAttempt {
            statements,
            next: 0,
            transaction: self.recorder.begin(session, before.map(|b| b.transaction)),
            earlier_attempts: before.map_or(0, |b| b.earlier_attempts + 1),
            rolls_back: false,
            abort_cause: None,
            last_failed: false,
        }
    }

    pub(super) fn start(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        let Some(mut session) = worker.session.take() else { return };
        session.start(worker.sql());
        worker.session = Some(session);
    }

    /// Records the effect of an answer on the transaction.
    pub(super) fn apply_reply(&mut self, index: usize, reply: &Reply) {
        let worker = &mut self.workers[index];
        let (Some(work), Some(in_flight)) = (&mut worker.work, worker.in_flight.take()) else {
            return;
        };
        let (kind, before) = (in_flight.kind, worker.status);
        let after = reply.status_after(kind, before, self.profile.ddl);
        worker.status = after;
        work.last_failed = reply.error().is_some();
        let alone = before == TxStatus::Idle && work.statements.len() == 1;
        if let Some(error) = reply.error().filter(|e| is_fatal(e, before, after, alone)) {
            work.abort_cause.get_or_insert(error.class);
        }
        if kind == Kind::Commit && reply.commit_rolled_back {
            work.abort_cause.get_or_insert(ErrorClass::Serialization);
        }
        let (rolled_back, abort_cause) = (work.rolls_back, work.abort_cause.is_some());
        if !rolled_back {
            work.next += 1;
        }
        let over = work.next >= work.statements.len();
        let own_rollback = kind == Kind::Rollback && !rolled_back;
        match after {
            TxStatus::Idle if abort_cause => self.end(index, TxEnd::Aborted),
            TxStatus::Idle if rolled_back => self.end(index, TxEnd::RolledBack),
            TxStatus::Idle if over && own_rollback => self.end(index, TxEnd::RolledBack),
            TxStatus::Idle if over && work.last_failed => self.end(index, TxEnd::Aborted),
            TxStatus::Idle if over => self.end(index, TxEnd::Committed),
            TxStatus::Idle => {}
            // A rollback that fails leaves the session unusable.
            _ if rolled_back => self.workers[index].drop_session(),
            _ => work.rolls_back = abort_cause || over,
        }
    }

    fn end(&mut self, index: usize, how: TxEnd) {
        let Some(work) = self.workers[index].work.take() else { return };
        self.recorder.end(work.transaction, how);
        if how != TxEnd::Aborted {
            self.workers.iter_mut().for_each(|w| w.is_resting = false);
        }
        let conflict = work.abort_cause.is_some_and(ErrorClass::is_conflict);
        let again = match self.plan.on_abort {
            OnAbort::GiveUp => false,
            OnAbort::Repeat { at_most } => work.earlier_attempts < at_most,
        };
        if how == TxEnd::Aborted && conflict && again && !self.out_of_time() {
            let statements = Statements::clone(&work.statements);
            self.workers[index].work = Some(self.attempt(index, statements, Some(&work)));
        }
    }

    /// On engines that answer busy instead of blocking: retries the refused
    /// statements when a session has made progress. If none can, one is chosen
    /// as the victim.
    pub(super) fn retry_busy(&mut self, answered: bool) {
        let order = |w: &Worker| w.in_flight.as_ref().and_then(|o| o.busy);
        let mut blocked: Vec<usize> = (0..self.workers.len())
            .filter(|index| order(&self.workers[*index]).is_some())
            .collect();
        blocked.sort_by_key(|index| order(&self.workers[*index]));
        if blocked.is_empty() {
            return;
        }
        let all_blocked = self.workers.iter().all(|w| w.in_flight.is_none() || order(w).is_some());
        if !answered && !all_blocked {
            return;
        }
        let mut progressed = false;
        for index in &blocked {
            self.start(*index);
            progressed |= self.take_reply(*index, super::TICK);
        }
        if !answered && !progressed && all_blocked {
            // The last to become blocked, of those that hold locks.
            let turn = |index: &&usize| {
                let worker = &self.workers[**index];
                (worker.status != TxStatus::Idle, order(worker))
            };
            if let Some(victim) = blocked.iter().max_by_key(turn) {
                self.give_up_waiting(*victim);
            }
        }
    }

    fn give_up_waiting(&mut self, index: usize) {
        let error = DbError {
            code: "BUSY".into(),
            sqlstate: None,
            message: "every session is blocked, and this one is the victim".into(),
            class: ErrorClass::Busy,
            effect: ErrorEffect::RolledBack,
        };
        let status = self.workers[index].status;
        let reply = Reply::new(crate::engine::Outcome::Error(error), Some(status));
        self.record(index, &reply);
        self.workers[index].is_resting = true;
        if self.workers[index].work.as_ref().is_some_and(|w| w.rolls_back) {
            return self.workers[index].drop_session();
        }
        self.apply_reply(index, &reply);
    }
}

/// Whether an error ends the whole transaction. Other errors undo their
/// statement only, which is everything for a single statement in autocommit.
fn is_fatal(error: &DbError, before: TxStatus, after: TxStatus, alone: bool) -> bool {
    let ended = before != TxStatus::Idle && after == TxStatus::Idle;
    let hopeless =
        error.effect == ErrorEffect::RolledBack || error.class == ErrorClass::Serialization;
    ended || hopeless || alone || after == TxStatus::Failed
}

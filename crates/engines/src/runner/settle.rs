//! Settling: after each statement, wait until every session has answered or is
//! known to be blocked, then record what finished, in an order that does not
//! depend on the network.
//!
//! Lock waits are detected in one of two ways: from the server's lock view
//! (`lock_view`), or by `retrying` on an engine that answers "busy" at once.

use super::RunError;
use super::run::Run;
use crate::engine::{ANSWER_LIMIT, Reply, WaitState};
use isolde_model::history::{ErrorClass, EventKind};
use isolde_model::profile::Waiting;
use isolde_sql as sql;
use isolde_sql::Kind;
use std::time::Duration;

/// How long to wait for the reply to a new statement before the lock view is
/// polled: somewhat longer than statements usually take, within these bounds.
const LEAST_PATIENCE: Duration = Duration::from_micros(100);
const MOST_PATIENCE: Duration = Duration::from_millis(4);

pub(super) struct Completion {
    pub index: usize,
    /// From sending the statement to its reply.
    pub took: Duration,
    pub reply: Reply,
    pub wait_order: Option<usize>,
}

impl Run<'_> {
    /// True when a blocked statement has finished.
    pub(super) fn settle(&mut self, fresh: Option<usize>) -> Result<bool, RunError> {
        let fresh_kind = fresh
            .and_then(|index| self.sessions[index].in_flight.as_ref())
            .map(|f| sql::kind(&f.sql));
        let mut finished: Vec<Completion> = Vec::new();
        if let Some(index) = fresh {
            let patience = (*self.typical_reply * 5 / 4).clamp(LEAST_PATIENCE, MOST_PATIENCE);
            if let Some(reply) = self.sessions[index].session.reply(patience) {
                self.accept(index, reply, &mut finished);
            }
        }
        match self.engine.profile().waiting {
            Waiting::Retry | Waiting::Never => self.settle_by_retrying(&mut finished)?,
            Waiting::Probe | Waiting::Timeout => self.settle_with_lock_view(&mut finished)?,
        }
        let at_once = |f: &&Completion| Some(f.index) == fresh && f.wait_order.is_none();
        // A moving average, so that the first poll comes neither while most
        // statements are about to answer nor long after they have.
        if let Some(Completion { took, .. }) = finished.iter().find(at_once) {
            // A long computation says nothing about other statements.
            let took = (*took).min(MOST_PATIENCE);
            *self.typical_reply = (*self.typical_reply * 7 + took) / 8;
        }
        Ok(self.record_finished(finished, fresh, fresh_kind))
    }

    /// Records what has happened since, without waiting for more. True when a
    /// blocked statement has finished.
    pub(super) fn poll_replies(&mut self) -> Result<bool, RunError> {
        let mut finished: Vec<Completion> = Vec::new();
        let retries = self.engine.profile().waiting == Waiting::Retry;
        for index in self.outstanding(&finished) {
            // A statement that was answered "busy" is not with the engine: no
            // reply can arrive.
            let out = !retries || self.sessions[index].wait_order().is_none();
            if out && let Some(reply) = self.sessions[index].session.reply(Duration::ZERO) {
                self.accept(index, reply, &mut finished);
            }
        }
        let works = |index: &usize| self.sessions[*index].wait_order().is_none();
        if finished.is_empty() && !self.outstanding(&finished).iter().any(works) {
            return Ok(false);
        }
        match self.engine.profile().waiting {
            Waiting::Retry | Waiting::Never => self.settle_by_retrying(&mut finished)?,
            Waiting::Probe | Waiting::Timeout => self.settle_with_lock_view(&mut finished)?,
        }
        Ok(self.record_finished(finished, None, None))
    }

    /// Takes the answer of a cancelled statement.
    pub(super) fn await_cancelled(
        &mut self,
        index: usize,
        limit: Duration,
    ) -> Result<(), RunError> {
        let mut finished: Vec<Completion> = Vec::new();
        if let Some(reply) = self.sessions[index].session.reply(limit) {
            self.accept(index, reply, &mut finished);
        }
        match self.engine.profile().waiting {
            Waiting::Retry | Waiting::Never => self.settle_by_retrying(&mut finished)?,
            Waiting::Probe | Waiting::Timeout => self.settle_with_lock_view(&mut finished)?,
        }
        self.record_finished(finished, None, None);
        Ok(())
    }

    pub(super) fn accept(&mut self, index: usize, reply: Reply, finished: &mut Vec<Completion>) {
        let wait_order = self.sessions[index].wait_order();
        let took = self.sessions[index].in_flight.as_ref().map(|f| f.since.elapsed());
        finished.push(Completion { index, took: took.unwrap_or_default(), reply, wait_order });
    }

    pub(super) fn outstanding(&self, finished: &[Completion]) -> Vec<usize> {
        (0..self.sessions.len())
            .filter(|index| self.sessions[*index].in_flight.is_some())
            .filter(|index| finished.iter().all(|f| f.index != *index))
            .collect()
    }

    pub(super) fn collect_replies(
        &mut self,
        finished: &mut Vec<Completion>,
        patience: Duration,
    ) -> bool {
        let out = self.outstanding(finished);
        let mut any = false;
        let share = patience / u32::try_from(out.len().max(1)).unwrap_or(1);
        for index in out {
            if let Some(reply) = self.sessions[index].session.reply(share) {
                self.accept(index, reply, finished);
                any = true;
            }
        }
        any
    }

    pub(super) fn mark_waiting(&mut self, out: &[usize], states: &[WaitState]) {
        for (index, state) in out.iter().zip(states) {
            let WaitState::Waiting(holders) = state else { continue };
            if self.sessions[*index].wait_order().is_some() {
                continue;
            }
            let mut on: Vec<String> = self
                .sessions
                .iter()
                .filter(|l| holders.contains(&l.session.id()))
                .map(|l| l.name.clone())
                .collect();
            on.sort();
            *self.wait_counter += 1;
            let order = *self.wait_counter;
            let in_flight = self.sessions[*index].in_flight.as_mut().expect("it is outstanding");
            in_flight.waiting = Some(order);
            self.wait_detection.push(in_flight.since.elapsed());
            let step = in_flight.step;
            self.event(*index, step, EventKind::Waiting { on });
        }
    }

    /// Cancels statements that have executed, or waited for sessions outside of
    /// the run, for too long; if one does not react, the server hangs.
    pub(super) fn cancel_overdue(
        &mut self,
        out: &[usize],
        states: &[WaitState],
    ) -> Result<(), RunError> {
        let limit = match self.engine.can_cancel() {
            true => self.limits.statement,
            false => self.limits.statement.max(ANSWER_LIMIT),
        };
        for (index, state) in out.iter().zip(states) {
            if *state != WaitState::Free {
                continue;
            }
            let Some(in_flight) = &self.sessions[*index].in_flight else { continue };
            match in_flight.cancelled {
                Some(first) if first.elapsed() > self.limits.cancel => {
                    self.report_uncancellable(*index)?
                }
                None if in_flight.works_since.elapsed() > limit => self.cancel(*index)?,
                _ => {}
            }
        }
        if (self.interrupted)() {
            return Err(RunError::Interrupted);
        }
        Ok(())
    }

    fn record_finished(
        &mut self,
        mut finished: Vec<Completion>,
        fresh: Option<usize>,
        fresh_kind: Option<Kind>,
    ) -> bool {
        let fresh_ends = fresh_kind.is_some_and(|k| k.ends_transaction() || k == Kind::RollbackTo);
        finished.sort_by_key(|f| {
            let deadlock = f.reply.error().is_some_and(|e| e.class == ErrorClass::Deadlock);
            // The abort of a deadlock's victim unblocked the new statement;
            // statements that the end of a transaction unblocks come after that
            // end.
            let rank = match (Some(f.index) == fresh, deadlock && !fresh_ends) {
                (_, true) => 0,
                (true, _) => 1,
                _ => 2,
            };
            (rank, f.wait_order)
        });
        let mut resumed = false;
        for done in finished {
            resumed |= done.wait_order.is_some();
            self.record(done.index, done.reply);
        }
        resumed
    }
}

//! After each statement: wait until every session has answered or is known to
//! wait, then record what finished, in an order that does not depend on the
//! network.
//!
//! Who waits is found out in one of two ways: `asking` a server, or `retrying`
//! with an engine that answers "busy" at once.

use super::RunError;
use super::run::Run;
use crate::engine::{ANSWER_LIMIT, Reply, WaitState};
use isolde_core::history::{ErrorClass, What};
use isolde_core::profile::Waiting;
use isolde_core::sql::{self, Kind};
use std::time::Duration;

/// How long a fresh statement is awaited before the server is asked about it:
/// somewhat longer than statements usually take here, within these bounds.
const LEAST_PATIENCE: Duration = Duration::from_micros(100);
const MOST_PATIENCE: Duration = Duration::from_millis(4);

pub(super) struct Finished {
    pub who: usize,
    /// From sending to here.
    pub took: Duration,
    pub reply: Reply,
    pub wait_order: Option<usize>,
}

impl Run<'_> {
    /// True when a statement that waited has finished.
    pub(super) fn settle(&mut self, fresh: Option<usize>) -> Result<bool, RunError> {
        let fresh_kind =
            fresh.and_then(|who| self.lives[who].in_flight.as_ref()).map(|f| sql::kind(&f.sql));
        let mut finished: Vec<Finished> = Vec::new();
        if let Some(who) = fresh {
            let patience = (*self.typical_reply * 5 / 4).clamp(LEAST_PATIENCE, MOST_PATIENCE);
            if let Some(reply) = self.lives[who].session.reply(patience) {
                self.accept(who, reply, &mut finished);
            }
        }
        match self.engine.profile().waiting {
            Waiting::Retry | Waiting::Never => self.settle_at_once(&mut finished)?,
            Waiting::Probe | Waiting::Timeout => self.settle_by_asking(&mut finished)?,
        }
        let at_once = |f: &&Finished| Some(f.who) == fresh && f.wait_order.is_none();
        // A moving average, so that the first question comes neither while most
        // statements are about to answer nor long after they would have.
        if let Some(Finished { took, .. }) = finished.iter().find(at_once) {
            // What computes for long says nothing of the others.
            let took = (*took).min(MOST_PATIENCE);
            *self.typical_reply = (*self.typical_reply * 7 + took) / 8;
        }
        Ok(self.record_finished(finished, fresh, fresh_kind))
    }

    /// A look at what has happened since, without waiting for more. True when
    /// a statement that waited has finished.
    pub(super) fn look(&mut self) -> Result<bool, RunError> {
        let mut finished: Vec<Finished> = Vec::new();
        let retries = self.engine.profile().waiting == Waiting::Retry;
        for who in self.outstanding(&finished) {
            // What an engine called busy is not with it: nothing can arrive.
            let out = !retries || self.lives[who].wait_order().is_none();
            if out && let Some(reply) = self.lives[who].session.reply(Duration::ZERO) {
                self.accept(who, reply, &mut finished);
            }
        }
        let works = |who: &usize| self.lives[*who].wait_order().is_none();
        if finished.is_empty() && !self.outstanding(&finished).iter().any(works) {
            return Ok(false);
        }
        match self.engine.profile().waiting {
            Waiting::Retry | Waiting::Never => self.settle_at_once(&mut finished)?,
            Waiting::Probe | Waiting::Timeout => self.settle_by_asking(&mut finished)?,
        }
        Ok(self.record_finished(finished, None, None))
    }

    /// Takes the answer of a statement that was told to end.
    pub(super) fn await_cancelled(&mut self, who: usize, limit: Duration) -> Result<(), RunError> {
        let mut finished: Vec<Finished> = Vec::new();
        if let Some(reply) = self.lives[who].session.reply(limit) {
            self.accept(who, reply, &mut finished);
        }
        match self.engine.profile().waiting {
            Waiting::Retry | Waiting::Never => self.settle_at_once(&mut finished)?,
            Waiting::Probe | Waiting::Timeout => self.settle_by_asking(&mut finished)?,
        }
        self.record_finished(finished, None, None);
        Ok(())
    }

    pub(super) fn accept(&mut self, who: usize, reply: Reply, finished: &mut Vec<Finished>) {
        let wait_order = self.lives[who].wait_order();
        let took = self.lives[who].in_flight.as_ref().map(|f| f.since.elapsed());
        finished.push(Finished { who, took: took.unwrap_or_default(), reply, wait_order });
    }

    pub(super) fn outstanding(&self, finished: &[Finished]) -> Vec<usize> {
        (0..self.lives.len())
            .filter(|who| self.lives[*who].in_flight.is_some())
            .filter(|who| finished.iter().all(|f| f.who != *who))
            .collect()
    }

    pub(super) fn collect_replies(
        &mut self,
        finished: &mut Vec<Finished>,
        patience: Duration,
    ) -> bool {
        let out = self.outstanding(finished);
        let mut any = false;
        let share = patience / u32::try_from(out.len().max(1)).unwrap_or(1);
        for who in out {
            if let Some(reply) = self.lives[who].session.reply(share) {
                self.accept(who, reply, finished);
                any = true;
            }
        }
        any
    }

    pub(super) fn mark_waiting(&mut self, out: &[usize], states: &[WaitState]) {
        for (who, state) in out.iter().zip(states) {
            let WaitState::Waiting(holders) = state else { continue };
            if self.lives[*who].wait_order().is_some() {
                continue;
            }
            let mut on: Vec<String> = self
                .lives
                .iter()
                .filter(|l| holders.contains(&l.session.id()))
                .map(|l| l.name.clone())
                .collect();
            on.sort();
            *self.wait_counter += 1;
            let order = *self.wait_counter;
            let in_flight = self.lives[*who].in_flight.as_mut().expect("it is outstanding");
            in_flight.waiting = Some(order);
            self.wait_detection.push(in_flight.since.elapsed());
            let step = in_flight.step;
            self.event(*who, step, What::Waiting { on });
        }
    }

    /// Ends statements that work (or wait for strangers) for too long; where
    /// one does not even react to that, the server hangs.
    pub(super) fn cancel_overdue(
        &mut self,
        out: &[usize],
        states: &[WaitState],
    ) -> Result<(), RunError> {
        let limit = match self.engine.can_cancel() {
            true => self.limits.statement,
            false => self.limits.statement.max(ANSWER_LIMIT),
        };
        for (who, state) in out.iter().zip(states) {
            if *state != WaitState::Free {
                continue;
            }
            let Some(in_flight) = &self.lives[*who].in_flight else { continue };
            match in_flight.cancelled {
                Some(first) if first.elapsed() > self.limits.cancel => self.does_not_end(*who)?,
                None if in_flight.works_since.elapsed() > limit => self.cancel(*who)?,
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
        mut finished: Vec<Finished>,
        fresh: Option<usize>,
        fresh_kind: Option<Kind>,
    ) -> bool {
        let fresh_ends = fresh_kind.is_some_and(|k| k.ends_transaction() || k == Kind::RollbackTo);
        finished.sort_by_key(|f| {
            let deadlock = f.reply.error().is_some_and(|e| e.class == ErrorClass::Deadlock);
            // A deadlock's victim is what set a fresh statement free; whatever
            // an end of a transaction sets free comes after that end.
            let rank = match (Some(f.who) == fresh, deadlock && !fresh_ends) {
                (_, true) => 0,
                (true, _) => 1,
                _ => 2,
            };
            (rank, f.wait_order)
        });
        let mut resumed = false;
        for done in finished {
            resumed |= done.wait_order.is_some();
            self.record(done.who, done.reply);
        }
        resumed
    }
}

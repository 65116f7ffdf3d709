//! After each statement: wait until every session has answered or is known to
//! wait, then record what finished, in an order that does not depend on the
//! network.
//!
//! A session waits when the server says so, never because it is late. The
//! answer counts only if it was taken after the last reply arrived and if all
//! sessions that are still out wait in that same answer; so a lock that was
//! just released cannot leave a stale "waiting" behind.

use super::{Run, RunError};
use crate::engine::{ANSWER_LIMIT, Outcome, Reply, SessionId, WaitState};
use isolde_core::history::{ErrorClass, What};
use isolde_core::profile::Waiting;
use isolde_core::sql::{self, Kind};
use std::time::{Duration, Instant};

/// How long a fresh statement is awaited before the server is asked about it:
/// somewhat longer than statements usually take here, within these bounds.
const LEAST_PATIENCE: Duration = Duration::from_micros(100);
const MOST_PATIENCE: Duration = Duration::from_millis(4);
/// The first pause between two questions.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// The longest pause between two questions about a statement that works.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// Where the view names no holders: how long the server gets to break a
/// deadlock that cannot be seen. It looks for one as soon as a wait begins.
const UNSEEN_DEADLOCK: Duration = Duration::from_millis(10);
/// Without any lock view, a statement that takes longer counts as waiting.
const BLIND_PATIENCE: Duration = Duration::from_millis(500);
/// A wait that the server reports but the session does not confirm (some
/// waits have no such signal) counts after this long.
const UNCONFIRMED: Duration = Duration::from_millis(200);

pub(super) struct Finished {
    who: usize,
    /// From sending to here.
    took: Duration,
    reply: Reply,
    wait_order: Option<usize>,
}

impl Run<'_> {
    /// True when a statement that waited has finished.
    pub(crate) fn settle(&mut self, fresh: Option<usize>) -> Result<bool, RunError> {
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
    pub(crate) fn look(&mut self) -> Result<bool, RunError> {
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
    pub(crate) fn await_cancelled(&mut self, who: usize, limit: Duration) -> Result<(), RunError> {
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

    fn collect_replies(&mut self, finished: &mut Vec<Finished>, patience: Duration) -> bool {
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

    /// For servers with a lock view, and for those about which nothing is
    /// known but the time.
    fn settle_by_asking(&mut self, finished: &mut Vec<Finished>) -> Result<(), RunError> {
        let mut pause = FIRST_PAUSE;
        let began = Instant::now();
        let mut cycle_since: Option<Instant> = None;
        let mut unconfirmed_since: Option<Instant> = None;
        loop {
            let out = self.outstanding(finished);
            if out.is_empty() {
                return Ok(());
            }
            let states = self.ask(&out)?;
            if self.bury(finished) {
                return Ok(());
            }
            if self.collect_replies(finished, Duration::ZERO) {
                pause = FIRST_PAUSE;
                // Only a reply changes who waits for whom. "Free" alone does
                // not: some views are not asked every time.
                cycle_since = None;
                continue;
            }
            self.leave_waits_out(&out, &states);
            let all_wait = states.iter().all(|s| matches!(s, WaitState::Waiting(_)));
            if all_wait {
                let cycle = has_cycle(&self.ids(&out), &states);
                let patience = match cycle {
                    true => {
                        let soon = self.engine.breaks_deadlocks_within();
                        soon.unwrap_or(self.limits.deadlock).min(self.limits.deadlock)
                    }
                    false if self.may_be_deadlocked(&out, &states) => UNSEEN_DEADLOCK,
                    false => Duration::ZERO,
                };
                let since = cycle_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= patience {
                    self.mark_waiting(&out, &states);
                    // Known to wait; but nothing more is sent before the
                    // server has looked for a deadlock on behalf of each, or
                    // the next one to wait might not be the one it finds.
                    let since = unconfirmed_since.get_or_insert_with(Instant::now);
                    if self.all_confirm(&out) || since.elapsed() > UNCONFIRMED {
                        return Ok(());
                    }
                }
                pause = FIRST_PAUSE;
            } else {
                unconfirmed_since = None;
                self.cancel_overdue(&out, &states)?;
                if self.bury(finished) {
                    return Ok(());
                }
                if self.patience.is_some_and(|p| began.elapsed() >= p) {
                    // Those that wait are known even if others still work.
                    self.mark_waiting(&out, &states);
                    return Ok(());
                }
            }
            self.collect_replies(finished, pause);
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    /// A wait takes as long as others let it; only what comes after it counts.
    fn leave_waits_out(&mut self, out: &[usize], states: &[WaitState]) {
        for (who, state) in out.iter().zip(states) {
            if let (WaitState::Waiting(_), Some(in_flight)) =
                (state, &mut self.lives[*who].in_flight)
            {
                in_flight.works_since = Instant::now();
            }
        }
    }

    /// Somebody has just joined others that wait, and the view does not say for
    /// whom: it may have closed a circle that the server is about to break.
    fn may_be_deadlocked(&self, out: &[usize], states: &[WaitState]) -> bool {
        let newcomer = out.iter().any(|who| self.lives[*who].wait_order().is_none());
        let unnamed = states.iter().any(|s| *s == WaitState::Waiting(Vec::new()));
        out.len() > 1 && newcomer && unnamed
    }

    fn all_confirm(&self, out: &[usize]) -> bool {
        out.iter().all(|who| self.lives[*who].session.confirms_wait() != Some(false))
    }

    fn ids(&self, out: &[usize]) -> Vec<SessionId> {
        out.iter().map(|who| self.lives[*who].session.id()).collect()
    }

    fn ask(&mut self, out: &[usize]) -> Result<Vec<WaitState>, RunError> {
        if self.engine.profile().waiting == Waiting::Timeout {
            let late = |who: &usize| {
                let since = self.lives[*who].in_flight.as_ref().map(|f| f.since);
                match since.is_some_and(|s| s.elapsed() > BLIND_PATIENCE) {
                    true => WaitState::Waiting(Vec::new()),
                    false => WaitState::Free,
                }
            };
            return Ok(out.iter().map(late).collect());
        }
        let ids = self.ids(out);
        match self.engine.waiting(&ids) {
            Ok(states) => Ok(states),
            Err(error) => {
                self.fall(error)?;
                Ok(vec![WaitState::Free; out.len()])
            }
        }
    }

    fn mark_waiting(&mut self, out: &[usize], states: &[WaitState]) {
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
    fn cancel_overdue(&mut self, out: &[usize], states: &[WaitState]) -> Result<(), RunError> {
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

    /// For engines that answer at once, perhaps with "busy": what is busy
    /// waits, and is tried again whenever somebody else has got on.
    fn settle_at_once(&mut self, finished: &mut Vec<Finished>) -> Result<(), RunError> {
        for who in self.outstanding(finished) {
            let waits = self.lives[who].wait_order().is_some();
            if !waits {
                self.await_reply(who, finished)?;
            }
        }
        if self.engine.profile().waiting == Waiting::Never {
            return Ok(());
        }
        while let Some(at) =
            finished.iter().position(|f| f.wait_order.is_none() && is_busy(&f.reply))
        {
            let busy = finished.remove(at);
            self.mark_busy(busy.who);
            if finished.is_empty() {
                return Ok(());
            }
        }
        loop {
            let mut waiters = self.outstanding(finished);
            waiters.sort_by_key(|who| self.lives[*who].wait_order());
            let before = finished.len();
            for who in waiters {
                self.retry(who, finished)?;
                if finished.len() > before {
                    break;
                }
            }
            if finished.len() == before {
                return Ok(());
            }
        }
    }

    fn await_reply(&mut self, who: usize, finished: &mut Vec<Finished>) -> Result<(), RunError> {
        let began = Instant::now();
        loop {
            if self.bury(finished) {
                return Ok(());
            }
            if let Some(reply) = self.lives[who].session.reply(Duration::from_millis(50)) {
                self.accept(who, reply, finished);
                return Ok(());
            }
            // A retry must come to its end, or it would be sent twice.
            let fresh = self.lives[who].wait_order().is_none();
            if fresh && self.patience.is_some_and(|p| began.elapsed() >= p) {
                return Ok(());
            }
            self.cancel_overdue(&[who], &[WaitState::Free])?;
        }
    }

    fn retry(&mut self, who: usize, finished: &mut Vec<Finished>) -> Result<(), RunError> {
        let Some(sql) = self.lives[who].in_flight.as_ref().map(|f| f.sql.clone()) else {
            return Ok(());
        };
        self.lives[who].session.start(&sql);
        self.await_reply(who, finished)?;
        if finished.last().is_some_and(|f| f.who == who && is_busy(&f.reply)) {
            finished.pop();
        }
        Ok(())
    }

    fn mark_busy(&mut self, who: usize) {
        self.mark_waiting(&[who], &[WaitState::Waiting(Vec::new())]);
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

fn is_busy(reply: &Reply) -> bool {
    matches!(&reply.outcome, Outcome::Error(e) if e.class == ErrorClass::Busy)
}

/// Whether the sessions wait for each other in a circle.
fn has_cycle(ids: &[SessionId], states: &[WaitState]) -> bool {
    let next = |id: SessionId| -> Vec<SessionId> {
        ids.iter()
            .position(|i| *i == id)
            .map(|i| match &states[i] {
                WaitState::Waiting(on) => on.clone(),
                WaitState::Free => Vec::new(),
            })
            .unwrap_or_default()
    };
    ids.iter().any(|start| {
        let mut seen: Vec<SessionId> = Vec::new();
        let mut todo = next(*start);
        while let Some(id) = todo.pop() {
            if id == *start {
                return true;
            }
            if !seen.contains(&id) {
                seen.push(id);
                todo.extend(next(id));
            }
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_of_waits_is_seen_and_a_chain_is_not() {
        let on = |ids: &[SessionId]| WaitState::Waiting(ids.to_vec());
        assert!(has_cycle(&[1, 2, 3], &[on(&[2]), on(&[3]), on(&[1])]));
        assert!(!has_cycle(&[1, 2, 3], &[on(&[2]), on(&[3]), WaitState::Free]));
        assert!(!has_cycle(&[1, 2], &[on(&[2]), on(&[9])]));
    }
}

//! Settling by asking the server who waits: for servers with a lock view, and
//! for those about which nothing is known but the time.
//!
//! A session waits when the server says so, never because it is late. The
//! answer counts only if it was taken after the last reply arrived and if all
//! sessions that are still out wait in that same answer; so a lock that was
//! just released cannot leave a stale "waiting" behind.

use super::RunError;
use super::run::Run;
use super::settle::Finished;
use crate::engine::{SessionId, WaitState};
use isolde_core::profile::Waiting;
use std::time::{Duration, Instant};

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

impl Run<'_> {
    /// For servers with a lock view, and for those about which nothing is
    /// known but the time.
    pub(super) fn settle_by_asking(
        &mut self,
        finished: &mut Vec<Finished>,
    ) -> Result<(), RunError> {
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

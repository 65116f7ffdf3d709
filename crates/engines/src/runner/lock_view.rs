//! Settling by polling the server's lock view, and for engines without one by
//! time.
//!
//! A session counts as blocked because the server reports it, never because it
//! is late. A report counts only if it was taken after the last reply arrived
//! and if it shows every outstanding session as blocked. So a lock that was
//! just released cannot leave a stale "waiting" behind.

use super::RunError;
use super::run::Run;
use super::settle::Completion;
use crate::engine::{SessionId, WaitState};
use isolde_model::profile::Waiting;
use std::time::{Duration, Instant};

/// The first pause between two polls.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// The longest pause between two polls while a statement executes.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// If the view names no lock holders: how long the server gets to break a
/// deadlock that the view cannot show. Servers look for one as soon as a wait
/// begins.
const UNSEEN_DEADLOCK: Duration = Duration::from_millis(10);
/// Without a lock view, a statement that takes longer counts as blocked.
const BLIND_PATIENCE: Duration = Duration::from_millis(500);
/// A wait that the server reports but the session does not confirm counts after
/// this long; some waits have no such signal.
const UNCONFIRMED: Duration = Duration::from_millis(200);

impl Run<'_> {
    /// Settles by the lock view, or by time where there is none.
    pub(super) fn settle_with_lock_view(
        &mut self,
        finished: &mut Vec<Completion>,
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
            let states = self.wait_states(&out)?;
            if self.finish_lost_statements(finished) {
                return Ok(());
            }
            if self.collect_replies(finished, Duration::ZERO) {
                pause = FIRST_PAUSE;
                // Only a reply changes the wait-for graph. The state "free"
                // alone does not: some views are not polled every time.
                cycle_since = None;
                continue;
            }
            self.exclude_wait_time(&out, &states);
            let all_blocked = states.iter().all(|s| matches!(s, WaitState::Waiting(_)));
            if all_blocked {
                let cycle = has_cycle(&self.ids(&out), &states);
                let patience = match cycle {
                    true => {
                        let soon = self.engine.breaks_deadlocks_within();
                        soon.unwrap_or(self.limits.deadlock).min(self.limits.deadlock)
                    }
                    false if self.may_hide_deadlock(&out, &states) => UNSEEN_DEADLOCK,
                    false => Duration::ZERO,
                };
                let since = cycle_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= patience {
                    self.mark_waiting(&out, &states);
                    // All are blocked. But nothing more is sent before the
                    // server has looked for a deadlock on behalf of each, or it
                    // might choose a later waiter as the victim.
                    let since = unconfirmed_since.get_or_insert_with(Instant::now);
                    if self.all_confirm(&out) || since.elapsed() > UNCONFIRMED {
                        return Ok(());
                    }
                }
                pause = FIRST_PAUSE;
            } else {
                unconfirmed_since = None;
                self.cancel_overdue(&out, &states)?;
                if self.finish_lost_statements(finished) {
                    return Ok(());
                }
                if self.patience.is_some_and(|p| began.elapsed() >= p) {
                    // Record the blocked ones even if others still execute.
                    self.mark_waiting(&out, &states);
                    return Ok(());
                }
            }
            self.collect_replies(finished, pause);
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    /// Excludes the time of a lock wait from the statement's time limit.
    fn exclude_wait_time(&mut self, out: &[usize], states: &[WaitState]) {
        for (index, state) in out.iter().zip(states) {
            if let (WaitState::Waiting(_), Some(in_flight)) =
                (state, &mut self.sessions[*index].in_flight)
            {
                in_flight.works_since = Instant::now();
            }
        }
    }

    /// A statement has just become blocked besides others, and the view does
    /// not name the lock holders: it may have closed a cycle that the server is
    /// about to break.
    fn may_hide_deadlock(&self, out: &[usize], states: &[WaitState]) -> bool {
        let newcomer = out.iter().any(|index| self.sessions[*index].wait_order().is_none());
        let unnamed = states.iter().any(|s| *s == WaitState::Waiting(Vec::new()));
        out.len() > 1 && newcomer && unnamed
    }

    fn all_confirm(&self, out: &[usize]) -> bool {
        out.iter().all(|index| self.sessions[*index].session.confirms_wait() != Some(false))
    }

    fn ids(&self, out: &[usize]) -> Vec<SessionId> {
        out.iter().map(|index| self.sessions[*index].session.id()).collect()
    }

    fn wait_states(&mut self, out: &[usize]) -> Result<Vec<WaitState>, RunError> {
        if self.engine.profile().waiting == Waiting::Timeout {
            let late = |index: &usize| {
                let since = self.sessions[*index].in_flight.as_ref().map(|f| f.since);
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
                self.record_failure(error)?;
                Ok(vec![WaitState::Free; out.len()])
            }
        }
    }
}

/// Whether the sessions wait for each other in a cycle.
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
    fn has_cycle_finds_cycles_and_no_chains() {
        let on = |ids: &[SessionId]| WaitState::Waiting(ids.to_vec());
        assert!(has_cycle(&[1, 2, 3], &[on(&[2]), on(&[3]), on(&[1])]));
        assert!(!has_cycle(&[1, 2, 3], &[on(&[2]), on(&[3]), WaitState::Free]));
        assert!(!has_cycle(&[1, 2], &[on(&[2]), on(&[9])]));
    }
}

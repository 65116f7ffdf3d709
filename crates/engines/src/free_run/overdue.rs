//! Limits of a free run: what works for too long is cancelled, and what does
//! not even react to that means that the server hangs.

use super::Free;
use crate::engine::{ANSWER_LIMIT, EngineError, WaitState};
use crate::runner::RunError;
use isolde_core::profile::Waiting;
use std::time::{Duration, Instant};

impl Free<'_> {
    pub(super) fn look_at_limits(&mut self) -> Result<(), RunError> {
        let limits = self.runner.limits;
        let limit = match self.runner.engine.can_cancel() {
            true => limits.statement,
            false => limits.statement.max(ANSWER_LIMIT),
        };
        let late = |who: &usize| {
            let out = self.workers[*who].out.as_ref().filter(|o| o.busy.is_none());
            out.is_some_and(|out| out.works_since.elapsed() > limit || out.cancelled.is_some())
        };
        let late: Vec<usize> = (0..self.workers.len()).filter(late).collect();
        for (who, state) in late.iter().zip(self.states(&late)?) {
            // A connection that broke while it was written to has no news.
            if self.take_reply(*who, Duration::ZERO) {
                continue;
            }
            let Some(out) = &mut self.workers[*who].out else { continue };
            // A wait lasts as long as others let it; but somebody must go on.
            let stuck = self.last_answer.elapsed() > limit + limits.deadlock;
            match (state, out.cancelled) {
                (_, Some(first)) if first.elapsed() > limits.cancel => {
                    let sql = self.workers[*who].sql();
                    let why = format!(
                        "a statement was cancelled and has not ended {:?} later: {sql}",
                        limits.cancel
                    );
                    return self.fall(EngineError::Hangs(why));
                }
                (_, Some(_)) => {}
                (WaitState::Waiting(_), None) if !stuck => out.works_since = Instant::now(),
                (_, None) => {
                    out.cancelled = Some(Instant::now());
                    let id = self.workers[*who].session.as_ref().map(|s| s.id());
                    if let Some(Err(error)) = id.map(|id| self.runner.engine.cancel(id)) {
                        return self.fall(error);
                    }
                }
            }
            if self.death.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Who of these waits, where the engine can say.
    fn states(&mut self, late: &[usize]) -> Result<Vec<WaitState>, RunError> {
        let free = vec![WaitState::Free; late.len()];
        if late.is_empty() || self.profile.waiting != Waiting::Probe {
            return Ok(free);
        }
        let id = |who: &usize| self.workers[*who].session.as_ref().map_or(0, |s| s.id());
        let ids: Vec<u64> = late.iter().map(id).collect();
        match self.runner.engine.waiting(&ids) {
            Ok(states) => Ok(states),
            Err(error) => self.fall(error).map(|()| free),
        }
    }

    fn fall(&mut self, error: EngineError) -> Result<(), RunError> {
        if self.death.is_none() {
            self.death = Some(self.runner.death_by(error.into())?);
        }
        Ok(())
    }
}

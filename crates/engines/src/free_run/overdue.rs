//! Time limits of a free run: a statement that executes for too long is
//! cancelled, and if it does not react, the server hangs.

use super::FreeRunState;
use crate::engine::{ANSWER_LIMIT, EngineError, WaitState};
use crate::runner::RunError;
use isolde_model::profile::Waiting;
use std::time::{Duration, Instant};

impl FreeRunState<'_> {
    pub(super) fn check_limits(&mut self) -> Result<(), RunError> {
        let limits = self.runner.limits;
        let limit = match self.runner.engine.can_cancel() {
            true => limits.statement,
            false => limits.statement.max(ANSWER_LIMIT),
        };
        let late = |index: &usize| {
            let in_flight = self.workers[*index].in_flight.as_ref().filter(|o| o.busy.is_none());
            in_flight.is_some_and(|in_flight| {
                in_flight.works_since.elapsed() > limit || in_flight.cancelled.is_some()
            })
        };
        let late: Vec<usize> = (0..self.workers.len()).filter(late).collect();
        for (index, state) in late.iter().zip(self.states(&late)?) {
            // A connection that broke while being written to has no reply.
            if self.take_reply(*index, Duration::ZERO) {
                continue;
            }
            let Some(in_flight) = &mut self.workers[*index].in_flight else { continue };
            // A lock wait may last as long as other sessions make progress.
            let stuck = self.last_answer.elapsed() > limit + limits.deadlock;
            match (state, in_flight.cancelled) {
                (_, Some(first)) if first.elapsed() > limits.cancel => {
                    let sql = self.workers[*index].sql();
                    let why = format!(
                        "a statement was cancelled and has not ended {:?} later: {sql}",
                        limits.cancel
                    );
                    return self.record_failure(EngineError::Hangs(why));
                }
                (_, Some(_)) => {}
                (WaitState::Waiting(_), None) if !stuck => in_flight.works_since = Instant::now(),
                (_, None) => {
                    in_flight.cancelled = Some(Instant::now());
                    let id = self.workers[*index].session.as_ref().map(|s| s.id());
                    if let Some(Err(error)) = id.map(|id| self.runner.engine.cancel(id)) {
                        return self.record_failure(error);
                    }
                }
            }
            if self.death.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// The lock-wait state of these sessions, where the engine reports it.
    fn states(&mut self, late: &[usize]) -> Result<Vec<WaitState>, RunError> {
        let free = vec![WaitState::Free; late.len()];
        if late.is_empty() || self.profile.waiting != Waiting::Probe {
            return Ok(free);
        }
        let id = |index: &usize| self.workers[*index].session.as_ref().map_or(0, |s| s.id());
        let ids: Vec<u64> = late.iter().map(id).collect();
        match self.runner.engine.waiting(&ids) {
            Ok(states) => Ok(states),
            Err(error) => self.record_failure(error).map(|()| free),
        }
    }

    fn record_failure(&mut self, error: EngineError) -> Result<(), RunError> {
        if self.death.is_none() {
            self.death = Some(self.runner.server_failure(error.into())?);
        }
        Ok(())
    }
}

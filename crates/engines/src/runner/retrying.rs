//! Settling with engines that answer "busy" at once instead of blocking.

use super::RunError;
use super::run::Run;
use super::settle::Completion;
use crate::engine::{Outcome, Reply, WaitState};
use isolde_model::history::ErrorClass;
use isolde_model::profile::Waiting;
use std::time::{Duration, Instant};

impl Run<'_> {
    /// Treats a busy statement as blocked, and retries it whenever another
    /// session has made progress.
    pub(super) fn settle_by_retrying(
        &mut self,
        finished: &mut Vec<Completion>,
    ) -> Result<(), RunError> {
        for index in self.outstanding(finished) {
            let waits = self.sessions[index].wait_order().is_some();
            if !waits {
                self.await_reply(index, finished)?;
            }
        }
        if self.engine.profile().waiting == Waiting::Never {
            return Ok(());
        }
        while let Some(at) =
            finished.iter().position(|f| f.wait_order.is_none() && is_busy(&f.reply))
        {
            let busy = finished.remove(at);
            self.mark_busy(busy.index);
            if finished.is_empty() {
                return Ok(());
            }
        }
        loop {
            let mut waiters = self.outstanding(finished);
            waiters.sort_by_key(|index| self.sessions[*index].wait_order());
            let before = finished.len();
            for index in waiters {
                self.retry(index, finished)?;
                if finished.len() > before {
                    break;
                }
            }
            if finished.len() == before {
                return Ok(());
            }
        }
    }

    fn await_reply(
        &mut self,
        index: usize,
        finished: &mut Vec<Completion>,
    ) -> Result<(), RunError> {
        let began = Instant::now();
        loop {
            if self.finish_lost_statements(finished) {
                return Ok(());
            }
            if let Some(reply) = self.sessions[index].session.reply(Duration::from_millis(50)) {
                self.accept(index, reply, finished);
                return Ok(());
            }
            // A retry must finish, or the statement would be sent twice.
            let fresh = self.sessions[index].wait_order().is_none();
            if fresh && self.patience.is_some_and(|p| began.elapsed() >= p) {
                return Ok(());
            }
            self.cancel_overdue(&[index], &[WaitState::Free])?;
        }
    }

    fn retry(&mut self, index: usize, finished: &mut Vec<Completion>) -> Result<(), RunError> {
        let Some(sql) = self.sessions[index].in_flight.as_ref().map(|f| f.sql.clone()) else {
            return Ok(());
        };
        self.sessions[index].session.start(&sql);
        self.await_reply(index, finished)?;
        if finished.last().is_some_and(|f| f.index == index && is_busy(&f.reply)) {
            finished.pop();
        }
        Ok(())
    }

    fn mark_busy(&mut self, index: usize) {
        self.mark_waiting(&[index], &[WaitState::Waiting(Vec::new())]);
    }
}

fn is_busy(reply: &Reply) -> bool {
    matches!(&reply.outcome, Outcome::Error(e) if e.class == ErrorClass::Busy)
}

//! Settling with engines that answer at once, perhaps with "busy".

use super::RunError;
use super::run::Run;
use super::settle::Finished;
use crate::engine::{Outcome, Reply, WaitState};
use isolde_core::history::ErrorClass;
use isolde_core::profile::Waiting;
use std::time::{Duration, Instant};

impl Run<'_> {
    /// For engines that answer at once, perhaps with "busy": what is busy
    /// waits, and is tried again whenever somebody else has got on.
    pub(super) fn settle_at_once(&mut self, finished: &mut Vec<Finished>) -> Result<(), RunError> {
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
}

fn is_busy(reply: &Reply) -> bool {
    matches!(&reply.outcome, Outcome::Error(e) if e.class == ErrorClass::Busy)
}

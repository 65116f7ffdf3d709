//! Setups and teardowns: each runs to its end, and only its last result counts.

use super::schedule::{ASK_EVERY, Run, Stop};
use crate::engine::SpecAnswer;
use isolde_interop::spec::Block;
use isolde_interop::spec::print_table;
use std::time::Instant;

impl Run<'_> {
    /// Runs a setup or teardown, whose last result counts. False when it
    /// failed.
    pub(super) fn block(&mut self, index: usize, block: &Block, place: &str) -> Result<bool, Stop> {
        let mut errors = String::new();
        let mut last = None;
        if let Err(why) = self.links.send(index, &block.sql) {
            self.print(&format!("{place} failed: {why}"));
            return Ok(false);
        }
        self.wait_to_end(index, place)?;
        while let Some(answer) = self.links.next_answer(index) {
            self.show_notices(index);
            if let SpecAnswer::Failed(failed) = &answer {
                errors.push_str(&failed.full);
                self.record_rejection(failed, place, block.line.0, &block.sql);
            }
            last = Some(answer);
        }
        self.show_notices(index);
        match last {
            Some(SpecAnswer::Table { columns, rows }) => {
                self.print(&print_table(&columns, &rows));
                Ok(true)
            }
            Some(SpecAnswer::Done) => Ok(true),
            _ => {
                self.print(&format!("{place} failed: {errors}"));
                Ok(false)
            }
        }
    }

    /// Waits for a block to end. isolationtester has no time-out here; a run
    /// that never ends is of no use, so the limit of steps applies, without
    /// isolationtester's message for it.
    fn wait_to_end(&mut self, index: usize, place: &str) -> Result<(), Stop> {
        let since = Instant::now();
        let mut cancelled = false;
        while self.links.is_busy(index) {
            self.show_notices(index);
            self.check_interrupt()?;
            match self.links.wait(index, ASK_EVERY) {
                Ok(true) => {}
                Ok(false) => {
                    if self.links.roll_back_open_transactions(index)? {
                        if !self.outcome.left_open.iter().any(|p| p == place) {
                            self.outcome.left_open.push(place.into());
                        }
                    } else if !cancelled && since.elapsed() > self.options.step_limit {
                        self.links.cancel(index)?;
                        cancelled = true;
                    }
                }
                // The answer will report that the connection is gone.
                Err(_) => break,
            }
        }
        self.show_notices(index);
        Ok(())
    }
}

//! Setups and teardowns: run to their end, of which only the last result
//! counts.

use super::link::Answer;
use super::schedule::{ASK_EVERY, Run, Stop};
use isolde_core::spec::Block;
use isolde_core::spec::print_table;
use std::time::Instant;

impl Run<'_> {
    /// A setup or teardown, whose last result counts. False when it failed.
    pub(super) fn block(&mut self, who: usize, block: &Block, place: &str) -> Result<bool, Stop> {
        let mut errors = String::new();
        let mut last = None;
        if let Err(why) = self.links.send(who, &block.sql) {
            self.print(&format!("{place} failed: {why}"));
            return Ok(false);
        }
        self.wait_to_end(who, place)?;
        while let Some(answer) = self.links.next_answer(who) {
            self.show_notices(who);
            if let Answer::Failed(failed) = &answer {
                errors.push_str(&failed.full);
                self.note_rejection(failed, place, block.line.0, &block.sql);
            }
            last = Some(answer);
        }
        self.show_notices(who);
        match last {
            Some(Answer::Table { columns, rows }) => {
                self.print(&print_table(&columns, &rows));
                Ok(true)
            }
            Some(Answer::Done) => Ok(true),
            _ => {
                self.print(&format!("{place} failed: {errors}"));
                Ok(false)
            }
        }
    }

    /// The original has no time-out here. Nobody is served by a run that never
    /// ends, so the limit of steps holds, without the original's words for it.
    fn wait_to_end(&mut self, who: usize, place: &str) -> Result<(), Stop> {
        let since = Instant::now();
        let mut cancelled = false;
        while self.links.is_busy(who) {
            self.show_notices(who);
            self.check_interrupt()?;
            match self.links.wait(who, ASK_EVERY) {
                Ok(true) => {}
                Ok(false) => {
                    if self.links.end_what_was_left_open(who)? {
                        if !self.played.left_open.iter().any(|p| p == place) {
                            self.played.left_open.push(place.into());
                        }
                    } else if !cancelled && since.elapsed() > self.options.step_limit {
                        self.links.cancel(who)?;
                        cancelled = true;
                    }
                }
                // The answer will say that the connection is gone.
                Err(_) => break,
            }
        }
        self.show_notices(who);
        Ok(())
    }
}

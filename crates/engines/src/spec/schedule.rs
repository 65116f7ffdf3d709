//! Runs one permutation after another: sends each step, detects whether it is
//! blocked, and reports steps as they complete.
//!
//! The order of the output is what matters. A step is reported when it
//! completes or first becomes blocked. After each step all blocked steps are
//! polled in the order in which they became blocked. Annotations delay a step's
//! report until another step or notice has occurred.

use super::{Options, SpecError, SpecOutcome};
use crate::engine::SpecLinks;
use isolde_interop::spec::{Blocker, PermutationStep, Spec};
use std::time::{Duration, Instant};

/// How often the server is polled for lock waits.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(10);

/// Why a run ends early.
pub(super) enum Stop {
    /// isolationtester would exit here; its last message is in the output.
    Exit,
    Error(SpecError),
}

impl<E: Into<SpecError>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Error(error.into())
    }
}

/// A running step, and the number of notices per session that its annotations
/// wait for.
struct ActiveStep<'a> {
    step: &'a PermutationStep,
    needed_notices: Vec<u64>,
}

pub(super) struct Run<'a> {
    pub(super) links: &'a mut dyn SpecLinks,
    pub(super) spec: &'a Spec,
    pub(super) options: &'a Options,
    out: &'a mut dyn FnMut(&str),
    pub(super) outcome: SpecOutcome,
    /// By session.
    active: Vec<Option<ActiveStep<'a>>>,
    pub(super) notices: Vec<u64>,
    pub(super) new_notice: bool,
}

pub fn run(
    links: &mut dyn SpecLinks,
    spec: &Spec,
    options: &Options,
    out: &mut dyn FnMut(&str),
) -> Result<SpecOutcome, SpecError> {
    for name in spec.unused_steps() {
        out(&format!("unused step name: {name}\n"));
    }
    out(&format!("Parsed test spec with {} sessions\n", spec.sessions.len()));
    let sessions = spec.sessions.len();
    let mut run = Run {
        links,
        spec,
        options,
        out,
        outcome: SpecOutcome::default(),
        active: (0..sessions).map(|_| None).collect(),
        notices: vec![0; sessions],
        new_notice: false,
    };
    match run.all_permutations() {
        Ok(()) => run.outcome.finished = true,
        Err(Stop::Exit) => {}
        Err(Stop::Error(error)) => return Err(error),
    }
    Ok(run.outcome)
}

impl<'a> Run<'a> {
    fn all_permutations(&mut self) -> Result<(), Stop> {
        let spec = self.spec;
        for permutation in &spec.permutations {
            self.permutation(&permutation.steps)?;
        }
        if spec.permutations.is_empty() {
            let mut steps: Vec<PermutationStep> = Vec::new();
            for order in spec.interleavings() {
                steps.clear();
                let free = |id| PermutationStep { id, blockers: Vec::new() };
                steps.extend(order.into_iter().map(free));
                // The steps live only as long as their permutation.
                let mut inner = Run {
                    links: &mut *self.links,
                    spec,
                    options: self.options,
                    out: &mut *self.out,
                    outcome: std::mem::take(&mut self.outcome),
                    active: (0..spec.sessions.len()).map(|_| None).collect(),
                    notices: std::mem::take(&mut self.notices),
                    new_notice: false,
                };
                let ended = inner.permutation(&steps);
                let Run { outcome, notices, .. } = inner;
                self.outcome = outcome;
                self.notices = notices;
                ended?;
            }
        }
        Ok(())
    }

    pub(super) fn print(&mut self, text: &str) {
        (self.out)(text);
    }

    fn permutation(&mut self, steps: &'a [PermutationStep]) -> Result<(), Stop> {
        let spec = self.spec;
        let names: Vec<&str> = steps.iter().map(|s| spec.step(s.id).name.as_str()).collect();
        self.print(&format!("\nstarting permutation: {}\n", names.join(" ")));
        for setup in &spec.setups {
            if !self.block(0, setup, "setup")? {
                return Err(Stop::Exit);
            }
        }
        for (i, session) in spec.sessions.iter().enumerate() {
            let place = format!("setup of session {}", session.name);
            if let Some(setup) = &session.setup
                && !self.block(i + 1, setup, &place)?
            {
                return Err(Stop::Exit);
            }
        }
        let mut waiting: Vec<&PermutationStep> = Vec::new();
        for step in steps {
            self.wait_for_session(step.id.session, &mut waiting)?;
            self.start(step)?;
            let must_wait = self.try_complete(step, true, false)?;
            self.try_complete_all(&mut waiting, true)?;
            if must_wait {
                waiting.push(step);
            }
        }
        self.try_complete_all(&mut waiting, false)?;
        if !waiting.is_empty() {
            self.print("failed to complete permutation due to mutually-blocking steps\n");
            return Err(Stop::Exit);
        }
        for (i, session) in spec.sessions.iter().enumerate() {
            let place = format!("teardown of session {}", session.name);
            if let Some(teardown) = &session.teardown {
                self.block(i + 1, teardown, &place)?;
            }
        }
        if let Some(teardown) = &spec.teardown {
            self.block(0, teardown, "teardown")?;
        }
        Ok(())
    }

    /// A session whose last step still runs must finish it before the next.
    fn wait_for_session(
        &mut self,
        session: usize,
        waiting: &mut Vec<&'a PermutationStep>,
    ) -> Result<(), Stop> {
        let since = Instant::now();
        while let Some(step) = self.active[session].as_ref().map(|a| a.step) {
            if !self.try_complete(step, false, true)? {
                waiting.retain(|w| !std::ptr::eq(*w, step));
            }
            self.try_complete_all(waiting, true)?;
            let waited = since.elapsed();
            if let Some(active) = &self.active[session]
                && waited > 2 * self.options.step_limit
            {
                let name = &self.spec.step(active.step.id).name;
                let mut text =
                    format!("step {name} timed out after {} seconds\n", waited.as_secs());
                text.push_str("active steps are:");
                for active in self.active.iter().flatten() {
                    text.push_str(&format!(" {}", self.spec.step(active.step.id).name));
                }
                text.push('\n');
                self.print(&text);
                return Err(Stop::Exit);
            }
            self.check_interrupt()?;
            if self.active[session].is_some() {
                // The step has its answer and an annotation delays its report:
                // there is no data to wait for.
                std::thread::sleep(ASK_EVERY);
            }
        }
        Ok(())
    }

    fn start(&mut self, step: &'a PermutationStep) -> Result<(), Stop> {
        let script = self.spec.step(step.id);
        if let Err(why) = self.links.send(step.id.session + 1, &script.sql) {
            let text = format!("failed to send query for step {}: {why}\n", script.name);
            self.print(&text);
            return Err(Stop::Exit);
        }
        let needed = |blocker: &Blocker| match blocker {
            Blocker::Notices(other, count) => count.saturating_add(self.notices[other.session]),
            Blocker::Once | Blocker::Step(_) => 0,
        };
        let needed_notices = step.blockers.iter().map(needed).collect();
        self.active[step.id.session] = Some(ActiveStep { step, needed_notices });
        Ok(())
    }

    /// Polls all blocked steps, repeatedly while that allows a report that an
    /// annotation has delayed.
    fn try_complete_all(
        &mut self,
        waiting: &mut Vec<&'a PermutationStep>,
        may_block: bool,
    ) -> Result<(), Stop> {
        loop {
            self.new_notice = false;
            let before = waiting.len();
            let mut annotated = false;
            let mut at = 0;
            while at < waiting.len() {
                let step = waiting[at];
                if self.try_complete(step, may_block, true)? {
                    annotated |= !step.blockers.is_empty();
                    at += 1;
                } else {
                    waiting.remove(at);
                }
            }
            if !(annotated && (waiting.len() < before || self.new_notice)) {
                return Ok(());
            }
        }
    }

    /// Waits until a step completes or, where `may_block`, until the server
    /// reports it as blocked. True when it is still running. `again` means that
    /// it has been reported as waiting already.
    fn try_complete(
        &mut self,
        step: &'a PermutationStep,
        may_block: bool,
        again: bool,
    ) -> Result<bool, Stop> {
        let index = step.id.session + 1;
        if !again && step.blockers.contains(&Blocker::Once) {
            self.report_waiting(step);
            return Ok(true);
        }
        if self.wait_or_block(step, may_block)? || self.is_held_back(step) {
            if !again {
                self.report_waiting(step);
            }
            return Ok(true);
        }
        let script = self.spec.step(step.id);
        self.print(&match again {
            true => format!("step {}: <... completed>\n", script.name),
            false => format!("step {}: {}\n", script.name, script.sql),
        });
        while let Some(answer) = self.links.next_answer(index) {
            self.show_notices(index);
            self.show_answer(&answer, step);
        }
        self.show_notices(index);
        self.show_notifications(step.id.session);
        self.active[step.id.session] = None;
        Ok(false)
    }

    /// True when the step is blocked by a lock.
    fn wait_or_block(&mut self, step: &PermutationStep, may_block: bool) -> Result<bool, Stop> {
        let index = step.id.session + 1;
        let name = &self.spec.step(step.id).name;
        let since = Instant::now();
        let mut cancelled = false;
        while self.is_busy(index) {
            self.check_interrupt()?;
            match self.links.wait(index, ASK_EVERY) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(why) => {
                    self.print(&format!("PQconsumeInput failed: {why}\n"));
                    return Err(Stop::Exit);
                }
            }
            if !may_block {
                self.links.give_up_retrying(index);
            } else if self.links.is_blocked(index)? {
                // Data may have arrived while the server was polled.
                if let Err(why) = self.links.wait(index, Duration::ZERO) {
                    self.print(&format!("PQconsumeInput failed: {why}\n"));
                    return Err(Stop::Exit);
                }
                if !self.is_busy(index) {
                    break;
                }
                return Ok(true);
            }
            let waited = since.elapsed();
            let limit = match !may_block && waited > self.options.lock_limit {
                true if self.links.waits_in_vain(index)? => self.options.lock_limit,
                _ => self.options.step_limit,
            };
            if waited > limit && !cancelled {
                self.links.cancel(index)?;
                let seconds = waited.as_secs();
                let text =
                    format!("isolationtester: canceling step {name} after {seconds} seconds\n");
                self.print(&text);
                cancelled = true;
            }
            if waited > 2 * self.options.step_limit {
                let seconds = waited.as_secs();
                self.print(&format!("step {name} timed out after {seconds} seconds\n"));
                return Err(Stop::Exit);
            }
        }
        Ok(false)
    }

    fn is_busy(&mut self, index: usize) -> bool {
        let busy = self.links.is_busy(index);
        self.show_notices(index);
        busy
    }

    fn is_held_back(&self, step: &PermutationStep) -> bool {
        let needed = self.active[step.id.session].as_ref().map(|a| a.needed_notices.as_slice());
        step.blockers.iter().zip(needed.unwrap_or_default()).any(
            |(blocker, needed)| match blocker {
                Blocker::Once => false,
                Blocker::Step(other) => {
                    self.active[other.session].as_ref().is_some_and(|a| a.step.id == *other)
                }
                Blocker::Notices(other, _) => self.notices[other.session] < *needed,
            },
        )
    }

    pub(super) fn check_interrupt(&self) -> Result<(), Stop> {
        match (self.options.interrupted)() {
            true => Err(Stop::Error(SpecError::Interrupted)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;

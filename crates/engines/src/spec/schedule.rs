//! One permutation after another: sends each step, finds out whether it waits,
//! and reports steps as they complete.
//!
//! The order of the output is the point. A step is reported when it completes
//! or first waits; after each step everything that waits is looked at in the
//! order in which it began to; annotations hold a step's report back until
//! what they name has happened.

use super::link::Links;
use super::{Options, Played, SpecError};
use isolde_core::spec::{Blocker, PermutationStep, Spec};
use std::time::{Duration, Instant};

/// How often the server is asked whether a step waits for a lock.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(10);

/// Why a run ends before its time.
pub(super) enum Stop {
    /// The original would exit here; its last words are in the output.
    Exit,
    Error(SpecError),
}

impl<E: Into<SpecError>> From<E> for Stop {
    fn from(error: E) -> Stop {
        Stop::Error(error.into())
    }
}

/// A step under way: its place in the permutation, and how many notices of
/// their sessions its annotations wait for.
struct Active<'a> {
    step: &'a PermutationStep,
    needed_notices: Vec<u64>,
}

pub(super) struct Run<'a> {
    pub(super) links: &'a mut dyn Links,
    pub(super) spec: &'a Spec,
    pub(super) options: &'a Options,
    out: &'a mut dyn FnMut(&str),
    pub(super) played: Played,
    /// By session.
    active: Vec<Option<Active<'a>>>,
    pub(super) notices: Vec<u64>,
    pub(super) new_notice: bool,
}

pub fn run(
    links: &mut dyn Links,
    spec: &Spec,
    options: &Options,
    out: &mut dyn FnMut(&str),
) -> Result<Played, SpecError> {
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
        played: Played::default(),
        active: (0..sessions).map(|_| None).collect(),
        notices: vec![0; sessions],
        new_notice: false,
    };
    match run.all_permutations() {
        Ok(()) => run.played.finished = true,
        Err(Stop::Exit) => {}
        Err(Stop::Error(error)) => return Err(error),
    }
    Ok(run.played)
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
                // The steps live as long as their permutation only.
                let mut inner = Run {
                    links: &mut *self.links,
                    spec,
                    options: self.options,
                    out: &mut *self.out,
                    played: std::mem::take(&mut self.played),
                    active: (0..spec.sessions.len()).map(|_| None).collect(),
                    notices: std::mem::take(&mut self.notices),
                    new_notice: false,
                };
                let outcome = inner.permutation(&steps);
                let Run { played, notices, .. } = inner;
                self.played = played;
                self.notices = notices;
                outcome?;
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

    /// A session whose last step still runs must end it before the next.
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
                // It has its answer and an annotation holds its report back:
                // there is nothing to read that could be waited for.
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
        self.active[step.id.session] = Some(Active { step, needed_notices });
        Ok(())
    }

    /// Looks at everything that waits, again and again while that sets free
    /// something that an annotation holds back.
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

    /// Waits until a step completes or, where it may, until the server says
    /// that it waits. True when it is still under way. `again` tells that it
    /// has been reported as waiting already.
    fn try_complete(
        &mut self,
        step: &'a PermutationStep,
        may_block: bool,
        again: bool,
    ) -> Result<bool, Stop> {
        let who = step.id.session + 1;
        if !again && step.blockers.contains(&Blocker::Once) {
            self.say_waiting(step);
            return Ok(true);
        }
        if self.wait_or_block(step, may_block)? || self.is_held_back(step) {
            if !again {
                self.say_waiting(step);
            }
            return Ok(true);
        }
        let script = self.spec.step(step.id);
        self.print(&match again {
            true => format!("step {}: <... completed>\n", script.name),
            false => format!("step {}: {}\n", script.name, script.sql),
        });
        while let Some(answer) = self.links.next_answer(who) {
            self.show_notices(who);
            self.show_answer(&answer, step);
        }
        self.show_notices(who);
        self.show_notifications(step.id.session);
        self.active[step.id.session] = None;
        Ok(false)
    }

    /// True when the step waits for a lock.
    fn wait_or_block(&mut self, step: &PermutationStep, may_block: bool) -> Result<bool, Stop> {
        let who = step.id.session + 1;
        let name = &self.spec.step(step.id).name;
        let since = Instant::now();
        let mut cancelled = false;
        while self.is_busy(who) {
            self.check_interrupt()?;
            match self.links.wait(who, ASK_EVERY) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(why) => {
                    self.print(&format!("PQconsumeInput failed: {why}\n"));
                    return Err(Stop::Exit);
                }
            }
            if !may_block {
                self.links.give_up_retrying(who);
            } else if self.links.is_blocked(who)? {
                // Something may have arrived while the server was asked.
                if let Err(why) = self.links.wait(who, Duration::ZERO) {
                    self.print(&format!("PQconsumeInput failed: {why}\n"));
                    return Err(Stop::Exit);
                }
                if !self.is_busy(who) {
                    break;
                }
                return Ok(true);
            }
            let waited = since.elapsed();
            let limit = match !may_block && waited > self.options.lock_limit {
                true if self.links.waits_in_vain(who)? => self.options.lock_limit,
                _ => self.options.step_limit,
            };
            if waited > limit && !cancelled {
                self.links.cancel(who)?;
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

    fn is_busy(&mut self, who: usize) -> bool {
        let busy = self.links.is_busy(who);
        self.show_notices(who);
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

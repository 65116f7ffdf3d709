//! A finding made smaller while the same violation stays.
//!
//! The search is the core's ([`isolde_core::reduce`]); here each of its questions is tried
//! on an engine. Whoever calls gives one executor or several: what the search announces is
//! tried at the same time on the others, and remembered, so that more of them change the
//! time and not the result. Verdicts are remembered by the text of the case.

use crate::cause::{self, Cause, Label};
use crate::check::{Checked, Violation, check_any, check_unbroken};
use crate::confirm::{Rate, same_violation};
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::case;
use isolde_core::generate::Plan;
use isolde_core::history::TargetInfo;
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::Oracle;
use isolde_core::reduce::{Question, Rough, Spent, Strategy, Subject, Trial, reduce as search};
use isolde_core::{Case, Level};
use isolde_engines::runner::RunError;
use std::collections::BTreeMap;

/// What may not change: the violation, and whether the engine's documentation
/// explains it.
pub struct Goal<'a> {
    pub violations: &'a [Violation],
    pub label: Label,
    pub oracles: &'a [Oracle],
    /// How often the whole shows it. What shows only sometimes is tried as often as it
    /// takes to be sure.
    pub rate: Rate,
    pub strategy: Strategy,
    /// Asked before every trial; true ends the search with what there is.
    pub stop: &'a dyn Fn() -> bool,
    /// Trials at most.
    pub trials: u32,
}

/// A subject that an engine can run.
pub trait Staged: Subject + Sync {
    fn stage(&self, on: &TargetInfo, default: Level) -> (Fixture, Case);
}

impl Staged for Plan {
    fn stage(&self, _: &TargetInfo, _: Level) -> (Fixture, Case) {
        (Fixture::of(self), self.to_case())
    }
}

impl Staged for Rough {
    fn stage(&self, on: &TargetInfo, default: Level) -> (Fixture, Case) {
        let case = self.case.clone().read_as(on.family());
        (Fixture::of_case(&case, on, default), case)
    }
}

pub struct Reduced<S> {
    pub of: S,
    pub checked: Checked,
    pub cause: Cause,
    pub spent: Spent,
    /// Cases that were tried on an engine.
    pub trials: u32,
    /// Questions that were answered from memory.
    pub remembered: u32,
    /// It was told to stop before it had tried everything.
    pub cut: bool,
}

/// A search under way, for who watches: the smallest so far, and what was tried.
pub struct Seen<'s, S> {
    pub best: &'s S,
    /// The best has just become smaller.
    pub smaller: bool,
    pub trials: u32,
}

/// None when the case does not fail again as it is, or there was no time to
/// see it.
pub fn reduce<S: Staged>(
    executors: &mut [Executor],
    subject: &S,
    goal: &Goal<'_>,
    watch: &mut dyn FnMut(Seen<'_, S>) -> Result<(), HuntError>,
) -> Result<Option<Reduced<S>>, HuntError> {
    let ahead = executors.len() - 1;
    let mut lab = Lab::new(executors, goal);
    let mut best = subject.clone();
    let mut exhausted = false;
    let inquiry = Inquiry::new(|desk| search(subject, goal.strategy, ahead, desk));
    let smallest = inquiry.answered_by(|question: Question<S>| {
        exhausted = lab.trials >= goal.trials;
        if exhausted || (goal.stop)() {
            return Ok(Trial::OutOfTime);
        }
        let fails = match lab.fails(&question) {
            Ok(fails) => fails,
            // What has been found is not lost with the trial.
            Err(HuntError::Run(RunError::Interrupted)) => return Ok(Trial::OutOfTime),
            Err(error) => return Err(error),
        };
        if fails {
            best = question.of;
        }
        watch(Seen { best: &best, smaller: fails, trials: lab.trials })?;
        Ok(if fails { Trial::Fails } else { Trial::Passes })
    })?;
    let Some(smallest) = smallest else { return Ok(None) };
    let (trials, remembered) = (lab.trials, lab.remembered);
    let cut = smallest.cut && !exhausted;
    // Where there is no time to ask all oracles, what its trial saw has to do.
    let shown = if cut { lab.remembered(&smallest.of) } else { lab.shown(&smallest.of)? };
    let Some((checked, cause)) = shown else { return Ok(None) };
    let (of, spent) = (smallest.of, smallest.spent);
    Ok(Some(Reduced { of, checked, cause, spent, trials, remembered, cut }))
}

/// Where trials are made.
struct Lab<'l> {
    executors: &'l mut [Executor],
    goal: &'l Goal<'l>,
    test: Test<'l>,
    /// By the text of the case, what it showed if it failed.
    known: BTreeMap<String, Option<Failure>>,
    trials: u32,
    remembered: u32,
}

/// What was seen where a case failed.
type Failure = Box<(Checked, Cause)>;

/// What a trial looks at.
#[derive(Clone, Copy)]
struct Test<'l> {
    violations: &'l [Violation],
    label: Label,
    /// Those that a trial needs.
    oracles: &'l [Oracle],
    /// A broken rule is a bug: nobody needs to be asked for its cause.
    labelled: bool,
    repeats: u32,
}

impl<'l> Lab<'l> {
    fn new(executors: &'l mut [Executor], goal: &'l Goal<'l>) -> Lab<'l> {
        let rule = |v: &Violation| v.oracle == Oracle::Semantics;
        let broken_rule = goal.violations.iter().any(rule);
        let test = Test {
            violations: goal.violations,
            label: goal.label,
            oracles: if broken_rule && !crashes(goal.violations) {
                &[Oracle::Semantics, Oracle::Crash]
            } else {
                goal.oracles
            },
            labelled: broken_rule && goal.label == Label::Bug,
            repeats: if goal.rate.seen == goal.rate.runs {
                1
            } else {
                goal.rate.trials_to_be_sure()
            },
        };
        Lab { executors, goal, test, known: BTreeMap::new(), trials: 0, remembered: 0 }
    }

    fn staged<S: Staged>(&self, subject: &S) -> (String, Fixture, Case) {
        let engine = &self.executors[0].runner.engine;
        let (fixture, case) = subject.stage(engine.info(), engine.profile().default_level);
        (case::format(&case), fixture, case)
    }

    /// Tries what is asked, and on the other executors what comes next.
    fn fails<S: Staged>(&mut self, question: &Question<S>) -> Result<bool, HuntError> {
        let (text, fixture, case) = self.staged(&question.of);
        if let Some(failure) = self.known.get(&text) {
            self.remembered += 1;
            return Ok(failure.is_some());
        }
        let mut jobs = vec![(text.clone(), fixture, case)];
        for next in &question.ahead {
            let (text, fixture, case) = self.staged(next);
            let open = !self.known.contains_key(&text) && jobs.iter().all(|job| job.0 != text);
            if open && jobs.len() < self.executors.len() {
                jobs.push((text, fixture, case));
            }
        }
        let test = self.test;
        let mut verdicts: Vec<Option<Result<Option<Failure>, HuntError>>> = Vec::new();
        if jobs.len() == 1 {
            let (_, fixture, case) = &jobs[0];
            verdicts.push(Some(test.fails(&mut self.executors[0], fixture, case)));
        } else {
            std::thread::scope(|scope| {
                let each = self.executors.iter_mut().zip(&jobs);
                let threads: Vec<_> = each
                    .map(|(executor, (_, fixture, case))| {
                        scope.spawn(move || test.fails(executor, fixture, case))
                    })
                    .collect();
                verdicts.extend(threads.into_iter().map(|thread| thread.join().ok()));
            });
        }
        let mut first = None;
        for (place, ((text, ..), verdict)) in jobs.into_iter().zip(verdicts).enumerate() {
            self.trials += 1;
            match verdict {
                Some(Ok(failure)) => {
                    if place == 0 {
                        first = Some(failure.is_some());
                    }
                    self.known.insert(text, failure);
                }
                Some(Err(error)) if place == 0 => return Err(error),
                // What nobody has asked for yet is asked for again, should it come to that.
                Some(Err(_)) | None => {}
            }
        }
        Ok(first.expect("the first job has a verdict or an error"))
    }

    /// What a case that failed showed in its trial.
    fn remembered<S: Staged>(&self, subject: &S) -> Option<(Checked, Cause)> {
        let failure = self.known.get(&self.staged(subject).0)?.as_ref()?;
        Some((**failure).clone())
    }

    /// What the smallest case shows to all oracles.
    fn shown<S: Staged>(&mut self, subject: &S) -> Result<Option<(Checked, Cause)>, HuntError> {
        let (_, fixture, case) = self.staged(subject);
        let test = Test { oracles: self.goal.oracles, labelled: false, ..self.test };
        for _ in 0..test.repeats.max(2) {
            let shown = match test.tried(&mut self.executors[0], &fixture, &case) {
                Err(HuntError::Run(RunError::Interrupted)) => {
                    return Ok(self.remembered(subject));
                }
                shown => shown?,
            };
            if shown.is_some() {
                return Ok(shown);
            }
        }
        Ok(None)
    }
}

fn crashes(violations: &[Violation]) -> bool {
    violations.iter().any(|v| v.oracle == Oracle::Crash)
}

impl Test<'_> {
    fn fails(
        self,
        executor: &mut Executor,
        fixture: &Fixture,
        case: &Case,
    ) -> Result<Option<Failure>, HuntError> {
        if case.steps.is_empty() {
            return Ok(None);
        }
        for _ in 0..self.repeats {
            match self.tried(executor, fixture, case) {
                Ok(Some(failure)) => return Ok(Some(Box::new(failure))),
                Ok(None) => {}
                // A schema that lacks what something needs is no smaller case.
                Err(HuntError::Fixture { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn tried(
        self,
        executor: &mut Executor,
        fixture: &Fixture,
        case: &Case,
    ) -> Result<Option<(Checked, Cause)>, HuntError> {
        let checked = match crashes(self.violations) {
            true => check_any(executor, fixture, case, self.oracles)?,
            false => check_unbroken(executor, fixture, case, self.oracles, "in a smaller case")?,
        };
        if !same_violation(self.violations, &checked.violations) {
            return Ok(None);
        }
        if self.labelled {
            return Ok(Some((checked, Cause::new(self.label, Vec::new()))));
        }
        let cause = cause::find(executor, (fixture, case), &checked)?;
        Ok((cause.label == self.label).then_some((checked, cause)))
    }
}

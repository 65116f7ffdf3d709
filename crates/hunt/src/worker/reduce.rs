//! Reduces a finding while the same violation stays.
//!
//! The search is the generator's ([`isolde_generator::reduce`]); here each of its trials runs on
//! an engine. With several executors, trials that the search announces run at the same time and
//! are cached, so that more executors change the time and not the result. Verdicts are cached by
//! the text of the case.

use crate::error::HuntError;
use crate::execution::cause;
use crate::execution::check::{check_any, check_unbroken};
use crate::execution::confirm::same_violation;
use crate::execution::executor::Executor;
use crate::run::{CheckResult, Fixture, Rate, Violation};
use isolde_engines::runner::RunError;
use isolde_generator::Plan;
use isolde_generator::reduce::{
    Reducible, Strategy, Trial, TrialCounts, TrialRequest, UnparsedCase, reduce as search,
};
use isolde_model::Verdict;
use isolde_model::case;
use isolde_model::history::TargetInfo;
use isolde_model::inquiry::Inquiry;
use isolde_model::{Case, Level};
use isolde_oracles::Oracle;
use isolde_reference::cause::Cause;
use std::collections::BTreeMap;
use std::panic::resume_unwind;

/// What may not change: the violation, and whether the engine's documentation
/// explains it.
pub struct Goal<'a> {
    pub violations: &'a [Violation],
    pub label: Verdict,
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
pub trait Runnable: Reducible + Sync {
    fn prepare(&self, on: &TargetInfo, default: Level) -> (Fixture, Case);
}

impl Runnable for Plan {
    fn prepare(&self, _: &TargetInfo, _: Level) -> (Fixture, Case) {
        (Fixture::of(self), self.to_case())
    }
}

impl Runnable for UnparsedCase {
    fn prepare(&self, on: &TargetInfo, default: Level) -> (Fixture, Case) {
        let case = self.case.clone().read_as(on.family());
        (Fixture::of_case(&case, on, default), case)
    }
}

pub struct ReducedCase<S> {
    pub of: S,
    pub checked: CheckResult,
    pub cause: Cause,
    pub spent: TrialCounts,
    /// Cases that were tried on an engine.
    pub trials: u32,
    /// Questions that were answered from memory.
    pub remembered: u32,
    /// The search ended before it had tried everything, for lack of time or of trials: a smaller
    /// case may exist.
    pub cut: bool,
}

/// The progress of a search: the smallest case so far, and the number of trials.
pub struct ReductionProgress<'s, S> {
    pub best: &'s S,
    /// The best has just become smaller.
    pub smaller: bool,
    pub trials: u32,
}

/// None when the case does not fail again as it is, or there was no time to
/// see it.
pub fn reduce<S: Runnable>(
    executors: &mut [Executor],
    subject: &S,
    goal: &Goal<'_>,
    watch: &mut dyn FnMut(ReductionProgress<'_, S>) -> Result<(), HuntError>,
) -> Result<Option<ReducedCase<S>>, HuntError> {
    let ahead = executors.len() - 1;
    let mut bench = TrialBench::new(executors, goal);
    let mut best = subject.clone();
    let mut exhausted = false;
    let inquiry = Inquiry::new(|channel| search(subject, goal.strategy, ahead, channel));
    let smallest = inquiry.answered_by(|question: TrialRequest<S>| {
        exhausted = bench.trials >= goal.trials;
        if exhausted || (goal.stop)() {
            return Ok(Trial::OutOfTime);
        }
        let fails = match bench.fails(&question) {
            Ok(fails) => fails,
            // What has been found is not lost with the trial.
            Err(HuntError::Run(RunError::Interrupted)) => return Ok(Trial::OutOfTime),
            Err(error) => return Err(error),
        };
        if fails {
            best = question.subject;
        }
        watch(ReductionProgress { best: &best, smaller: fails, trials: bench.trials })?;
        Ok(if fails { Trial::Fails } else { Trial::Passes })
    })?;
    let Some(smallest) = smallest else { return Ok(None) };
    let (trials, remembered) = (bench.trials, bench.remembered);
    // Without time to ask all oracles, what the trial of the smallest case has shown must do. A
    // search that has used up its trials still has that time.
    let out_of_time = smallest.cut && !exhausted;
    let cut = smallest.cut;
    let shown = if out_of_time {
        bench.remembered(&smallest.subject)
    } else {
        bench.shown(&smallest.subject)?
    };
    let Some((checked, cause)) = shown else { return Ok(None) };
    let (of, spent) = (smallest.subject, smallest.spent);
    Ok(Some(ReducedCase { of, checked, cause, spent, trials, remembered, cut }))
}

/// Where trials are made.
struct TrialBench<'l> {
    executors: &'l mut [Executor],
    goal: &'l Goal<'l>,
    criteria: Criteria<'l>,
    /// By the text of the case, what it showed if it failed.
    known: BTreeMap<String, Option<Failure>>,
    trials: u32,
    remembered: u32,
}

/// What was seen where a case failed.
type Failure = Box<(CheckResult, Cause)>;

/// What a trial looks at.
#[derive(Clone, Copy)]
struct Criteria<'l> {
    violations: &'l [Violation],
    label: Verdict,
    /// Those that a trial needs.
    oracles: &'l [Oracle],
    /// A broken rule is a bug, so its cause is known.
    labelled: bool,
    repeats: u32,
}

impl<'l> TrialBench<'l> {
    fn new(executors: &'l mut [Executor], goal: &'l Goal<'l>) -> TrialBench<'l> {
        let rule = |v: &Violation| v.oracle == Oracle::Semantics;
        let broken_rule = goal.violations.iter().any(rule);
        let criteria = Criteria {
            violations: goal.violations,
            label: goal.label,
            oracles: if broken_rule && !crashes(goal.violations) {
                &[Oracle::Semantics, Oracle::Crash]
            } else {
                goal.oracles
            },
            labelled: broken_rule && goal.label == Verdict::Bug,
            repeats: if goal.rate.seen == goal.rate.runs {
                1
            } else {
                goal.rate.trials_to_be_sure()
            },
        };
        TrialBench { executors, goal, criteria, known: BTreeMap::new(), trials: 0, remembered: 0 }
    }

    fn staged<S: Runnable>(&self, subject: &S) -> (String, Fixture, Case) {
        let engine = &self.executors[0].runner.engine;
        let (fixture, case) = subject.prepare(engine.info(), engine.profile().default_level);
        (case::format(&case), fixture, case)
    }

    /// Tries what is asked, and on the other executors what comes next.
    fn fails<S: Runnable>(&mut self, question: &TrialRequest<S>) -> Result<bool, HuntError> {
        let (text, fixture, case) = self.staged(&question.subject);
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
        let criteria = self.criteria;
        let verdicts = if let [(_, fixture, case)] = &jobs[..] {
            vec![criteria.fails(&mut self.executors[0], fixture, case)]
        } else {
            let each = self.executors.iter_mut().zip(&jobs);
            in_parallel(each.map(|(executor, (_, fixture, case))| {
                move || criteria.fails(executor, fixture, case)
            }))
        };
        let mut first = None;
        for (place, ((text, ..), verdict)) in jobs.into_iter().zip(verdicts).enumerate() {
            self.trials += 1;
            match verdict {
                Ok(failure) => {
                    if place == 0 {
                        first = Some(failure.is_some());
                    }
                    self.known.insert(text, failure);
                }
                Err(error) if place == 0 => return Err(error),
                // The search has not asked for this one yet. If it does, it is tried again.
                Err(_) => {}
            }
        }
        Ok(first.expect("the first job has a verdict or an error"))
    }

    /// What a case that failed showed in its trial.
    fn remembered<S: Runnable>(&self, subject: &S) -> Option<(CheckResult, Cause)> {
        let failure = self.known.get(&self.staged(subject).0)?.as_ref()?;
        Some((**failure).clone())
    }

    /// What the smallest case shows to all oracles.
    fn shown<S: Runnable>(
        &mut self,
        subject: &S,
    ) -> Result<Option<(CheckResult, Cause)>, HuntError> {
        let (_, fixture, case) = self.staged(subject);
        let criteria = Criteria { oracles: self.goal.oracles, labelled: false, ..self.criteria };
        for _ in 0..criteria.repeats.max(2) {
            let shown = match criteria.tried(&mut self.executors[0], &fixture, &case) {
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

/// Runs each job in a thread of its own; the results are in the order of the jobs. A job that
/// panics makes the caller panic: a defect of ours must not look like a case that passes.
fn in_parallel<T: Send, J: FnOnce() -> T + Send>(jobs: impl Iterator<Item = J>) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, T>| thread.join();
        let results: Vec<_> = threads.into_iter().map(join).collect();
        results.into_iter().map(|r| r.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn crashes(violations: &[Violation]) -> bool {
    violations.iter().any(|v| v.oracle == Oracle::Crash)
}

impl Criteria<'_> {
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
    ) -> Result<Option<(CheckResult, Cause)>, HuntError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::check::check;
    use isolde_engines::fault::{self, Planted};
    use isolde_engines::runner::Runner;
    use isolde_engines::sqlite::{Mode, Sqlite};
    use isolde_oracles::DEFAULT_ORACLES;

    /// The planted fault answers s1.2 as if the duplicate key had been accepted.
    const SWALLOWED: &str = "case: t\n\nsetup:\n  create table t (a int primary key);\n\n\
        s1> begin;\ns2> insert into t values (1);\ns1> insert into t values (1);\n\
        s1> select * from t;\ns1> commit;\ns2> select count(*) from t;\n\
        s2> insert into t values (7);\n";

    fn reduce_with(trials: u32) -> ReducedCase<UnparsedCase> {
        let engine = Box::new(Sqlite::private(Mode::RollbackJournal, "sqlite").unwrap());
        let fault = fault::find("error-swallowed").unwrap();
        let engine = fault::plant(engine, Planted { fault, rate: 1.0, seed: 1 });
        let mut executor = Executor::new(Runner::new(engine));
        let rough = UnparsedCase::of(&case::parse(SWALLOWED).unwrap());
        let engine = &executor.runner.engine;
        let (fixture, case) = rough.prepare(engine.info(), engine.profile().default_level);
        let checked = check(&mut executor, &fixture, &case, DEFAULT_ORACLES).unwrap();
        assert!(checked.violated());
        let goal = Goal {
            violations: &checked.violations,
            label: cause::find(&mut executor, (&fixture, &case), &checked).unwrap().label,
            oracles: DEFAULT_ORACLES,
            rate: Rate { seen: 5, runs: 5 },
            strategy: Strategy::Pisco,
            stop: &|| false,
            trials,
        };
        let executors = std::slice::from_mut(&mut executor);
        reduce(executors, &rough, &goal, &mut |_| Ok(())).unwrap().expect("it fails again")
    }

    #[test]
    fn a_reduction_without_trials_left_is_reported_as_cut_short() {
        let whole = reduce_with(u32::MAX);
        assert!(!whole.cut && whole.trials > 2, "{} trials", whole.trials);
        assert_eq!(whole.of.case.steps.len(), 3, "{}", case::format(&whole.of.case));
        let short = reduce_with(2);
        assert!(short.cut, "it has not tried everything");
        assert!(short.of.case.steps.len() > 3 && short.trials == 2);
    }

    #[test]
    fn a_panic_in_a_trial_thread_reaches_the_caller() {
        let jobs = |panics: bool| {
            (0..3).map(move |n| move || if panics && n == 1 { panic!("job {n}") } else { n })
        };
        assert_eq!(in_parallel(jobs(false)), [0, 1, 2]);
        let caught = std::panic::catch_unwind(|| in_parallel(jobs(true))).unwrap_err();
        assert_eq!(caught.downcast_ref::<String>().map(String::as_str), Some("job 1"));
    }
}

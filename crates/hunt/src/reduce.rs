//! A finding made smaller: transactions, statements, tables, rows, columns and
//! parts of statements are dropped while the same violation stays.
//!
//! The search is the core's ([`isolde_core::generate::reduce`]); here each of
//! its plans is tried on the engine.

use crate::cause::{self, Cause, Label};
use crate::check::{Checked, Violation, check_any, check_unbroken};
use crate::confirm::same_violation;
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::generate::{Plan, Trial, reduce as search};
use isolde_core::inquiry::Inquiry;
use isolde_core::oracle::Oracle;
use isolde_engines::runner::RunError;

/// What may not change: the violation, and whether the engine's documentation
/// explains it.
pub struct Goal<'a> {
    pub violations: &'a [Violation],
    pub label: Label,
    pub oracles: &'a [Oracle],
    /// Asked before every trial; true ends the search with what there is.
    pub stop: &'a dyn Fn() -> bool,
    /// Trials at most.
    pub trials: u32,
}

pub struct Reduced {
    pub plan: Plan,
    pub checked: Checked,
    pub cause: Cause,
    pub trials: u32,
    /// It was told to stop before it had tried everything.
    pub cut: bool,
}

/// None when the case does not fail again as it is, or there was no time to
/// see it.
pub fn reduce(
    executor: &mut Executor,
    plan: &Plan,
    goal: &Goal<'_>,
) -> Result<Option<Reduced>, HuntError> {
    let mut last_failure = None;
    let inquiry = Inquiry::new(|desk| search(plan, goal.trials, desk));
    let smallest = inquiry.answered_by(|plan| {
        if (goal.stop)() {
            return Ok(Trial::OutOfTime);
        }
        match goal.tried(executor, &plan) {
            Ok(Some(failure)) => {
                last_failure = Some(failure);
                Ok(Trial::Fails)
            }
            // A schema that lacks what something needs is no smaller case.
            Ok(None) | Err(HuntError::Fixture { .. }) => Ok(Trial::Passes),
            // What has been found is not lost with the trial.
            Err(HuntError::Run(RunError::Interrupted)) => Ok(Trial::OutOfTime),
            Err(error) => Err(error),
        }
    })?;
    // The search goes on from the last plan that failed, so that is the one
    // it ends with.
    Ok(smallest.zip(last_failure).map(|(smallest, (checked, cause))| Reduced {
        plan: smallest.plan,
        checked,
        cause,
        trials: smallest.trials,
        cut: smallest.cut,
    }))
}

impl Goal<'_> {
    fn tried(
        &self,
        executor: &mut Executor,
        plan: &Plan,
    ) -> Result<Option<(Checked, Cause)>, HuntError> {
        let (fixture, case) = (Fixture::of(plan), plan.to_case());
        let checked = match self.violations.iter().any(|v| v.oracle == Oracle::Crash) {
            true => check_any(executor, &fixture, &case, self.oracles)?,
            false => check_unbroken(executor, &fixture, &case, self.oracles, "in a smaller case")?,
        };
        if !same_violation(self.violations, &checked.violations) {
            return Ok(None);
        }
        let cause = cause::find(executor, (&fixture, &case), &checked)?;
        Ok((cause.label == self.label).then_some((checked, cause)))
    }
}

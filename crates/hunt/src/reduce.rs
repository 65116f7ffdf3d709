//! A first reduction: transactions, statements, tables, rows, columns and
//! parts of statements are dropped while the same violation stays.
//!
//! Greedy and bounded; it begins by proving that the case fails as it is. The
//! full reducer will replace the search, not the question "is it the same?".

use crate::cause::{self, Cause, Label};
use crate::check::{Checked, Violation, check_any, check_unbroken};
use crate::confirm::{Rate, same_violation};
use crate::error::HuntError;
use crate::executor::{Executor, Fixture};
use isolde_core::generate::{Candidates, Pass, Plan};
use isolde_core::oracle::Oracle;
use isolde_engines::runner::RunError;

/// What may not change: the violation, and whether the engine's documentation
/// explains it.
pub struct Goal<'a> {
    pub violations: &'a [Violation],
    pub label: Label,
    pub rate: Rate,
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
    let mut search = Search { executor, goal, trials: 0, cut: false };
    let Some((checked, cause)) = search.fails(plan)? else { return Ok(None) };
    let mut best = Reduced { plan: plan.clone(), checked, cause, trials: 0, cut: false };
    // Large pieces first: each pass is over what the pass before has left.
    loop {
        let before = size(&best.plan);
        for pass in Pass::ALL {
            search.descend(&mut best, pass)?;
        }
        if size(&best.plan) == before || search.exhausted() {
            break;
        }
    }
    best.trials = search.trials;
    best.cut = search.cut;
    Ok(Some(best))
}

struct Search<'a, 'b> {
    executor: &'a mut Executor,
    goal: &'a Goal<'b>,
    trials: u32,
    cut: bool,
}

impl Search<'_, '_> {
    fn exhausted(&mut self) -> bool {
        self.cut = self.cut || (self.goal.stop)();
        self.cut || self.trials >= self.goal.trials
    }

    /// Takes smaller plans as long as one of them still fails; each is built
    /// when it is to be tried.
    fn descend(&mut self, best: &mut Reduced, pass: Pass) -> Result<(), HuntError> {
        let mut candidates = Candidates::of(&best.plan, pass);
        while let Some(smaller) = candidates.next(&best.plan) {
            if self.exhausted() {
                break;
            }
            if let Some((checked, cause)) = self.fails(&smaller)? {
                (best.plan, best.checked, best.cause) = (smaller, checked, cause);
                candidates.taken();
            }
        }
        Ok(())
    }

    fn fails(&mut self, plan: &Plan) -> Result<Option<(Checked, Cause)>, HuntError> {
        self.trials += 1;
        match self.tried(plan) {
            // What has been found is not lost with the trial.
            Err(HuntError::Run(RunError::Interrupted)) => {
                self.cut = true;
                Ok(None)
            }
            // A schema that lacks what something needs is no smaller case.
            Err(HuntError::Fixture { .. }) => Ok(None),
            tried => tried,
        }
    }

    fn tried(&mut self, plan: &Plan) -> Result<Option<(Checked, Cause)>, HuntError> {
        let (fixture, case) = (Fixture::of(plan), plan.to_case());
        let oracles = self.goal.oracles;
        let checked = match self.goal.violations.iter().any(|v| v.oracle == Oracle::Crash) {
            true => check_any(self.executor, &fixture, &case, oracles)?,
            false => check_unbroken(self.executor, &fixture, &case, oracles, "in a smaller case")?,
        };
        if !same_violation(self.goal.violations, &checked.violations) {
            return Ok(None);
        }
        let cause = cause::find(
            self.executor,
            &fixture,
            Some(plan),
            &case,
            &checked,
            self.goal.oracles,
            self.goal.rate,
        )?;
        Ok((cause.label == self.goal.label).then_some((checked, cause)))
    }
}

/// A measure that every step of the search makes smaller.
fn size(plan: &Plan) -> usize {
    let case = plan.to_case();
    let setup: usize = case.setups.iter().flat_map(|s| &s.statements).map(|s| s.sql.len()).sum();
    setup + case.steps.iter().map(|s| s.sql.len() + 10).sum::<usize>()
}

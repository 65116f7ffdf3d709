//! The steps of examining a scheduled case: check, cause, confirmation, reduction, name.

use super::evidence::{ConfirmedViolation, assemble};
use super::hunter::Hunter;
use super::reduce::{Goal, ReducedCase, reduce};
use crate::error::HuntError;
use crate::execution::account;
use crate::execution::cause::{self, Cause};
use crate::execution::check::{check, check_unbroken};
use crate::execution::confirm::{Repetition, confirm};
use crate::finding::{self, Evidence, Reduction};
use crate::output::tally::Tally;
use crate::run::{CheckResult, FailedRun, Fixture, ModelCoverage, Rate};
use isolde_generator::Plan;
use isolde_generator::reduce::Strategy;
use isolde_model::Case;
use isolde_model::Verdict;
use isolde_oracles::Oracle;

/// How many violations of one signature per block are reduced; further ones take time and show
/// nothing new.
const REDUCED_OF_EACH: u32 = 1;

impl Hunter<'_> {
    /// Examines a case once: a confirmed violation, or none. A case in which the server fails is
    /// an error here.
    pub(super) fn attempt(
        &mut self,
        plan: &Plan,
        tally: &mut Tally,
    ) -> Result<Option<Evidence>, HuntError> {
        let (fixture, case) = (Fixture::of(plan), plan.to_case());
        let checked = match check(&mut self.executor, &fixture, &case, self.oracles) {
            Ok(checked) => checked,
            Err(HuntError::Fixture { sql, error }) => {
                tally.refused_schema(sql, error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let features: Vec<Vec<&'static str>> =
            plan.features().iter().map(|f| f.iter().map(|f| f.name()).collect()).collect();
        tally.count_run(&checked.concurrent, &features);
        let sent = |h: &isolde_model::History| h.steps.len() as u64;
        tally.statements_in_all +=
            sent(&checked.concurrent) + checked.replays.iter().map(|(_, h)| sent(h)).sum::<u64>();
        for (oracle, report) in &checked.reports {
            tally.oracles.count(*oracle, report.as_ref());
        }
        match &checked.model_coverage {
            ModelCoverage::Complete => tally.predicted += 1,
            ModelCoverage::Incomplete(why) => {
                *tally.not_modelled.entry(why.clone()).or_default() += 1
            }
            ModelCoverage::NotRequested => {}
        }
        if !checked.violated() {
            if let Some(why) = checked.unknown {
                *tally.unknown.entry(why.into()).or_default() += 1;
            }
            return Ok(None);
        }
        if checked.crashed() {
            let moment = "in the concurrent run";
            return Err(HuntError::ServerFailure(Box::new(FailedRun {
                fixture,
                case,
                checked,
                moment,
            })));
        }
        let cause = cause::find(&mut self.executor, (&fixture, &case), &checked)?;
        if cause.label == Verdict::Consistent {
            tally.reordered += 1;
            return Ok(None);
        }
        let Some(violation) = self.confirm_violation((&fixture, &case), checked, cause)? else {
            tally.not_confirmed += 1;
            return Ok(None);
        };
        if violation.cause.label != Verdict::Bug
            && let Some(found) = self.at_strongest_level(plan)?
        {
            return Ok(Some(found));
        }
        self.settle(plan, case, violation).map(Some)
    }

    /// The cause of a violation, and how often it is observed; none if it is not observed again.
    fn confirm_violation(
        &mut self,
        about: (&Fixture, &Case),
        first: CheckResult,
        cause: Cause,
    ) -> Result<Option<ConfirmedViolation>, HuntError> {
        let care = match cause.label {
            Verdict::Documented | Verdict::Consistent => Repetition::Once,
            Verdict::Bug | Verdict::Locking | Verdict::Undecided => Repetition::UntilCertain,
        };
        let (rate, again) = confirm(&mut self.executor, about, &first, self.oracles, care)?;
        let Some(again) = again else {
            // A broken rule is proven by the run itself, however rare it is. A mere difference
            // from a serial run may be a disturbance.
            let broken_rule = first.violates(Oracle::Semantics).is_some();
            return Ok(broken_rule.then_some(ConfirmedViolation {
                checked: first,
                cause,
                rate,
                account: None,
            }));
        };
        let found = cause::find(&mut self.executor, about, &again)?;
        // The same difference may be caused by a bug in one run and not in the other.
        Ok(Some(if found.label <= cause.label {
            ConfirmedViolation { checked: again, cause: found, rate, account: None }
        } else {
            ConfirmedViolation { checked: first, cause, rate, account: None }
        }))
    }

    /// The same case at the strongest level, if it shows a bug there: what conflicts at a weak
    /// level is a good test of a strong one.
    fn at_strongest_level(&mut self, plan: &Plan) -> Result<Option<Evidence>, HuntError> {
        let Some(strongest) = self.executor.runner.engine.profile().level_names().into_iter().max()
        else {
            return Ok(None);
        };
        let mut strong = plan.clone();
        strong.level = Some(strongest);
        strong.transactions.iter_mut().for_each(|t| t.level = None);
        if strong == *plan {
            return Ok(None);
        }
        let (fixture, case) = (Fixture::of(&strong), strong.to_case());
        let moment = "at the strongest level";
        let checked = check_unbroken(&mut self.executor, &fixture, &case, self.oracles, moment)?;
        if !checked.violated() {
            return Ok(None);
        }
        let cause = cause::find(&mut self.executor, (&fixture, &case), &checked)?;
        match self.confirm_violation((&fixture, &case), checked, cause)? {
            Some(violation) if violation.cause.label == Verdict::Bug => {
                self.settle(&strong, case, violation).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Reduces a violation if it is the first of its kind, names it, and assembles its evidence.
    pub(super) fn settle(
        &mut self,
        plan: &Plan,
        case: Case,
        violation: ConfirmedViolation,
    ) -> Result<Evidence, HuntError> {
        let ConfirmedViolation { checked, cause, rate, .. } = violation;
        let unreduced = finding::signature(&case, &checked.violations, &cause);
        let similar = self.similar.entry(unreduced.clone()).or_default();
        similar.count += 1;
        let worth_it = self.trials > 0
            && cause.label != Verdict::Documented
            && similar.count <= REDUCED_OF_EACH;
        let looks_like = similar.reduced.clone().filter(|_| !worth_it);
        let reduced = match worth_it {
            true => self.reduce(plan, &checked, cause.label, rate)?,
            false => None,
        };
        let fixture = Fixture::of(reduced.as_ref().map_or(plan, |r| &r.of));
        let (shown, checked, cause, reduction) = match reduced {
            Some(ReducedCase { of: small, checked, cause, trials, cut, .. }) => {
                let small = small.to_case();
                let reduction = Reduction {
                    statements_before: case.steps.len(),
                    statements_after: small.steps.len(),
                    trials,
                    cut,
                };
                (small, checked, cause, Some(reduction))
            }
            None => (case.clone(), checked, cause, None),
        };
        let (about, analysis) = ((&fixture, &shown), checked.analysis.as_deref());
        let account =
            account::of_violation(&mut self.executor, about, &checked.concurrent, analysis)?;
        let violation = ConfirmedViolation { checked, cause, rate, account };
        let info = self.executor.runner.engine.info();
        let mut evidence = assemble(info, plan, &case, &shown, violation, reduction);
        let finding = &mut evidence.finding;
        if finding.reduced_by.is_some() {
            let looks = (finding.signature.clone(), finding.defect.clone());
            self.similar.entry(unreduced).or_default().reduced.get_or_insert(looks);
        } else if let Some((signature, defect)) = looks_like {
            (finding.signature, finding.defect) = (signature, defect);
        }
        if finding.cause.label != Verdict::Documented {
            self.known.name(&mut self.executor, finding)?;
        }
        Ok(evidence)
    }

    fn reduce(
        &mut self,
        plan: &Plan,
        checked: &CheckResult,
        label: Verdict,
        rate: Rate,
    ) -> Result<Option<ReducedCase<Plan>>, HuntError> {
        let goal = Goal {
            violations: &checked.violations,
            label,
            oracles: self.oracles,
            rate,
            strategy: Strategy::Pisco,
            stop: self.stop,
            trials: self.trials,
        };
        reduce(std::slice::from_mut(&mut self.executor), plan, &goal, &mut |_| Ok(()))
    }
}

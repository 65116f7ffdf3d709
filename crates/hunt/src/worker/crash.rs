//! Server failures: the server crashes or hangs, a session is lost, or the engine reports an
//! internal error.
//!
//! Each one is a finding, with the case that was running. A failure that does not happen again
//! may have nothing to do with the case, so [`Hunter::examine`] then looks at the case once
//! more: what else there is to find in it must not depend on when the server was stopped.

use super::evidence::{ConfirmedViolation, assemble};
use super::hunter::Hunter;
use crate::error::HuntError;
use crate::execution::confirm::{Repetition, confirm};
use crate::finding::Evidence;
use crate::run::{CheckResult, FailedRun, Fixture, Rate};
use isolde_generator::Plan;
use isolde_model::Case;
use isolde_model::Verdict;
use isolde_model::history::{FailureKind, ServerFailure};
use isolde_oracles::broken;
use isolde_reference::cause::Cause;

/// The violation was observed in the one run that there was.
const ONCE: Rate = Rate { seen: 1, runs: 1 };

/// The finding of a server failure.
pub(super) struct CrashReport {
    pub evidence: Evidence,
    /// The same case made the server fail again.
    pub repeated: bool,
    /// What kept the case from being tried again.
    pub error: Option<HuntError>,
}

impl Hunter<'_> {
    /// The evidence of a failure that was noticed after the case, when the next session was
    /// opened.
    pub(super) fn failure_after(&self, plan: &Plan, death: ServerFailure) -> Evidence {
        let case = plan.to_case();
        let history = self.executor.runner.not_run(&case, None, death);
        let differences = broken(&case, &history);
        let broke = FailedRun {
            fixture: Fixture::of(plan),
            checked: CheckResult::crash(history, differences),
            moment: "after the case, when a new session was opened",
            case,
        };
        let original = broke.case.clone();
        self.crash_evidence(plan, &original, broke, ONCE, "after")
    }

    /// The finding of a case that the server did not survive: tried again, and reduced if it
    /// fails again.
    pub(super) fn crash(&mut self, plan: &Plan, broke: FailedRun) -> CrashReport {
        let original = plan.to_case();
        let report = |evidence, repeated, error| CrashReport { evidence, repeated, error };
        if (self.stop)() {
            return report(self.crash_evidence(plan, &original, broke, ONCE, "crash"), false, None);
        }
        let FailedRun { fixture, case, checked, .. } = &broke;
        let about = (fixture, case);
        let confirmed = confirm(&mut self.executor, about, checked, self.oracles, Repetition::Once);
        let (rate, again) = match confirmed {
            Ok(confirmed) => confirmed,
            // It failed once more while the failure was confirmed.
            Err(HuntError::ServerFailure(_)) => {
                let evidence = self.crash_evidence(plan, &original, broke, ONCE, "crash");
                return report(evidence, true, None);
            }
            Err(error) => {
                let evidence = self.crash_evidence(plan, &original, broke, ONCE, "crash");
                return report(evidence, false, Some(error));
            }
        };
        let Some(again) = again else {
            return report(self.crash_evidence(plan, &original, broke, rate, "crash"), false, None);
        };
        let hangs = again.concurrent.death.as_ref().is_some_and(|d| d.how == FailureKind::Hangs);
        // A hang is not reduced: each trial takes as long as it takes to notice a hang.
        if *case != original || hangs {
            let broke = FailedRun { checked: again, ..broke };
            return report(self.crash_evidence(plan, &original, broke, rate, "crash"), true, None);
        }
        let cause = crash_cause(&broke);
        let violation = ConfirmedViolation { checked: again, cause, rate, account: None };
        match self.settle(plan, original.clone(), violation) {
            Ok(evidence) => report(evidence, true, None),
            Err(error) => {
                let evidence = self.crash_evidence(plan, &original, broke, rate, "crash");
                let ended = (!matches!(error, HuntError::ServerFailure(_))).then_some(error);
                report(evidence, true, ended)
            }
        }
    }

    /// The evidence of a failure as it is, not reduced.
    fn crash_evidence(
        &self,
        plan: &Plan,
        original: &Case,
        broke: FailedRun,
        rate: Rate,
        suffix: &str,
    ) -> Evidence {
        let cause = crash_cause(&broke);
        let FailedRun { case, checked, .. } = broke;
        let violation = ConfirmedViolation { checked, cause, rate, account: None };
        let info = self.executor.runner.engine.info();
        let mut evidence = assemble(info, plan, original, &case, violation, None);
        evidence.finding.id = format!("{:08}-{suffix}", plan.number);
        evidence
    }
}

fn crash_cause(broke: &FailedRun) -> Cause {
    let text = "the engine crashed, hangs, or reported an internal error";
    Cause::new(Verdict::Bug, vec![text.into(), format!("it happened {}", broke.moment)])
}

//! What becomes of a case in which the engine breaks: the server dies or
//! hangs, a session is lost, an error says that something is wrong inside.
//!
//! Each time is a finding, with the case that was running. A crash that does
//! not happen again may have nothing to do with the case, so the case is then
//! looked at once more: what else there is to find in it does not depend on
//! when somebody stopped the server.

use crate::cause::{Cause, Label};
use crate::check::Checked;
use crate::confirm::{Care, Rate, confirm};
use crate::error::HuntError;
use crate::executor::{Broke, Fixture};
use crate::finding::Evidence;
use crate::hunter::{Hunter, Judged};
use crate::tally::Tally;
use isolde_core::generate::Plan;
use isolde_core::history::Fall;
use isolde_core::oracle::broken;

/// How often a case is looked at that the engine never lives through.
const LOOKS: usize = 3;

/// What came of a case.
pub struct Examined {
    /// A violation that was confirmed, and what broke.
    pub evidence: Vec<Evidence>,
    /// Why nothing more can be run; the evidence was there before.
    pub ended: Option<HuntError>,
}

impl Hunter<'_> {
    /// Runs a case with all checks. What happened is counted in `tally`.
    pub fn examine(&mut self, plan: &Plan, tally: &mut Tally) -> Result<Examined, HuntError> {
        let (before, seen) = (tally.clone(), self.seen.clone());
        let mut evidence: Vec<Evidence> = Vec::new();
        let mut ended = None;
        for look in 1..=LOOKS {
            *tally = before.clone();
            self.seen = seen.clone();
            match self.attempt(plan, tally) {
                Ok(found) => {
                    evidence.extend(found);
                    break;
                }
                Err(HuntError::Broke(broke)) => {
                    let (mut crash, again, error) = self.crash(plan, *broke);
                    if !evidence.is_empty() {
                        crash.finding.id = format!("{}-{look}", crash.finding.id);
                    }
                    evidence.push(crash);
                    ended = error;
                    if again || ended.is_some() || (self.stop)() {
                        break;
                    }
                }
                Err(error) if evidence.is_empty() => return Err(error),
                Err(error) => {
                    ended = Some(error);
                    break;
                }
            }
        }
        if evidence.iter().any(|e| e.finding.oracles == ["crash"]) {
            // It may have broken before the attempt could count it.
            tally.cases = before.cases + 1;
        }
        for found in &evidence {
            tally.count_violation(&found.finding);
        }
        Ok(Examined { evidence, ended })
    }

    /// Looks whether the server is well after the last case for now. What it
    /// finds is counted in `tally`.
    pub fn look_after(&mut self, plan: &Plan, tally: &mut Tally) -> Option<Evidence> {
        // Any other reason to be refused shows when somebody is needed.
        let death = self.executor.runner.look_after().ok().flatten()?;
        let case = plan.to_case();
        let history = self.executor.runner.not_run(&case, None, death);
        let differences = broken(&case, &history);
        let broke = Broke {
            fixture: Fixture::of(plan),
            checked: Checked::crash(history, differences),
            moment: "after the case, when somebody new was to log in",
            case,
        };
        let cause = broke_because(&broke);
        let Broke { case, checked, .. } = broke;
        let rate = Rate { seen: 1, runs: 1 };
        let mut evidence = self.evidence(plan, &case, &case, checked, cause, rate, None);
        evidence.finding.id = format!("{:08}-after", plan.number);
        tally.count_violation(&evidence.finding);
        Some(evidence)
    }

    /// The finding, whether it happened again, and what kept it from being
    /// tried.
    fn crash(&mut self, plan: &Plan, broke: Broke) -> (Evidence, bool, Option<HuntError>) {
        let original = plan.to_case();
        let cause = broke_because(&broke);
        let once = Rate { seen: 1, runs: 1 };
        let alone = |hunter: &Self, broke: Broke, rate: Rate| {
            let cause = broke_because(&broke);
            let Broke { case, checked, .. } = broke;
            let mut evidence = hunter.evidence(plan, &original, &case, checked, cause, rate, None);
            evidence.finding.id = format!("{:08}-crash", plan.number);
            evidence
        };
        if (self.stop)() {
            return (alone(self, broke, once), false, None);
        }
        let Broke { fixture, case, checked, .. } = &broke;
        let about = (fixture, case);
        let confirmed = confirm(&mut self.executor, about, checked, self.oracles, Care::Again);
        let (rate, again) = match confirmed {
            Ok(confirmed) => confirmed,
            Err(error) => return (alone(self, broke, once), false, Some(error)),
        };
        let Some(again) = again else { return (alone(self, broke, rate), false, None) };
        let hangs = again.concurrent.death.as_ref().is_some_and(|d| d.how == Fall::Hangs);
        // Each trial of a hang takes as long as a hang takes to be seen.
        if *case != original || hangs {
            return (alone(self, Broke { checked: again, ..broke }, rate), true, None);
        }
        match self.settled(plan, original.clone(), Judged { checked: again, cause, rate }) {
            Ok(evidence) => (evidence, true, None),
            Err(error) => (alone(self, broke, rate), true, Some(error)),
        }
    }
}

fn broke_because(broke: &Broke) -> Cause {
    let text = "the engine died, hangs, or reported that it is broken inside";
    Cause::new(Label::Bug, vec![text.into(), format!("it happened {}", broke.moment)])
}

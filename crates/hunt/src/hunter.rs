//! One worker: takes a case number and finds out what there is to find.

use crate::account;
use crate::cause::{self, Cause, Label};
use crate::check::{Checked, Predicted, Violation, check, check_unbroken};
use crate::confirm::{Care, Rate, confirm};
use crate::error::HuntError;
use crate::executor::{Broke, Executor, Fixture};
use crate::explain;
use crate::finding::{self, Evidence, Finding, Reduction};
use crate::known::KnownBugs;
use crate::reduce::{Goal, Reduced, reduce};
use crate::tally::Tally;
use crate::topology;
use crate::triage;
use isolde_core::Case;
use isolde_core::case::{self, Selector};
use isolde_core::generate::{Generator, Plan};
use isolde_core::history::TargetInfo;
use isolde_core::oracle::{Difference, Oracle};
use isolde_core::reduce::Strategy;
use std::collections::BTreeMap;

/// Violations of one signature in a block that are reduced; more of the same teach
/// nothing and cost time.
const REDUCED_OF_EACH: u32 = 1;

pub struct Hunter<'a> {
    pub executor: Executor,
    pub generator: &'a Generator,
    pub oracles: &'a [Oracle],
    pub known: &'a KnownBugs,
    /// Ends a reduction with what it has; asked between runs.
    pub stop: &'a dyn Fn() -> bool,
    /// Trials of a reduction at most; none: nothing is reduced.
    pub trials: u32,
    pub seen: BTreeMap<String, Seen>,
}

/// Violations that looked the same before they were reduced.
#[derive(Clone, Default)]
pub struct Seen {
    count: u32,
    /// What the first of them looked like when it was reduced, its signature
    /// and its defect: what is not reduced any more is taken for the same.
    reduced: Option<(String, String)>,
}

/// A violation with its cause and how often it showed.
pub(crate) struct Judged {
    pub checked: Checked,
    pub cause: Cause,
    pub rate: Rate,
}

impl Hunter<'_> {
    /// One look at a case: a violation that was confirmed, or none. A case in
    /// which the engine breaks is an error here.
    pub(crate) fn attempt(
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
        let sent = |h: &isolde_core::History| h.steps.len() as u64;
        tally.statements_in_all +=
            sent(&checked.concurrent) + checked.replays.iter().map(|(_, h)| sent(h)).sum::<u64>();
        if let Some(topology) = &checked.topology {
            tally.topology.count(topology);
        }
        match &checked.predicted {
            Predicted::Whole => tally.predicted += 1,
            Predicted::Not(why) => *tally.not_modelled.entry(why.clone()).or_default() += 1,
            Predicted::NotAsked => {}
        }
        if !checked.violated() {
            if let Some(why) = checked.unknown {
                *tally.unknown.entry(why.into()).or_default() += 1;
            }
            return Ok(None);
        }
        if checked.crashed() {
            let moment = "in the concurrent run";
            return Err(HuntError::Broke(Box::new(Broke { fixture, case, checked, moment })));
        }
        let Some(judged) = self.judged((&fixture, &case), checked)? else {
            tally.not_confirmed += 1;
            return Ok(None);
        };
        if judged.cause.label != Label::Bug
            && let Some(found) = self.at_strongest_level(plan)?
        {
            return Ok(Some(found));
        }
        self.settled(plan, case, judged).map(Some)
    }

    /// The cause of a violation, and how often it shows; none when it does not
    /// show again.
    fn judged(
        &mut self,
        about: (&Fixture, &Case),
        first: Checked,
    ) -> Result<Option<Judged>, HuntError> {
        let cause = cause::find(&mut self.executor, about, &first)?;
        let care = match cause.label {
            Label::Documented => Care::Again,
            Label::Bug | Label::Undecided => Care::EveryTime,
        };
        let (rate, again) = confirm(&mut self.executor, about, &first, self.oracles, care)?;
        let Some(again) = again else {
            // That a rule was broken is seen in the run itself, however rare
            // it is; what only differs from a serial run may be a hiccup.
            let broken_rule = first.violates(Oracle::Semantics).is_some();
            return Ok(broken_rule.then_some(Judged { checked: first, cause, rate }));
        };
        let found = cause::find(&mut self.executor, about, &again)?;
        // The same difference may come of a bug once, and once not.
        Ok(Some(if found.label <= cause.label {
            Judged { checked: again, cause: found, rate }
        } else {
            Judged { checked: first, cause, rate }
        }))
    }

    /// What conflicts at a weak level is a good case for a strong one: the same
    /// case there, if it is a bug.
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
        match self.judged((&fixture, &case), checked)? {
            Some(judged) if judged.cause.label == Label::Bug => {
                self.settled(&strong, case, judged).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Reduces what is worth it and puts the evidence together.
    pub(crate) fn settled(
        &mut self,
        plan: &Plan,
        case: Case,
        judged: Judged,
    ) -> Result<Evidence, HuntError> {
        let Judged { checked, cause, rate } = judged;
        let unreduced = finding::signature(&case, &checked.violations, &cause);
        let seen = self.seen.entry(unreduced.clone()).or_default();
        seen.count += 1;
        let worth_it =
            self.trials > 0 && cause.label != Label::Documented && seen.count <= REDUCED_OF_EACH;
        let looks_like = seen.reduced.clone().filter(|_| !worth_it);
        let reduced = match worth_it {
            true => self.reduced(plan, &checked, cause.label, rate)?,
            false => None,
        };
        let fixture = Fixture::of(reduced.as_ref().map_or(plan, |r| &r.of));
        let mut evidence = match reduced {
            Some(Reduced { of: small, checked, cause, trials, cut, .. }) => {
                let small = small.to_case();
                let reduction = Reduction {
                    statements_before: case.steps.len(),
                    statements_after: small.steps.len(),
                    trials,
                    cut,
                };
                self.evidence(plan, &case, &small, checked, cause, rate, Some(reduction))
            }
            None => self.evidence(plan, &case, &case, checked, cause, rate, None),
        };
        let about = (&fixture, &evidence.case);
        let account = account::of_violation(&mut self.executor, about, &evidence.concurrent)?;
        let finding = &mut evidence.finding;
        finding.account = account;
        triage::note(finding, &evidence.case, &evidence.concurrent);
        if finding.reduced_by.is_some() {
            let looks = (finding.signature.clone(), finding.defect.clone());
            self.seen.entry(unreduced).or_default().reduced.get_or_insert(looks);
        } else if let Some((signature, defect)) = looks_like {
            (finding.signature, finding.defect) = (signature, defect);
        }
        if finding.cause.label != Label::Documented {
            self.known.name(&mut self.executor, finding)?;
        }
        Ok(evidence)
    }

    fn reduced(
        &mut self,
        plan: &Plan,
        checked: &Checked,
        label: Label,
        rate: Rate,
    ) -> Result<Option<Reduced<Plan>>, HuntError> {
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

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn evidence(
        &self,
        plan: &Plan,
        original: &Case,
        case: &Case,
        checked: Checked,
        cause: Cause,
        rate: Rate,
        reduced_by: Option<Reduction>,
    ) -> Evidence {
        let info: &TargetInfo = self.executor.runner.engine.info();
        let mut case = case.clone();
        case.title = finding::title(&case, &checked, cause.label);
        case.engines = info.engine.parse::<Selector>().into_iter().collect();
        let finding = Finding {
            id: format!("{:08}", plan.number),
            case_number: plan.number,
            seed: plan.seed,
            target: info.target.clone(),
            server_version: info.version.clone(),
            level: cause.level.or(case.level),
            oracles: checked.violations.iter().map(|v| v.oracle.to_string()).collect(),
            signature: finding::signature(&case, &checked.violations, &cause),
            title: case.title.clone(),
            explanation: explain::sentences(&case, &checked, &cause, rate),
            differences: without_repetition(&checked.violations),
            defect: String::new(),
            features: None,
            known: Vec::new(),
            case: case::format(&case),
            operations: case.steps.iter().filter_map(|step| step.origin.0).collect(),
            cause,
            rate,
            reduced_by,
            account: None,
        };
        let files = checked.topology.as_deref().map_or_else(Vec::new, topology::files);
        let mut concurrent = checked.concurrent;
        concurrent.seed = Some(plan.seed);
        let serial = checked
            .replays
            .into_iter()
            .map(|(replay, history)| (replay.name.name().to_string(), history))
            .collect();
        let mut finding = finding;
        triage::note(&mut finding, &case, &concurrent);
        Evidence { finding, original: original.clone(), case, concurrent, serial, files }
    }
}

/// Two oracles mostly see the same.
fn without_repetition(violations: &[Violation]) -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    for difference in violations.iter().flat_map(|v| &v.differences) {
        if !all.contains(difference) {
            all.push(difference.clone());
        }
    }
    all
}

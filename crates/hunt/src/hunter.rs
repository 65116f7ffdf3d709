//! One worker: takes a case number and finds out what there is to find.

use crate::account;
use crate::cause::{self, Cause, Label};
use crate::check::{Checked, Predicted, Violation, check};
use crate::confirm::{Care, Rate, confirm};
use crate::error::HuntError;
use crate::executor::{Broke, Executor, Fixture};
use crate::explain;
use crate::finding::{self, Evidence, Finding, Reduction};
use crate::known::Known;
use crate::reduce::{Goal, Reduced, reduce};
use crate::tally::Tally;
use isolde_core::Case;
use isolde_core::case::{self, Selector};
use isolde_core::generate::{Generator, Plan};
use isolde_core::history::TargetInfo;
use isolde_core::oracle::{Difference, Oracle};
use std::collections::BTreeMap;

/// Violations of one signature that are reduced; more of the same teach
/// nothing and cost time.
const REDUCED_OF_EACH: u32 = 3;

pub struct Hunter<'a> {
    pub executor: Executor,
    pub generator: &'a Generator,
    pub oracles: &'a [Oracle],
    pub known: &'a [Known],
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
    /// What the first of them looked like when it was reduced: what is not
    /// reduced any more is taken for the same.
    reduced: Option<String>,
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
                tally.not_run += 1;
                let refusal = tally.refusals.entry(format!("schema {}", error.code)).or_default();
                if refusal.count == 0 {
                    refusal.message = error.message;
                    refusal.sql = sql;
                }
                refusal.count += 1;
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
        let mut cause = cause::find(&mut self.executor, (&fixture, &case), &checked)?;
        let care = match cause.label {
            Label::Documented => Care::Again,
            Label::Bug | Label::Undecided => Care::EveryTime,
        };
        let about = (&fixture, &case);
        let (rate, again) = confirm(&mut self.executor, about, &checked, self.oracles, care)?;
        let checked = match again {
            Some(again) => {
                let found = cause::find(&mut self.executor, about, &again)?;
                // The same difference may come of a bug once, and once not.
                if found.label <= cause.label {
                    cause = found;
                    again
                } else {
                    checked
                }
            }
            // That a rule was broken is seen in the run itself, however rare
            // it is; what only differs from a serial run may be a hiccup.
            None if checked.violates(Oracle::Semantics).is_some() => checked,
            None => {
                tally.not_confirmed += 1;
                return Ok(None);
            }
        };
        self.settled(plan, case, checked, cause, rate).map(Some)
    }

    /// Reduces what is worth it and puts the evidence together.
    pub(crate) fn settled(
        &mut self,
        plan: &Plan,
        case: Case,
        checked: Checked,
        cause: Cause,
        rate: Rate,
    ) -> Result<Evidence, HuntError> {
        let unreduced = finding::signature(&case, &checked.violations, &cause);
        let seen = self.seen.entry(unreduced.clone()).or_default();
        seen.count += 1;
        let worth_it =
            self.trials > 0 && cause.label != Label::Documented && seen.count <= REDUCED_OF_EACH;
        let looks_like = seen.reduced.clone().filter(|_| !worth_it);
        let reduced = if worth_it { self.reduced(plan, &checked, cause.label)? } else { None };
        let fixture = Fixture::of(reduced.as_ref().map_or(plan, |r| &r.plan));
        let mut evidence = match reduced {
            Some(Reduced { plan: small, checked, cause, trials, cut }) => {
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
        if finding.reduced_by.is_some() {
            let seen = self.seen.entry(unreduced).or_default();
            seen.reduced.get_or_insert_with(|| finding.signature.clone());
        } else if let Some(signature) = looks_like {
            finding.signature = signature;
        }
        Ok(evidence)
    }

    fn reduced(
        &mut self,
        plan: &Plan,
        checked: &Checked,
        label: Label,
    ) -> Result<Option<Reduced>, HuntError> {
        let goal = Goal {
            violations: &checked.violations,
            label,
            oracles: self.oracles,
            stop: self.stop,
            trials: self.trials,
        };
        reduce(&mut self.executor, plan, &goal)
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
            known: self.resembles(&case, &info.engine, &info.version),
            case: case::format(&case),
            operations: case.steps.iter().filter_map(|step| step.origin.0).collect(),
            cause,
            rate,
            reduced_by,
            account: None,
        };
        let mut concurrent = checked.concurrent;
        concurrent.seed = Some(plan.seed);
        let serial = checked
            .replays
            .into_iter()
            .map(|(replay, history)| (replay.name.name().to_string(), history))
            .collect();
        Evidence { finding, original: original.clone(), case, concurrent, serial }
    }

    fn resembles(&self, case: &Case, engine: &str, version: &str) -> Vec<String> {
        let shape = finding::shape(case);
        let fits = |k: &&Known| k.fits(engine, version, &shape);
        self.known.iter().filter(fits).map(|k| k.id.clone()).collect()
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

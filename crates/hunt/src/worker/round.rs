//! The steps of examining a round at full speed: from an anomaly that the level's documentation
//! rules out to its evidence.

use super::evidence::{ConfirmedViolation, assemble};
use super::hunter::Hunter;
use super::round_report::{recorded, sentences, signature, traced};
use crate::error::HuntError;
use crate::finding::{Evidence, Reduction};
use crate::isolation::{Effort, Excerpt, OrderSource, RoundRecord, Shape, excerpt, replay};
use crate::run::{CheckResult, Fixture, ModelCoverage, Rate, Violation};
use isolde_checker::Anomaly;
use isolde_histories::dot;
use isolde_histories::picture::{self, Group};
use isolde_model::Verdict;
use isolde_model::difference::Difference;
use isolde_model::history::ServerFailure;
use isolde_model::{Case, History};
use isolde_oracles::{Oracle, broken, forbidden_cause};
use isolde_reference::cause::Cause;

/// Runs of a case that shows its anomaly, to say how often it does.
const RUNS: u32 = 5;

impl Hunter<'_> {
    /// The evidence of an anomaly: the cycle as it was observed in the round, and the shortest
    /// scheduled case that shows it again.
    pub(super) fn round_anomaly(
        &mut self,
        round: &RoundRecord,
        anomaly: &Anomaly,
    ) -> Result<Evidence, HuntError> {
        let effort = Effort { stop: self.stop, trials: self.trials };
        let excerpt = excerpt(&mut self.executor, round, anomaly, &OrderSource::BOTH, effort)?;
        let (history, shown) = match &excerpt.replayed {
            Some(shown) => (&shown.examination.history, &shown.anomaly),
            None => (&round.account.history, anomaly),
        };
        let difference = Difference::Anomaly {
            class: shown.name(),
            meaning: shown.class.meaning().into(),
            cycle: shown.sentences(history),
        };
        let violation = Violation { oracle: Oracle::Isolation, differences: vec![difference] };
        let case = excerpt.plan.to_case();
        let concurrent = self.plain_run(&excerpt, &case)?;
        let checked = CheckResult {
            concurrent,
            replays: Vec::new(),
            violations: vec![violation],
            unknown: None,
            silent: None,
            model_coverage: ModelCoverage::NotRequested,
            reports: Vec::new(),
            analysis: None,
        };
        let differences = checked.violations.iter().flat_map(|v| &v.differences);
        let cause = forbidden_cause(&differences.collect::<Vec<_>>());
        let rate = self.rate(&excerpt)?;
        let reduction = excerpt.replayed.as_ref().map(|_| Reduction {
            statements_before: excerpt.whole.schedule.len(),
            statements_after: case.steps.len(),
            trials: excerpt.trials,
            cut: excerpt.cut,
        });
        let group = Group { history, anomaly: shown };
        let files = vec![
            ("cycle.svg", picture::draw(&[group])),
            ("cycle.dot", dot::draw(&[group])),
            ("history.jsonl", recorded(round)),
            ("trace.jsonl", traced(round)),
        ];
        let whole = excerpt.whole.to_case();
        let info = self.executor.runner.engine.info();
        let violation = ConfirmedViolation { checked, cause, rate, account: None };
        let mut evidence = assemble(info, &excerpt.plan, &whole, &case, violation, reduction);
        evidence.files = files;
        evidence.finding.signature = signature(&evidence.case, round, shown.class);
        evidence.finding.explanation = sentences(round, anomaly, &excerpt, evidence.finding.rate);
        Ok(evidence)
    }

    /// The case as anybody can run it, on tables as they are.
    fn plain_run(&mut self, excerpt: &Excerpt, case: &Case) -> Result<History, HuntError> {
        self.executor.run(&Fixture::of(&excerpt.plan), case)
    }

    /// How often the case shows it; once, in the round, where it does not.
    fn rate(&mut self, excerpt: &Excerpt) -> Result<Rate, HuntError> {
        let Some(shown) = &excerpt.replayed else { return Ok(Rate { seen: 1, runs: 1 }) };
        let mut rate = Rate { seen: 1, runs: 1 };
        while rate.runs < RUNS && !(self.stop)() {
            rate.runs += 1;
            let again = replay(&mut self.executor, &excerpt.plan)?;
            rate.seen += u32::from(again.is_some_and(|a| a.anomaly.class == shown.anomaly.class));
        }
        Ok(rate)
    }

    /// The evidence of a server failure during a round.
    pub(super) fn round_failure(
        &self,
        number: u64,
        shape: &Shape,
        death: ServerFailure,
    ) -> Evidence {
        let plan = self.generator.round(number, shape.keys).plan;
        let case = plan.to_case();
        let history = self.executor.runner.not_run(&case, None, death);
        let differences = broken(&case, &history);
        let checked = CheckResult::crash(history, differences);
        let text = "the engine crashed or hangs while sessions ran at full speed";
        let cause = Cause::new(Verdict::Bug, vec![text.into()]);
        let violation =
            ConfirmedViolation { checked, cause, rate: Rate { seen: 1, runs: 1 }, account: None };
        let info = self.executor.runner.engine.info();
        let mut evidence = assemble(info, &plan, &case, &case, violation, None);
        evidence.finding.id = format!("{number:08}-crash");
        evidence
    }
}

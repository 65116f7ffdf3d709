//! Rounds as part of a hunt: what is counted, and what becomes of an anomaly that the
//! level's documentation rules out.

use super::excerpt::{Effort, Excerpt, Order, excerpt};
use super::round::{Played, Shape, play};
use crate::cause::ruled_out;
use crate::check::{Checked, Predicted, Violation};
use crate::confirm::Rate;
use crate::crash::Examined;
use crate::error::HuntError;
use crate::executor::Fixture;
use crate::finding::{self, Evidence, Reduction};
use crate::hunter::Hunter;
use crate::tally::Tally;
use isolde_checker::{Anomaly, Class, Verdict, Witness};
use isolde_core::history::{Death, ErrorClass};
use isolde_core::oracle::{Difference, Oracle, broken, forbidden};
use isolde_core::trace::OperationResult;
use isolde_core::{Case, History};
use isolde_histories::picture::{self, Group};
use isolde_histories::{dot, write_own};

/// Runs of a case that shows its anomaly, to say how often it does.
const RUNS: u32 = 5;

impl Hunter<'_> {
    /// Plays a round and judges it. What happened is counted in `tally`.
    pub fn examine_round(
        &mut self,
        number: u64,
        shape: &Shape,
        tally: &mut Tally,
    ) -> Result<Examined, HuntError> {
        let nothing = |ended| Examined { evidence: Vec::new(), ended };
        let played = play(&mut self.executor.runner, self.generator, number, shape);
        // Rounds make tables of their own.
        self.executor.forget_tables();
        let played = match played {
            Ok(Ok(played)) => played,
            Ok(Err(death)) => {
                let evidence = self.fallen(number, shape, death)?;
                tally.cases += 1;
                tally.count_violation(&evidence.finding);
                return Ok(Examined { evidence: vec![evidence], ended: None });
            }
            Err(HuntError::Fixture { sql, error }) => {
                tally.refused_schema(sql, error);
                return Ok(nothing(None));
            }
            Err(error) => return Err(error),
        };
        tally.count_round(&played);
        let profile = self.executor.runner.engine.profile();
        let allows = profile.promise(played.level).and_then(|promise| promise.allows.clone());
        let found = forbidden(&played.report, allows.as_deref());
        let of_data = played.report.anomalies.iter().filter(|a| a.through.is_none());
        for allowed in of_data.filter(|a| !found.iter().any(|f| f.class == a.class)) {
            let name = format!("{} at {}", allowed.class, played.level);
            *tally.by_behaviour.entry(name).or_default() += allowed.count as u64;
            tally.violations.documented += allowed.count as u64;
        }
        let Some(worst) = shortest(&found) else {
            if played.report.verdict(isolde_checker::Level::Serializable) == Verdict::Unknown {
                let why = "the checker's search was cut off".to_string();
                *tally.unknown.entry(why).or_default() += 1;
            }
            return Ok(nothing(None));
        };
        let worst = worst.clone();
        let evidence = self.cycle(&played, &worst)?;
        tally.count_violation(&evidence.finding);
        Ok(Examined { evidence: vec![evidence], ended: None })
    }

    /// An anomaly with everything that shows it: the cycle as it was seen, and the shortest
    /// scheduled case that shows it again.
    fn cycle(&mut self, played: &Played, anomaly: &Anomaly) -> Result<Evidence, HuntError> {
        let effort = Effort { stop: self.stop, trials: self.trials };
        let excerpt = excerpt(&mut self.executor, played, anomaly, &Order::BOTH, effort)?;
        let (history, shown) = match &excerpt.shown {
            Some(shown) => (&shown.examination.history, &shown.anomaly),
            None => (&played.account.history, anomaly),
        };
        let difference = Difference::Anomaly {
            class: shown.name(),
            meaning: shown.class.meaning().into(),
            cycle: shown.sentences(history),
        };
        let violation = Violation { oracle: Oracle::Isolation, differences: vec![difference] };
        let case = excerpt.plan.to_case();
        let concurrent = self.plain_run(&excerpt, &case)?;
        let checked = Checked {
            concurrent,
            replays: Vec::new(),
            violations: vec![violation],
            unknown: None,
            silent: None,
            predicted: Predicted::NotAsked,
            topology: None,
        };
        let cause = ruled_out(&checked.violations);
        let rate = self.rate(&excerpt)?;
        let reduction = excerpt.shown.as_ref().map(|_| Reduction {
            statements_before: excerpt.whole.schedule.len(),
            statements_after: case.steps.len(),
            trials: excerpt.trials,
            cut: excerpt.cut,
        });
        let group = Group { history, anomaly: shown };
        let files = vec![
            ("cycle.svg", picture::draw(&[group])),
            ("cycle.dot", dot::draw(&[group])),
            ("history.jsonl", recorded(played)),
            ("trace.jsonl", traced(played)),
        ];
        let whole = excerpt.whole.to_case();
        let mut evidence =
            self.evidence(&excerpt.plan, &whole, &case, checked, cause, rate, reduction);
        evidence.files = files;
        evidence.finding.signature = signature(&evidence.case, played, shown.class);
        evidence.finding.explanation = sentences(played, anomaly, &excerpt, evidence.finding.rate);
        Ok(evidence)
    }

    /// The case as anybody can run it, on tables as they are.
    fn plain_run(&mut self, excerpt: &Excerpt, case: &Case) -> Result<History, HuntError> {
        self.executor.run(&Fixture::of(&excerpt.plan), case)
    }

    /// How often the case shows it; once, in the round, where it does not.
    fn rate(&mut self, excerpt: &Excerpt) -> Result<Rate, HuntError> {
        let Some(shown) = &excerpt.shown else { return Ok(Rate { seen: 1, runs: 1 }) };
        let mut rate = Rate { seen: 1, runs: 1 };
        while rate.runs < RUNS && !(self.stop)() {
            rate.runs += 1;
            let again = super::excerpt::replay(&mut self.executor, &excerpt.plan)?;
            rate.seen += u32::from(again.is_some_and(|a| a.anomaly.class == shown.anomaly.class));
        }
        Ok(rate)
    }

    /// The server fell in mid-round.
    fn fallen(&mut self, number: u64, shape: &Shape, death: Death) -> Result<Evidence, HuntError> {
        let plan = self.generator.round(number, shape.keys).plan;
        let case = plan.to_case();
        let history = self.executor.runner.not_run(&case, None, death);
        let differences = broken(&case, &history);
        let checked = Checked::crash(history, differences);
        let text = "the engine died or hangs while sessions ran at full speed";
        let cause = crate::cause::Cause::new(crate::cause::Label::Bug, vec![text.into()]);
        let rate = Rate { seen: 1, runs: 1 };
        let mut evidence = self.evidence(&plan, &case, &case, checked, cause, rate, None);
        evidence.finding.id = format!("{number:08}-crash");
        Ok(evidence)
    }
}

/// The one with the fewest transactions, of these the first.
fn shortest<'a>(found: &[&'a Anomaly]) -> Option<&'a Anomaly> {
    let size = |anomaly: &&&Anomaly| match &anomaly.witness {
        Witness::Cycle(edges) => edges.len(),
        Witness::Operation { .. } => 1,
    };
    found.iter().min_by_key(size).copied()
}

fn signature(case: &Case, played: &Played, class: Class) -> String {
    let level = played.level.short();
    format!("bug / {level} / {class} / {}", finding::shape(case))
}

fn sentences(played: &Played, seen: &Anomaly, excerpt: &Excerpt, rate: Rate) -> Vec<String> {
    let sessions = played.trace.sessions.len();
    let count = played.trace.transactions.len();
    let level = played.level;
    let mut all = vec![format!(
        "{count} transactions ran in {sessions} sessions at full speed at {level}; what they read \
         and wrote has a cycle that the level rules out: {}, {}.",
        seen.name(),
        seen.class.meaning()
    )];
    all.extend(seen.sentences(&played.account.history).into_iter().map(|s| s + "."));
    match &excerpt.shown {
        Some(shown) => {
            all.push(format!(
                "The case, in {}, shows {} again, in {} of {} runs:",
                match excerpt.order {
                    Order::Inferred => "the order that times, versions and locks tell",
                    Order::Clocks => "the order in which its statements were sent",
                },
                shown.anomaly.name(),
                rate.seen,
                rate.runs
            ));
            let history = &shown.examination.history;
            all.extend(shown.anomaly.sentences(history).into_iter().map(|s| s + "."));
        }
        None => all.push(
            "Played in the order that times, versions and locks tell, and in that in which their \
             statements were sent, the transactions of the cycle do not show it again: the engine \
             needs the load, or something that the trace does not tell. history.jsonl has the \
             whole round, for `isolde check`, and trace.jsonl for `isolde order`."
                .into(),
        ),
    }
    all.push("Cause: bug.".into());
    all
}

fn traced(played: &Played) -> String {
    played.trace.lines().map(|line| line + "\n").collect()
}

fn recorded(played: &Played) -> String {
    let mut bytes = Vec::new();
    match write_own(&played.account.history, &mut bytes) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

impl Tally {
    fn count_round(&mut self, played: &Played) {
        let trace = &played.trace;
        let ends = trace.ends();
        self.cases += 1;
        self.transactions += trace.transactions.len() as u64;
        self.aborted += ends.aborted + ends.lost;
        self.statements += trace.operations.len() as u64;
        self.statements_in_all += trace.operations.len() as u64;
        let refused = |result: &OperationResult| {
            matches!(result, OperationResult::Error(ErrorClass::Rejected))
        };
        self.invalid += trace.operations.iter().filter(|o| refused(&o.result)).count() as u64;
    }
}

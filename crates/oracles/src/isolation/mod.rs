//! The dependencies between transactions, observed on instrumented tables
//! ([`crate::instrument`]), have no cycle that the level's documentation rules out
//! ([`isolde_checker`]).
//!
//! The case is run once more on instrumented tables, and that run is judged. The oracle does not
//! see what `docs/instrumentation.md` lists, and finds little at levels whose documentation allows
//! nearly everything.

use crate::description::OracleDescription;
use crate::instrument::{Instrument, NotInstrumented, ObservedRun};
use crate::instrumented_run::{
    Examined, evaluate, forbidden_differences, table_setup, why_incomplete,
};
use crate::judgement::{Judgement, OracleVerdict};
use crate::promise::forbidden_cause;
use crate::run::ConcurrentRun;
use isolde_checker::{Report, check};
use isolde_model::Anomaly;
use isolde_model::difference::Difference;
use isolde_model::history::History;
use isolde_model::inquiry::Channel;

pub(crate) static ORACLE: OracleDescription = OracleDescription {
    name: "isolation",
    about: "which versions transactions read and wrote forms no cycle that the documentation of \
        their level rules out (G0 to G2), on instrumented tables",
    reference: "with what the documentation of the level rules out",
    judge: |run, channel| Box::pin(judge(run, channel)),
    judges_own_runs: true,
    cause: |differences, _| Some(forbidden_cause(differences)),
    ..OracleDescription::PLAIN
};

/// A run on instrumented tables, with its history and the anomalies in it.
pub struct Examination {
    pub run: History,
    pub history: isolde_checker::History,
    pub report: Report,
    /// Steps that were sent unchanged, and why.
    pub not_instrumented: Vec<(usize, NotInstrumented)>,
}

async fn judge(run: &ConcurrentRun<'_>, channel: &Channel) -> Judgement {
    let unknown = |why: &str| Judgement::unknown(why);
    let Some(reading) = run.reading else {
        return unknown("the tables of the case are not understood");
    };
    let Some(allows) = &run.allows else {
        return unknown("what its levels allow is not documented, or they differ");
    };
    let on = &run.history.on;
    let examined = Examined { case: run.case, reading, on, allows: Some(allows) };
    match examine(&examined, channel).await {
        Err(why) => unknown(&why),
        Ok(examination) => {
            let found = differences(&examination, allows);
            match found.is_empty() {
                true => Judgement::of(OracleVerdict::Consistent),
                false => Judgement::of(OracleVerdict::Violated(found)),
            }
        }
    }
}

/// What is forbidden of what was found, one for each class.
pub fn differences(examination: &Examination, allows: &[Anomaly]) -> Vec<Difference> {
    forbidden_differences(&examination.report, &examination.history, allows)
}

/// Runs a case on instrumented tables and checks its history. The error is why no verdict is
/// possible.
pub async fn examine(about: &Examined<'_>, channel: &Channel) -> Result<Examination, String> {
    let Examined { case, reading, on, allows } = about;
    let capabilities = on.capabilities();
    let mut instrument = Instrument::new(reading.schema.clone(), reading.dialect, capabilities);
    let instrumented = instrument.case(case, &reading.operations);
    if instrument.follows_nothing() {
        return Err("no table of the case can be followed".into());
    }
    let run = channel.run_on(table_setup(about, &instrument)?, instrumented.case.clone()).await;
    if let Some(why) = why_incomplete(&run) {
        return Err(why.into());
    }
    let observed = instrumented.observe(&instrument, &run);
    let observed = ObservedRun {
        instrument: &instrument,
        transactions: observed.transactions,
        first: observed.first,
        last: observed.last,
        writes_read: allows.is_some_and(<[Anomaly]>::is_empty),
    };
    let mut evaluated = Vec::new();
    for evaluation in observed.evaluations() {
        let satisfied = evaluate(&instrument, &evaluation, channel).await;
        evaluated.push((evaluation, satisfied));
    }
    let history = observed.extract_history(&evaluated).history;
    let report = check(&history);
    Ok(Examination { run, history, report, not_instrumented: instrumented.not_instrumented })
}

//! The dependencies between transactions, read from tables that tell who wrote which
//! version ([`crate::instrument`]), have no cycle that the level's documentation rules
//! out ([`isolde_checker`]).
//!
//! The case is run once more on such tables: what is judged is that run. What it does not
//! see: what `docs/instrumentation.md` lists, and levels whose documentation allows
//! nearly everything.

use super::promise::forbidden;
use super::{Concurrent, Difference, Judgement, Verdict};
use crate::generate::Plan;
use crate::history::{History, TargetInfo};
use crate::inquiry::{Desk, Laid};
use crate::instrument::{Evaluation, Instrument, LeftAlone, Means, Told};
use crate::semantics::Reading;
use crate::value::{Row, Value};
use crate::{Anomaly, Case};
use isolde_checker::{Report, check};

pub const ABOUT: &str = "which versions transactions read and wrote forms no cycle that the \
    documentation of their level rules out (G0 to G2), on tables that tell versions";

/// What is examined: a case as far as it is understood, on an engine.
pub struct Examined<'a> {
    pub case: &'a Case,
    pub reading: &'a Reading,
    pub on: &'a TargetInfo,
    /// What the level's documentation allows, where it says.
    pub allows: Option<&'a [Anomaly]>,
}

/// A run on tables that tell, and what it told.
pub struct Examination {
    pub run: History,
    pub history: isolde_checker::History,
    pub report: Report,
    /// Steps that were sent as they are, and why.
    pub left_alone: Vec<(usize, LeftAlone)>,
}

pub async fn judge(run: &Concurrent<'_>, desk: &Desk) -> Judgement {
    let unknown = |why: &str| Judgement::of(Verdict::Unknown(why.into()));
    let Some(reading) = run.reading else {
        return unknown("the tables of the case are not understood");
    };
    let Some(allows) = &run.allows else {
        return unknown("what its levels allow is not documented, or they differ");
    };
    let on = &run.history.on;
    let examined = Examined { case: run.case, reading, on, allows: Some(allows) };
    match examine(&examined, desk).await {
        Err(why) => unknown(&why),
        Ok(examination) => {
            let found = differences(&examination, allows);
            match found.is_empty() {
                true => Judgement::of(Verdict::Consistent),
                false => Judgement::of(Verdict::Violated(found)),
            }
        }
    }
}

/// What is forbidden of what was found, one for each class.
pub fn differences(examination: &Examination, allows: &[Anomaly]) -> Vec<Difference> {
    of_report(&examination.report, &examination.history, allows)
}

/// The same of any history and what the checker says of it.
pub(super) fn of_report(
    report: &Report,
    history: &isolde_checker::History,
    allows: &[Anomaly],
) -> Vec<Difference> {
    let difference = |anomaly: &isolde_checker::Anomaly| Difference::Anomaly {
        class: anomaly.name(),
        meaning: anomaly.class.meaning().into(),
        cycle: anomaly.sentences(history),
    };
    forbidden(report, Some(allows)).into_iter().map(difference).collect()
}

/// Runs a case on tables that tell and checks what it told. The error is why nothing can
/// be said.
pub async fn examine(about: &Examined<'_>, desk: &Desk) -> Result<Examination, String> {
    let Examined { case, reading, on, allows } = about;
    let (engine, version) = on.understood_as();
    let means = Means::of(engine, version);
    let mut instrument = Instrument::new(reading.schema.clone(), reading.dialect, means);
    let told_case = instrument.case(case, &reading.operations);
    if instrument.follows_nothing() {
        return Err("no table of the case can be followed".into());
    }
    let run = desk.run_on(laid(about, &instrument)?, told_case.case.clone()).await;
    if let Some(why) = unfinished(&run) {
        return Err(why.into());
    }
    let told = told_case.tell(&instrument, &run);
    let told = Told {
        instrument: &instrument,
        transactions: told.transactions,
        first: told.first,
        last: told.last,
        writes_read: allows.is_some_and(<[Anomaly]>::is_empty),
    };
    let mut evaluated = Vec::new();
    for evaluation in told.evaluations() {
        let satisfied = evaluate(&instrument, &evaluation, desk).await;
        evaluated.push((evaluation, satisfied));
    }
    let history = told.account(&evaluated).history;
    let report = check(&history);
    Ok(Examination { run, history, report, left_alone: told_case.left_alone })
}

/// Why a run on tables that tell says nothing.
pub(super) fn unfinished(run: &History) -> Option<&'static str> {
    if let Some(death) = &run.death {
        return Some(death.how.name());
    }
    let cut = run.was_cancelled() || run.final_state.iter().any(|f| f.error.is_some());
    cut.then_some("a run on tables that tell did not come to its end")
}

/// What the run starts from: tables that tell from the beginning where the rows are known,
/// else those of the setup, made to tell.
pub(super) fn laid(about: &Examined<'_>, instrument: &Instrument) -> Result<Laid, String> {
    let reading = about.reading;
    if let Some(rows) = &reading.first_rows {
        let plan = Plan::of_tables(reading.schema.clone(), rows.clone(), reading.dialect);
        let told = instrument.plan(&plan);
        return Ok(Laid { create: told.create_sql(), reset: told.reset_sql() });
    }
    let setup = about.case.setup_for(&about.on.engine, &about.on.version);
    if Reading::preparation(about.case, about.on).len() > setup.len() {
        return Err("its own steps make its tables".into());
    }
    let mut create: Vec<String> = setup.iter().map(|s| s.sql.clone()).collect();
    create.extend(instrument.alter_sql());
    Ok(Laid { create, reset: Vec::new() })
}

pub(super) async fn evaluate(
    instrument: &Instrument,
    evaluation: &Evaluation,
    desk: &Desk,
) -> Vec<Option<Vec<bool>>> {
    // Each question stands alone, so that whoever has answered it need not ask again.
    let mut before = instrument.drop_versions_sql();
    before.extend(instrument.create_versions_sql());
    before.extend(evaluation.load_sql(instrument));
    let mut satisfied = vec![None; evaluation.predicates.len()];
    for (range, sql) in evaluation.ask_sql(instrument) {
        let ask = |sql: String| before.iter().cloned().chain([sql]).collect::<Vec<_>>();
        match desk.evaluate(ask(sql)).await {
            Ok(rows) => read_bits(&mut satisfied[range], &rows, evaluation.versions.len()),
            // One of them overflows or divides by nothing: each by itself.
            Err(_) => {
                for at in range {
                    let sql = evaluation.ask_for(instrument, at..at + 1);
                    if let Ok(rows) = desk.evaluate(ask(sql)).await {
                        read_bits(&mut satisfied[at..=at], &rows, evaluation.versions.len());
                    }
                }
            }
        }
    }
    satisfied
}

/// Places of versions and the predicates that each satisfies, as bits of a number.
pub fn read_bits(satisfied: &mut [Option<Vec<bool>>], rows: &[Row], versions: usize) {
    let number = |value: &Value| match value {
        Value::Int(n) => u64::try_from(*n).ok(),
        Value::Decimal(text) | Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    satisfied.iter_mut().for_each(|of| *of = Some(vec![false; versions]));
    for row in rows {
        let [place, bits] = [0, 1].map(|at| row.get(at).and_then(number));
        let (Some(place), Some(bits)) = (place, bits) else { continue };
        for (bit, of) in satisfied.iter_mut().enumerate() {
            if let Some(cell) = of.as_mut().and_then(|of| of.get_mut(place as usize)) {
                *cell = bits >> bit & 1 == 1;
            }
        }
    }
}

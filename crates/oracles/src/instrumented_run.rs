//! Runs on instrumented tables, which the isolation oracle and the topological oracle share: how
//! the tables are made, why a run says nothing, and which versions satisfy a predicate.

use crate::instrument::{Evaluation, Instrument};
use crate::promise::forbidden;
use isolde_checker::Report;
use isolde_model::difference::Difference;
use isolde_model::history::{History, TargetInfo};
use isolde_model::inquiry::{Channel, TableSetup};
use isolde_model::parsed_case::ParsedCase;
use isolde_model::value::{Row, Value};
use isolde_model::{Anomaly, Case};
use isolde_sql::fixture::Fixture;

/// The case to examine, parsed, and its engine.
pub struct Examined<'a> {
    pub case: &'a Case,
    pub reading: &'a ParsedCase,
    pub on: &'a TargetInfo,
    /// What the level's documentation allows, where it says.
    pub allows: Option<&'a [Anomaly]>,
}

/// One difference per class of anomaly in a history that the level forbids.
pub(crate) fn forbidden_differences(
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

/// Why a run on instrumented tables cannot be judged.
pub(crate) fn why_incomplete(run: &History) -> Option<&'static str> {
    if let Some(death) = &run.death {
        return Some(death.how.name());
    }
    let cut = run.was_cancelled() || run.final_state.iter().any(|f| f.error.is_some());
    cut.then_some("a run on instrumented tables did not finish")
}

/// The tables that the run starts from: created with the added columns where the rows are known,
/// else those of the setup, altered.
pub(crate) fn table_setup(
    about: &Examined<'_>,
    instrument: &Instrument,
) -> Result<TableSetup, String> {
    let reading = about.reading;
    if let Some(rows) = &reading.first_rows {
        let (schema, rows) = (reading.schema.clone(), rows.clone());
        let observed = instrument.fixture(&Fixture { schema, rows, dialect: reading.dialect });
        return Ok(TableSetup { create: observed.create_sql(), reset: observed.reset_sql() });
    }
    let setup = about.case.setup_for(&about.on.engine, &about.on.version);
    if ParsedCase::preparation(about.case, about.on).len() > setup.len() {
        return Err("its own steps make its tables".into());
    }
    let mut create: Vec<String> = setup.iter().map(|s| s.sql.clone()).collect();
    create.extend(instrument.alter_sql());
    Ok(TableSetup { create, reset: Vec::new() })
}

pub(crate) async fn evaluate(
    instrument: &Instrument,
    evaluation: &Evaluation,
    channel: &Channel,
) -> Vec<Option<Vec<bool>>> {
    // Each request is complete in itself, so that its response can be cached.
    let mut before = instrument.drop_versions_sql();
    before.extend(instrument.create_versions_sql());
    before.extend(evaluation.load_sql(instrument));
    let mut satisfied = vec![None; evaluation.predicates.len()];
    for (range, sql) in evaluation.ask_sql(instrument) {
        let ask = |sql: String| before.iter().cloned().chain([sql]).collect::<Vec<_>>();
        match channel.evaluate(ask(sql)).await {
            Ok(rows) => read_bits(&mut satisfied[range], &rows, evaluation.versions.len()),
            // One of them overflows or divides by nothing: each by itself.
            Err(_) => {
                for at in range {
                    let sql = evaluation.ask_for(instrument, at..at + 1);
                    if let Ok(rows) = channel.evaluate(ask(sql)).await {
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

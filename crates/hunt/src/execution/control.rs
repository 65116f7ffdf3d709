//! Control runs: whether a statement that seems to break a rule does the same without
//! concurrency.

use super::executor::Executor;
use crate::error::HuntError;
use crate::run::Fixture;
use isolde_model::history::EventKind;
use isolde_model::parsed_case::ParsedCase;
use isolde_model::value::same_multiset;
use isolde_model::{Case, History};
use isolde_reference::{Analysis, Conclusion};
use isolde_sql::fixture::{create_sql, insert_sql};
use isolde_sql::{Dialect, Schema};

/// Runs the statement that an analysis blames alone, on ordinary tables with the rows that it
/// read. If it returns the same there, the engine evaluates it differently on the version tables.
/// One of the two results is wrong, but not because of concurrency: the conclusion becomes *not
/// modelled*.
pub fn check_without_concurrency(
    executor: &mut Executor,
    case: &Case,
    history: &History,
    reading: &ParsedCase,
    analysis: &mut Analysis,
) -> Result<(), HuntError> {
    let Some(control) = analysis.control_run() else { return Ok(()) };
    let (Some(step), Some(observed)) =
        (case.steps.get(control.step), history.outcome(control.step).reply)
    else {
        return Ok(());
    };
    let dialect = Dialect::for_engine(&history.on.engine, &history.on.version);
    let schema = without_constraints(&reading.schema);
    let mut create = create_sql(&schema, &dialect);
    create.extend(insert_sql(&schema, &control.rows, &dialect));
    let fixture =
        Fixture { create, reset: Vec::new(), changes_schema: true, versions: None, reading: None };
    let alone = Case { steps: vec![step.clone()], finals: Vec::new(), ..case.clone() };
    let alone = match executor.run(&fixture, &alone) {
        Ok(history) => history,
        // The rows that a statement may see need not satisfy all keys at once.
        Err(HuntError::Fixture { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let same = match (observed, alone.outcome(0).reply) {
        (EventKind::Rows { rows, .. }, Some(EventKind::Rows { rows: alone, .. })) => {
            same_multiset(rows, alone)
        }
        (EventKind::Affected { count }, Some(EventKind::Affected { count: alone })) => {
            count == alone
        }
        _ => false,
    };
    if same {
        analysis.conclusion = Conclusion::NotModelled {
            step: Some(control.step),
            why: "the engine contradicts itself without concurrency: alone, on the rows that it \
                  read, the statement returns the same, and on a copy of them another result"
                .into(),
        };
    }
    Ok(())
}

/// What a statement reads does not depend on foreign keys and checks, which a part of the rows
/// may violate.
fn without_constraints(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    for table in &mut schema.tables {
        table.foreign_keys.clear();
        table.checks.clear();
    }
    schema
}

//! Control runs: whether a statement that seems to break a rule does the same without
//! concurrency.

use super::executor::Executor;
use crate::error::HuntError;
use crate::run::Fixture;
use isolde_model::breach::Breach;
use isolde_model::case::{Line, Statement};
use isolde_model::history::EventKind;
use isolde_model::parsed_case::ParsedCase;
use isolde_model::value::{Row, same_multiset};
use isolde_model::{Case, History};
use isolde_reference::{Analysis, Conclusion, ControlRun};
use isolde_sql::fixture::{create_sql, insert_sql};
use isolde_sql::render::Renderer;
use isolde_sql::{Dialect, Schema};

/// Runs the statement that an analysis blames alone, on ordinary tables with the rows that it
/// read. If it returns the same there, the engine evaluates it differently on the version tables.
/// One of the two results is wrong, but not because of concurrency: the conclusion becomes *not
/// modelled*. So it does if a write leaves other rows there than on the version tables.
pub fn check_without_concurrency(
    executor: &mut Executor,
    case: &Case,
    history: &History,
    reading: &ParsedCase,
    analysis: &mut Analysis,
) -> Result<(), HuntError> {
    for control in analysis.control_runs().to_vec() {
        let Some(alone) = run_alone(executor, case, history, reading, &control)? else { continue };
        let why = match &control.written {
            None if is_same_reply(history.outcome(control.step).reply, alone.outcome(0).reply) => {
                "alone, on the rows that it read, the statement returns the same, and on a copy of \
                 them another result"
            }
            Some((_, predicted)) if writes_other_rows(&alone, predicted) => {
                "alone, on the rows that it read, the write leaves other rows than on a copy of \
                 them"
            }
            _ => continue,
        };
        analysis.conclusion = Conclusion::NotModelled {
            step: Some(control.step),
            why: format!("the engine contradicts itself without concurrency: {why}"),
        };
        return Ok(());
    }
    Ok(())
}

/// Runs a statement alone that failed in its transaction for no reason that a rule knows, on the
/// rows that it read. If it succeeds there, the conclusion becomes that it broke a rule: what it
/// read was something else, or it failed because of the other transactions.
pub fn check_own_error(
    executor: &mut Executor,
    case: &Case,
    history: &History,
    reading: &ParsedCase,
    analysis: &mut Analysis,
) -> Result<(), HuntError> {
    let Some((control, rule)) = analysis.own_error() else { return Ok(()) };
    let control = control.clone();
    let Some(error) = history.outcome(control.step).reply.and_then(EventKind::error) else {
        return Ok(());
    };
    let Some(alone) = run_alone(executor, case, history, reading, &control)? else {
        return Ok(());
    };
    if alone.outcome(0).reply.is_some_and(|reply| reply.error().is_none()) {
        let (class, code, message) = (error.class, error.code.clone(), error.message.clone());
        let breach = Breach::UnexpectedError { class, code, message };
        let (step, rule) = (Some(control.step), Some(rule));
        analysis.conclusion = Conclusion::Broken { step, rule, breach };
    }
    Ok(())
}

/// The history of one statement on ordinary tables; none if they cannot be filled.
fn run_alone(
    executor: &mut Executor,
    case: &Case,
    history: &History,
    reading: &ParsedCase,
    control: &ControlRun,
) -> Result<Option<History>, HuntError> {
    let Some(step) = case.steps.get(control.step) else { return Ok(None) };
    let dialect = Dialect::for_engine(&history.on.engine, &history.on.version);
    let schema = without_constraints(&reading.schema);
    let mut create = create_sql(&schema, &dialect);
    create.extend(insert_sql(&schema, &control.rows, &dialect));
    let fixture =
        Fixture { create, reset: Vec::new(), changes_schema: true, versions: None, reading: None };
    let name = |table: usize| Renderer::new(&dialect).name(&schema.tables[table].name).into_owned();
    let finals = control.written.iter().map(|(table, _)| {
        let columns: Vec<String> = schema.tables[*table]
            .columns
            .iter()
            .map(|c| Renderer::new(&dialect).name(&c.name).into_owned())
            .collect();
        let sql = format!("select {} from {}", columns.join(", "), name(*table));
        Statement { sql, line: Line::default() }
    });
    let alone = Case { steps: vec![step.clone()], finals: finals.collect(), ..case.clone() };
    match executor.run_unbroken(&fixture, &alone, "of one statement on the rows that it read") {
        Ok(history) => Ok(Some(history)),
        // The rows that a statement may see need not satisfy all keys at once.
        Err(HuntError::Fixture { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_same_reply(observed: Option<&EventKind>, alone: Option<&EventKind>) -> bool {
    match (observed, alone) {
        (Some(EventKind::Rows { rows, .. }), Some(EventKind::Rows { rows: alone, .. })) => {
            same_multiset(rows, alone)
        }
        (Some(EventKind::Affected { count }), Some(EventKind::Affected { count: alone })) => {
            count == alone
        }
        _ => false,
    }
}

/// Whether a write that ran alone left other rows than the version tables predict.
fn writes_other_rows(alone: &History, predicted: &[Row]) -> bool {
    let succeeded = matches!(alone.outcome(0).reply, Some(EventKind::Affected { .. }));
    let rows = alone.final_state.first().filter(|state| state.error.is_none());
    succeeded && rows.is_some_and(|state| !same_multiset(&state.rows, predicted))
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

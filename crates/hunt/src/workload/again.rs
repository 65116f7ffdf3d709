//! Plays a recorded workload once more, statement by statement, in the order that its trace
//! tells: what is read and what is left must be the same.

use super::record::{Recorded, newest};
use super::{Workload, sql};
use crate::error::HuntError;
use isolde_core::case::{Line, Statement};
use isolde_core::history::What;
use isolde_core::order::{self, Schedule};
use isolde_core::trace::OperationResult;
use isolde_core::value::compare_rows;
use isolde_engines::runner::Runner;

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub reads: usize,
    /// Statements that read something else, or failed where they had not, or the reverse.
    pub other: Vec<String>,
    /// The rows at the end are the same.
    pub same_end: bool,
    pub irregular: u64,
}

impl Agreement {
    pub fn is_complete(&self) -> bool {
        self.other.is_empty() && self.same_end
    }
}

/// Infers the order of a recording and plays it. None where the trace cannot be understood.
pub fn play_again(
    runner: &mut Runner,
    recorded: &Recorded,
    workload: Workload,
) -> Result<Option<Agreement>, HuntError> {
    let trace = &recorded.trace;
    let Ok(inferred) = order::infer(trace, None, order::BUDGET) else { return Ok(None) };
    let schedule = Schedule::of(trace, &inferred);
    let Ok(mut case) = schedule.case(trace, "again") else { return Ok(None) };
    case.finals = vec![Statement { sql: sql::ALL_ROWS.into(), line: Line(0) }];
    let history = runner.run(&case, trace.level)?;
    let mut agreement = Agreement { irregular: inferred.irregularities(), ..Agreement::default() };
    for event in &history.events {
        let Some(at) = event.step.and_then(|step| schedule.order.get(step)) else { continue };
        let then = &trace.operations[*at as usize];
        if schedule.rolled_back.contains(at) {
            continue;
        }
        let failed = matches!(then.result, OperationResult::Error(_));
        let text =
            || format!("{}: {}", case.steps[event.step.unwrap_or(0)].sql, short(&event.what));
        match &event.what {
            What::Rows { rows, .. } => {
                agreement.reads += 1;
                let cell = rows.first().and_then(|row| row.first());
                let now = cell.map_or(0, |cell| newest(cell, workload));
                let saw = then.accesses.as_ref().and_then(|a| a.reads.first()).map(|a| a.version);
                if failed || saw != Some(now) {
                    agreement.other.push(text());
                }
            }
            What::Error(_) if !failed => agreement.other.push(text()),
            What::Affected { .. } | What::Done if failed => agreement.other.push(text()),
            What::NotSent { .. } if !failed && then.accesses.is_some() => {
                agreement.other.push(text());
            }
            _ => {}
        }
    }
    let mut before = recorded.last.clone();
    before.sort_by(|a, b| compare_rows(a, b));
    let end = history.final_state.first().map(|last| &last.rows);
    agreement.same_end = end == Some(&before);
    Ok(Some(agreement))
}

fn short(what: &What) -> String {
    match what {
        What::Error(error) => error.to_string(),
        What::Rows { rows, .. } => format!("{rows:?}"),
        What::NotSent { why } => why.clone(),
        _ => "done".into(),
    }
}

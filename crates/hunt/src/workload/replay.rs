//! Replays a recorded workload statement by statement, in the order inferred from its trace:
//! reads and final rows must be the same.

use super::record::{WorkloadRecording, newest};
use super::shape::Workload;
use super::sql;
use crate::error::HuntError;
use isolde_engines::runner::Runner;
use isolde_model::case::{Line, Statement};
use isolde_model::history::EventKind;
use isolde_model::trace::OperationResult;
use isolde_model::value::compare_rows;
use isolde_order as order;
use isolde_order::Schedule;

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    pub reads: usize,
    /// Statements that read something else, or failed where they had not, or the reverse.
    pub other: Vec<String>,
    /// The rows at the end are the same.
    pub same_final_rows: bool,
    pub irregular: u64,
}

impl Agreement {
    pub fn is_complete(&self) -> bool {
        self.other.is_empty() && self.same_final_rows
    }
}

/// Infers the order of a recording and plays it. None where the trace cannot be understood.
pub fn replay_recording(
    runner: &mut Runner,
    recorded: &WorkloadRecording,
    workload: Workload,
) -> Result<Option<Agreement>, HuntError> {
    let trace = &recorded.trace;
    let Ok(inferred) = order::infer(trace, None, order::BUDGET) else { return Ok(None) };
    let schedule = Schedule::of(trace, &inferred);
    let Ok(mut case) = schedule.case(trace, "again") else { return Ok(None) };
    case.finals = vec![Statement { sql: sql::ALL_ROWS.into(), line: Line(0) }];
    let history = runner.run(&case, trace.level)?;
    let mut agreement = Agreement { irregular: inferred.violation_count(), ..Agreement::default() };
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
            EventKind::Rows { rows, .. } => {
                agreement.reads += 1;
                let cell = rows.first().and_then(|row| row.first());
                let now = cell.map_or(0, |cell| newest(cell, workload));
                let saw = then.accesses.as_ref().and_then(|a| a.reads.first()).map(|a| a.version);
                if failed || saw != Some(now) {
                    agreement.other.push(text());
                }
            }
            EventKind::Error(_) if !failed => agreement.other.push(text()),
            EventKind::Affected { .. } | EventKind::Done if failed => agreement.other.push(text()),
            EventKind::NotSent { .. } if !failed && then.accesses.is_some() => {
                agreement.other.push(text());
            }
            _ => {}
        }
    }
    let mut before = recorded.last.clone();
    before.sort_by(|a, b| compare_rows(a, b));
    let end = history.final_state.first().map(|last| &last.rows);
    agreement.same_final_rows = end == Some(&before);
    Ok(Some(agreement))
}

fn short(what: &EventKind) -> String {
    match what {
        EventKind::Error(error) => error.to_string(),
        EventKind::Rows { rows, .. } => format!("{rows:?}"),
        EventKind::NotSent { why } => why.clone(),
        _ => "done".into(),
    }
}

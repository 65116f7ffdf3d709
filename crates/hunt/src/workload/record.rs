//! Runs a workload and writes down what each transaction saw.

use super::draw::{Draw, Operation};
use super::shape::{Shape, Workload};
use super::sql;
use isolde_checker::{Builder, History, Status, Value as WrittenValue};
use isolde_engines::engine::Outcome;
use isolde_engines::free_run::{FreeRun, Statements};
use isolde_engines::runner::{RunError, Runner};
use isolde_model::history::TxEnd;
use isolde_model::trace::{Access, Accesses, Trace};
use isolde_model::value::{Row, Value};
use std::collections::HashMap;

/// A workload on its way: how it is shaped and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadRecorder {
    pub shape: Shape,
    pub free: FreeRun,
    pub seed: u64,
}

/// What was recorded.
pub struct WorkloadRecording {
    pub history: History,
    /// With what each operation read and wrote.
    pub trace: Trace,
    /// The rows at the end, by key, where the workload has a table of its own.
    pub last: Vec<Row>,
}

/// What an operation was answered.
#[derive(Clone, Debug)]
enum OperationReply {
    Rows(Option<Value>),
    /// Rows that a write changed; none where the engine does not say.
    Wrote(Option<u64>),
}

impl WorkloadRecorder {
    /// Runs in an empty database, with a table that it makes.
    pub fn run(&self, runner: &mut Runner) -> Result<WorkloadRecording, RunError> {
        let family = runner.engine.info().family();
        let workload = self.shape.workload;
        runner.clear()?;
        let table = sql::table(workload, family);
        runner.engine.control(&table)?;
        let mut draw = Draw::new(self.shape, self.seed);
        // Transactions are numbered as they begin, which is when they are drawn.
        let mut drawn: Vec<Vec<Operation>> = Vec::new();
        let mut replies: HashMap<(u32, usize), OperationReply> = HashMap::new();
        let mut next = |_: usize| {
            let operations = draw.transaction();
            let texts = operations.iter().map(|op| sql::statement(*op, workload, family));
            let begin = std::iter::once("begin".to_owned());
            let statements: Vec<String> = begin.chain(texts).chain(["commit".to_owned()]).collect();
            drawn.push(operations);
            Some(Statements::from(statements))
        };
        let mut trace = self.free.run_watched(runner, &mut next, &mut |answer| {
            // The first statement begins the transaction.
            let Some(place) = answer.statement.and_then(|at| at.checked_sub(1)) else { return };
            let what = match &answer.reply.outcome {
                Outcome::Rows { rows, .. } => {
                    OperationReply::Rows(rows.first().and_then(|row| row.first().cloned()))
                }
                Outcome::Affected(count) => OperationReply::Wrote(Some(*count)),
                Outcome::Done => OperationReply::Wrote(None),
                Outcome::Error(_) => return,
            };
            replies.insert((answer.transaction, place), what);
        })?;
        let last = match runner.engine.control(sql::ALL_ROWS) {
            Ok(Outcome::Rows { rows, .. }) => rows,
            _ => Vec::new(),
        };
        runner.clear()?;
        let history = history(&trace, &drawn, &replies, workload);
        trace.setup = vec![table];
        fill_in(&mut trace, &drawn, &replies, workload);
        Ok(WorkloadRecording { history, trace, last })
    }
}

/// Says of each operation which version it read or wrote. Versions are called by what was
/// written, and 0 where there is nothing.
fn fill_in(
    trace: &mut Trace,
    drawn: &[Vec<Operation>],
    replies: &HashMap<(u32, usize), OperationReply>,
    workload: Workload,
) {
    let places = trace.places();
    let mut items: HashMap<u64, u32> = HashMap::new();
    let mut names = Vec::new();
    for (traced, place) in trace.operations.iter_mut().zip(places) {
        let number = traced.transaction;
        let Some(place) = place.checked_sub(1) else { continue };
        let Some(operation) = drawn[number as usize].get(place) else { continue };
        let Some(answer) = replies.get(&(number, place)) else { continue };
        let mut item = |key: u64| {
            let next = items.len() as u32;
            *items.entry(key).or_insert_with(|| {
                names.push(format!("isolde_items/{key}"));
                next
            })
        };
        let mut accesses = Accesses::default();
        match (operation, answer) {
            (Operation::Read { key, .. }, OperationReply::Rows(value)) => {
                let version = value.as_ref().map_or(0, |value| newest(value, workload));
                accesses.reads.push(Access { item: item(*key), version });
            }
            (Operation::Write { .. }, OperationReply::Wrote(Some(0))) => continue,
            (Operation::Write { key, value, .. }, _) => {
                accesses.writes.push(Access { item: item(*key), version: *value });
            }
            (Operation::Read { .. }, OperationReply::Wrote(_)) => continue,
        }
        traced.accesses = Some(Box::new(accesses));
    }
    trace.items = names;
}

/// The version that a cell shows.
pub(super) fn newest(value: &Value, workload: Workload) -> u64 {
    let text = text(value);
    match workload {
        Workload::ListAppend => text.rsplit(',').next().and_then(|v| v.trim().parse().ok()),
        Workload::RwRegister => text.parse().ok(),
    }
    .unwrap_or(0)
}

fn history(
    trace: &Trace,
    drawn: &[Vec<Operation>],
    replies: &HashMap<(u32, usize), OperationReply>,
    workload: Workload,
) -> History {
    let mut times = vec![(u64::MAX, 0); trace.transactions.len()];
    for operation in &trace.operations {
        let (begin, end) = &mut times[operation.transaction as usize];
        *begin = (*begin).min(operation.start);
        *end = (*end).max(operation.end);
    }
    let mut builder = Builder::new();
    for ((number, transaction), operations) in trace.transactions.iter().enumerate().zip(drawn) {
        let session = builder.session(&trace.sessions[transaction.session as usize]);
        builder.begin(session);
        let status = match transaction.how {
            TxEnd::Committed => Status::Committed,
            TxEnd::RolledBack | TxEnd::Aborted => Status::Aborted,
            _ => Status::Unknown,
        };
        let (begin, end) = times[number];
        builder.times(begin, if status == Status::Unknown { u64::MAX } else { end });
        for (place, operation) in operations.iter().enumerate() {
            let answer = replies.get(&(number as u32, place));
            add(&mut builder, *operation, answer, workload, status);
        }
        builder.end(status);
    }
    builder.finish()
}

fn add(
    builder: &mut Builder,
    operation: Operation,
    answer: Option<&OperationReply>,
    workload: Workload,
    status: Status,
) {
    match (operation, answer) {
        (Operation::Read { key, .. }, Some(OperationReply::Rows(value))) => {
            let item = builder.numbered_item(key);
            match workload {
                Workload::ListAppend => {
                    let text = value.as_ref().map(text).unwrap_or_default();
                    let elements: Vec<WrittenValue> = text
                        .split(',')
                        .filter_map(|v| v.trim().parse().ok())
                        .map(WrittenValue)
                        .collect();
                    builder.read_list(item, &elements);
                }
                Workload::RwRegister => {
                    let number = value.as_ref().and_then(|value| text(value).parse().ok());
                    builder.read(item, number.map_or(WrittenValue::INITIAL, WrittenValue));
                }
            }
        }
        // A read without an answer saw nothing that anybody knows of.
        (Operation::Read { .. }, _) => {}
        // No row was there to be changed.
        (Operation::Write { .. }, Some(OperationReply::Wrote(Some(0)))) => {}
        // A write without an answer may have been done, unless its transaction went on.
        (Operation::Write { .. }, None) if status == Status::Committed => {}
        (Operation::Write { key, value, .. }, _) => {
            let item = builder.numbered_item(key);
            match workload {
                Workload::ListAppend => builder.append(item, WrittenValue(value)),
                Workload::RwRegister => builder.write(item, WrittenValue(value)),
            }
        }
    }
}

/// What a cell holds, as text.
fn text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Decimal(text) => text.clone(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(_) | Value::Null => String::new(),
    }
}

//! Runs a workload and writes down what each transaction saw.

use super::draw::{Draw, Operation};
use super::{Shape, Workload, sql};
use isolde_checker::{Builder, History, Status, Value as Written};
use isolde_core::history::TxEnd;
use isolde_core::trace::Trace;
use isolde_core::value::Value;
use isolde_engines::engine::Outcome;
use isolde_engines::free_run::{FreeRun, Statements};
use isolde_engines::runner::{RunError, Runner};
use std::collections::HashMap;

/// A workload on its way: how it is shaped and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    pub shape: Shape,
    pub free: FreeRun,
    pub seed: u64,
}

/// What was recorded.
pub struct Recorded {
    pub history: History,
    pub trace: Trace,
}

/// What an operation was answered.
#[derive(Clone, Debug)]
enum Seen {
    Rows(Option<Value>),
    /// Rows that a write changed; none where the engine does not say.
    Wrote(Option<u64>),
}

impl Recording {
    /// Runs in an empty database, with a table that it makes.
    pub fn run(&self, runner: &mut Runner) -> Result<Recorded, RunError> {
        let family = runner.engine.info().family();
        let workload = self.shape.workload;
        runner.clear()?;
        runner.engine.control(&sql::table(workload, family))?;
        let mut draw = Draw::new(self.shape, self.seed);
        // Transactions are numbered as they begin, which is when they are drawn.
        let mut drawn: Vec<Vec<Operation>> = Vec::new();
        let mut seen: HashMap<(u32, usize), Seen> = HashMap::new();
        let mut next = |_: usize| {
            let operations = draw.transaction();
            let texts = operations.iter().map(|op| sql::statement(*op, workload, family));
            let begin = std::iter::once("begin".to_owned());
            let statements: Vec<String> = begin.chain(texts).chain(["commit".to_owned()]).collect();
            drawn.push(operations);
            Some(Statements::from(statements))
        };
        let trace = self.free.run_watched(runner, &mut next, &mut |answer| {
            // The first statement begins the transaction.
            let Some(place) = answer.statement.and_then(|at| at.checked_sub(1)) else { return };
            let what = match &answer.reply.outcome {
                Outcome::Rows { rows, .. } => {
                    Seen::Rows(rows.first().and_then(|row| row.first().cloned()))
                }
                Outcome::Affected(count) => Seen::Wrote(Some(*count)),
                Outcome::Done => Seen::Wrote(None),
                Outcome::Error(_) => return,
            };
            seen.insert((answer.transaction, place), what);
        })?;
        runner.clear()?;
        let history = history(&trace, &drawn, &seen, workload);
        Ok(Recorded { history, trace })
    }
}

fn history(
    trace: &Trace,
    drawn: &[Vec<Operation>],
    seen: &HashMap<(u32, usize), Seen>,
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
            let answer = seen.get(&(number as u32, place));
            add(&mut builder, *operation, answer, workload, status);
        }
        builder.end(status);
    }
    builder.finish()
}

fn add(
    builder: &mut Builder,
    operation: Operation,
    answer: Option<&Seen>,
    workload: Workload,
    status: Status,
) {
    match (operation, answer) {
        (Operation::Read { key, .. }, Some(Seen::Rows(value))) => {
            let item = builder.numbered_item(key);
            match workload {
                Workload::ListAppend => {
                    let text = value.as_ref().map(text).unwrap_or_default();
                    let elements: Vec<Written> = text
                        .split(',')
                        .filter_map(|v| v.trim().parse().ok())
                        .map(Written)
                        .collect();
                    builder.read_list(item, &elements);
                }
                Workload::RwRegister => {
                    let number = value.as_ref().and_then(|value| text(value).parse().ok());
                    builder.read(item, number.map_or(Written::INITIAL, Written));
                }
            }
        }
        // A read without an answer saw nothing that anybody knows of.
        (Operation::Read { .. }, _) => {}
        // No row was there to be changed.
        (Operation::Write { .. }, Some(Seen::Wrote(Some(0)))) => {}
        // A write without an answer may have been done, unless its transaction went on.
        (Operation::Write { .. }, None) if status == Status::Committed => {}
        (Operation::Write { key, value, .. }, _) => {
            let item = builder.numbered_item(key);
            match workload {
                Workload::ListAppend => builder.append(item, Written(value)),
                Workload::RwRegister => builder.write(item, Written(value)),
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

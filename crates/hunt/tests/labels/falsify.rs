//! Runs that did not happen: a history with one thing in it changed.

use isolde_core::Value;
use isolde_core::history::{DbError, ErrorClass, ErrorEffect, Event, History, TxEnd, What};
use isolde_core::sql::{self, Kind};
use isolde_core::value::Row;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    AnotherValueRead,
    RowNotRead,
    RowTooMany,
    OneMoreChanged,
    OneLessChanged,
    /// What failed is told to have gone through.
    ErrorRemoved,
    /// A COMMIT that failed is told to have committed.
    CommitClaimed,
    /// What went through is told to have failed.
    ErrorAdded(ErrorClass),
    /// What waited is told to have gone on at once.
    WaitRemoved,
    /// What went on at once is told to have waited.
    WaitAdded,
    AnotherValueLeft,
    RowNotLeft,
    RowTooManyLeft,
}

pub struct Falsified {
    /// None for the final rows.
    pub step: Option<usize>,
    pub change: Change,
    pub history: History,
}

impl Falsified {
    pub fn what(&self, history: &History) -> String {
        let step = self.step.map_or("the final rows", |s| history.steps[s].label.as_str());
        format!("{step}: {:?}", self.change)
    }

    /// Whether another statement may be the one that cannot be explained: what
    /// is allowed to fail did nothing, and what comes after shows that it did;
    /// without its victim a deadlock lets two go on, of whom one should not.
    pub fn may_show_elsewhere(&self, history: &History) -> bool {
        let error = self.step.and_then(|s| history.outcome(s).reply).and_then(What::error);
        let was_victim = error.is_some_and(|e| e.class == ErrorClass::Deadlock);
        matches!(self.change, Change::ErrorAdded(_) | Change::CommitClaimed) || was_victim
    }
}

const ERRORS: [ErrorClass; 6] = [
    ErrorClass::Constraint,
    ErrorClass::Serialization,
    ErrorClass::WriteConflict,
    ErrorClass::Deadlock,
    ErrorClass::LockTimeout,
    ErrorClass::Busy,
];

/// Every change of one thing in a run.
pub fn falsified(history: &History) -> Vec<Falsified> {
    let mut all = Vec::new();
    for at in 0..history.events.len() {
        let event = &history.events[at];
        let Some(step) = event.step else { continue };
        let mut add = |change, what: What| {
            let mut history = history.clone();
            history.events[at].what = what;
            all.push(Falsified { step: Some(step), change, history });
        };
        let is_statement =
            matches!(sql::kind(&history.steps[step].sql), Kind::Select | Kind::Write);
        match &event.what {
            What::Rows { columns, rows } => {
                for (change, rows) in other_rows(rows, columns.len()) {
                    add(change, What::Rows { columns: columns.clone(), rows });
                }
            }
            What::Affected { count } if is_statement => {
                add(Change::OneMoreChanged, What::Affected { count: count + 1 });
                if let Some(count) = count.checked_sub(1) {
                    add(Change::OneLessChanged, What::Affected { count });
                }
            }
            What::Error(_) => {
                let what = match sql::kind(&history.steps[step].sql) {
                    Kind::Commit => {
                        all.extend(committed(history, at));
                        continue;
                    }
                    Kind::Select => What::Rows { columns: Vec::new(), rows: Vec::new() },
                    Kind::Write => What::Affected { count: 1 },
                    _ => continue,
                };
                add(Change::ErrorRemoved, what);
            }
            _ => {}
        }
        if matches!(event.what, What::Rows { .. } | What::Affected { .. }) && is_statement {
            for class in ERRORS {
                let error = DbError {
                    code: "falsified".into(),
                    sqlstate: None,
                    message: "it did not happen".into(),
                    class,
                    effect: ErrorEffect::Statement,
                };
                add(Change::ErrorAdded(class), What::Error(error));
            }
            all.extend(without_wait(history, step));
            all.extend(with_wait(history, step));
        }
    }
    for at in 0..history.final_state.len() {
        let state = &history.final_state[at];
        for (change, rows) in other_rows(&state.rows, state.columns.len()) {
            let change = match change {
                Change::AnotherValueRead => Change::AnotherValueLeft,
                Change::RowNotRead => Change::RowNotLeft,
                _ => Change::RowTooManyLeft,
            };
            let mut history = history.clone();
            history.final_state[at].rows = rows;
            all.push(Falsified { step: None, change, history });
        }
    }
    all
}

/// A COMMIT that failed, as if it had gone through.
fn committed(history: &History, at: usize) -> Option<Falsified> {
    let mut other = history.clone();
    let step = other.events[at].step;
    let session = other.events[at].session.clone();
    let rest = other.events[at..].iter_mut().filter(|e| e.session == session);
    let how = rest.filter_map(|e| match &mut e.what {
        What::Ended { how, .. } => Some(how),
        _ => None,
    });
    *how.take(1).next()? = TxEnd::Committed;
    other.events[at].what = What::Done;
    Some(Falsified { step, change: Change::CommitClaimed, history: other })
}

fn other_rows(rows: &[Row], columns: usize) -> Vec<(Change, Vec<Row>)> {
    let mut all = Vec::new();
    for n in 0..rows.len() {
        for column in 0..rows[n].len() {
            for value in other_values(&rows[n][column]) {
                let mut other = rows.to_vec();
                other[n][column] = value;
                all.push((Change::AnotherValueRead, other));
            }
        }
        let mut other = rows.to_vec();
        other.remove(n);
        all.push((Change::RowNotRead, other));
    }
    let mut other = rows.to_vec();
    other.push(rows.first().cloned().unwrap_or_else(|| vec![Value::Int(4711); columns]));
    all.push((Change::RowTooMany, other));
    all
}

/// Values of other versions, as the cases write them: one more and one less.
fn other_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Int(i) => vec![Value::Int(i + 1), Value::Int(i - 1)],
        _ => vec![Value::Int(4711)],
    }
}

/// A statement that went through when it was sent, as if it had waited.
fn with_wait(history: &History, step: usize) -> Option<Falsified> {
    let is_sent = |e: &Event| e.step == Some(step) && matches!(e.what, What::Sent { .. });
    let sent = history.events.iter().position(is_sent).filter(|_| !history.outcome(step).waited)?;
    let session = history.steps[step].session.clone();
    let mut other = history.clone();
    let what = What::Waiting { on: Vec::new() };
    other.events.insert(sent + 1, Event { session, step: Some(step), what });
    Some(Falsified { step: Some(step), change: Change::WaitAdded, history: other })
}

/// A statement that waited and then went through, as if it had gone through
/// when it was sent.
fn without_wait(history: &History, step: usize) -> Option<Falsified> {
    let mine = |e: &Event| e.step == Some(step);
    let is = |e: &Event, what: fn(&What) -> bool| mine(e) && what(&e.what);
    if !history.outcome(step).waited {
        return None;
    }
    let reply = history.outcome(step).reply?.clone();
    let sent = history.events.iter().position(|e| is(e, |w| matches!(w, What::Sent { .. })))?;
    let mut other = history.clone();
    let session = history.steps[step].session.clone();
    let goes = |e: &Event| {
        let of_wait = |w: &What| matches!(w, What::Waiting { .. } | What::Resumed) || *w == reply;
        mine(e) && of_wait(&e.what)
    };
    other.events.retain(|e| !goes(e));
    other.events.insert(sent + 1, Event { session, step: Some(step), what: reply.clone() });
    Some(Falsified { step: Some(step), change: Change::WaitRemoved, history: other })
}

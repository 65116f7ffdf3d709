//! Falsified runs: recorded histories with one change.

use isolde_model::Value;
use isolde_model::history::{DbError, ErrorClass, ErrorEffect, Event, EventKind, History, TxEnd};
use isolde_model::value::Row;
use isolde_sql as sql;
use isolde_sql::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    AnotherValueRead,
    RowNotRead,
    RowTooMany,
    OneMoreChanged,
    OneLessChanged,
    /// A failed statement is recorded as successful.
    ErrorRemoved,
    /// A failed COMMIT is recorded as successful.
    CommitClaimed,
    /// A successful statement is recorded as failed.
    ErrorAdded(ErrorClass),
    /// A blocked statement is recorded as not blocked.
    WaitRemoved,
    /// A statement that did not wait is recorded as blocked.
    WaitAdded,
    AnotherValueLeft,
    RowNotLeft,
    RowTooManyLeft,
}

pub struct Falsified {
    /// The changed step; `None` for the final rows.
    pub step: Option<usize>,
    pub change: Change,
    pub history: History,
}

impl Falsified {
    pub fn what(&self, history: &History) -> String {
        let step = self.step.map_or("the final rows", |s| history.steps[s].label.as_str());
        format!("{step}: {:?}", self.change)
    }

    /// Whether the rules may break at another statement. A statement that is
    /// allowed to fail changed nothing, and a later statement shows that it did;
    /// a deadlock without its victim lets two statements resume, one of them
    /// wrongly.
    pub fn may_show_elsewhere(&self, history: &History) -> bool {
        let error = self.step.and_then(|s| history.outcome(s).reply).and_then(EventKind::error);
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

/// All falsified runs of a recorded run, each with one change.
pub fn falsified(history: &History) -> Vec<Falsified> {
    let mut all = Vec::new();
    for at in 0..history.events.len() {
        let event = &history.events[at];
        let Some(step) = event.step else { continue };
        let mut add = |change, what: EventKind| {
            let mut history = history.clone();
            history.events[at].what = what;
            all.push(Falsified { step: Some(step), change, history });
        };
        let is_statement =
            matches!(sql::kind(&history.steps[step].sql), Kind::Select | Kind::Write);
        match &event.what {
            EventKind::Rows { columns, rows } => {
                for (change, rows) in other_rows(rows, columns.len()) {
                    add(change, EventKind::Rows { columns: columns.clone(), rows });
                }
            }
            EventKind::Affected { count } if is_statement => {
                add(Change::OneMoreChanged, EventKind::Affected { count: count + 1 });
                if let Some(count) = count.checked_sub(1) {
                    add(Change::OneLessChanged, EventKind::Affected { count });
                }
            }
            EventKind::Error(_) => {
                let what = match sql::kind(&history.steps[step].sql) {
                    Kind::Commit => {
                        all.extend(committed(history, at));
                        continue;
                    }
                    Kind::Select => EventKind::Rows { columns: Vec::new(), rows: Vec::new() },
                    Kind::Write => EventKind::Affected { count: 1 },
                    _ => continue,
                };
                add(Change::ErrorRemoved, what);
            }
            _ => {}
        }
        if matches!(event.what, EventKind::Rows { .. } | EventKind::Affected { .. }) && is_statement
        {
            for class in ERRORS {
                let error = DbError {
                    code: "falsified".into(),
                    sqlstate: None,
                    message: "it did not happen".into(),
                    class,
                    effect: ErrorEffect::Statement,
                };
                add(Change::ErrorAdded(class), EventKind::Error(error));
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

/// A failed COMMIT, recorded as successful.
fn committed(history: &History, at: usize) -> Option<Falsified> {
    let mut other = history.clone();
    let step = other.events[at].step;
    let session = other.events[at].session.clone();
    let rest = other.events[at..].iter_mut().filter(|e| e.session == session);
    let how = rest.filter_map(|e| match &mut e.what {
        EventKind::Ended { how, .. } => Some(how),
        _ => None,
    });
    *how.take(1).next()? = TxEnd::Committed;
    other.events[at].what = EventKind::Done;
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

/// Values of other row versions: one more and one less, as the cases write them.
fn other_values(value: &Value) -> Vec<Value> {
    match value {
        Value::Int(i) => vec![Value::Int(i + 1), Value::Int(i - 1)],
        _ => vec![Value::Int(4711)],
    }
}

/// A statement that did not wait, recorded as blocked.
fn with_wait(history: &History, step: usize) -> Option<Falsified> {
    let is_sent = |e: &Event| e.step == Some(step) && matches!(e.what, EventKind::Sent { .. });
    let sent = history.events.iter().position(is_sent).filter(|_| !history.outcome(step).waited)?;
    let session = history.steps[step].session.clone();
    let mut other = history.clone();
    let what = EventKind::Waiting { on: Vec::new() };
    other.events.insert(sent + 1, Event { session, step: Some(step), what });
    Some(Falsified { step: Some(step), change: Change::WaitAdded, history: other })
}

/// A statement that waited and then succeeded, recorded as not blocked.
fn without_wait(history: &History, step: usize) -> Option<Falsified> {
    let mine = |e: &Event| e.step == Some(step);
    let is = |e: &Event, what: fn(&EventKind) -> bool| mine(e) && what(&e.what);
    if !history.outcome(step).waited {
        return None;
    }
    let reply = history.outcome(step).reply?.clone();
    let sent =
        history.events.iter().position(|e| is(e, |w| matches!(w, EventKind::Sent { .. })))?;
    let mut other = history.clone();
    let session = history.steps[step].session.clone();
    let goes = |e: &Event| {
        let of_wait = |w: &EventKind| {
            matches!(w, EventKind::Waiting { .. } | EventKind::Resumed) || *w == reply
        };
        mine(e) && of_wait(&e.what)
    };
    other.events.retain(|e| !goes(e));
    other.events.insert(sent + 1, Event { session, step: Some(step), what: reply.clone() });
    Some(Falsified { step: Some(step), change: Change::WaitRemoved, history: other })
}

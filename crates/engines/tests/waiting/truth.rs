//! Compares the lock waits that the runner recorded with a model of the locks.

use isolde_model::History;
use isolde_model::history::{ErrorClass, Event, EventKind, TxEnd};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Waits,
    Free,
    /// Engines and versions differ here: either is accepted.
    Either,
}

/// A model of the locks that follows a run and computes which statements must
/// wait.
pub trait Model {
    /// Whether this statement must wait now.
    fn truth(&self, session: &str, sql: &str, waiting: &BTreeMap<String, String>) -> Truth;

    /// A statement has finished. `stays` is false when it keeps no locks: it
    /// failed, or ran outside of a transaction.
    fn finished(&mut self, session: &str, sql: &str, stays: bool);

    /// A transaction has ended.
    fn ended(&mut self, session: &str, committed: bool);
}

#[derive(Default)]
pub struct Tally {
    pub waits: usize,
    pub free: usize,
    /// How often a blocked statement had to keep waiting after a transaction
    /// ended.
    pub passed_on: usize,
}

pub fn check(history: &History, model: &mut dyn Model, tally: &mut Tally) {
    let wrong =
        |what: &str| -> ! { panic!("{what}\n{}", isolde_model::transcript::transcript(history)) };
    let mut waiting: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Vec<String> = Vec::new();
    let mut ended_since = false;
    for (at, event) in history.events.iter().enumerate() {
        if event.what == EventKind::Cancelled {
            wrong("a blocked statement was taken for a slow one and cancelled");
        }
        if let EventKind::Ended { how, .. } = &event.what {
            let committed = *how == TxEnd::Committed;
            model.ended(&event.session, committed);
            open.retain(|s| *s != event.session);
            ended_since = true;
        }
        let Some(step) = event.step else { continue };
        let sql = history.steps[step].sql.as_str();
        match &event.what {
            EventKind::Sent { .. } => {
                // All statements have settled: one that still waits must have a reason.
                for (session, sql) in &waiting {
                    if model.truth(session, sql, &waiting) == Truth::Free {
                        wrong(&format!("{session} waits for nothing: {sql}"));
                    }
                    tally.passed_on += usize::from(ended_since);
                }
                ended_since = false;
                let later = history.events[at + 1..]
                    .iter()
                    .take_while(|e| !matches!(e.what, EventKind::Sent { .. }));
                let mine = |e: &&Event| {
                    e.step == Some(step) && matches!(e.what, EventKind::Waiting { .. })
                };
                let waits = later.clone().any(|e| mine(&e));
                match (waits, model.truth(&event.session, sql, &waiting)) {
                    (true, Truth::Free) => wrong(&format!("taken for waiting, but free: {sql}")),
                    (false, Truth::Waits) => wrong(&format!("waits, but taken for free: {sql}")),
                    (true, _) => tally.waits += 1,
                    (false, _) => tally.free += 1,
                }
            }
            EventKind::Waiting { .. } => {
                waiting.insert(event.session.clone(), sql.into());
            }
            EventKind::Resumed => {
                waiting.remove(&event.session);
                // Other statements may be resuming too; only finished ones count
                // here. A statement outside of a transaction may have finished
                // before one that is recorded first.
                let alone = !open.contains(&event.session);
                if !alone && model.truth(&event.session, sql, &BTreeMap::new()) == Truth::Waits {
                    wrong(&format!("resumed while it had to wait: {sql}"));
                }
            }
            EventKind::Error(error) => {
                if !matches!(error.class, ErrorClass::Constraint | ErrorClass::Deadlock) {
                    wrong(&format!("{error}"));
                }
                model.finished(&event.session, sql, false);
            }
            EventKind::Affected { .. } | EventKind::Rows { .. } | EventKind::Done => {
                if sql == "begin" {
                    open.push(event.session.clone());
                }
                model.finished(&event.session, sql, open.contains(&event.session));
            }
            _ => {}
        }
    }
}

/// The setup of three rows with gaps between their keys.
pub const WITH_ROOM: [&str; 2] = [
    "create table t (id int primary key, v int, pad varchar(8000))",
    "insert into t values (10, 0, ''), (20, 0, ''), (30, 0, '')",
];

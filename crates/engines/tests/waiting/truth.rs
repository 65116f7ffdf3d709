//! Compares what the runner saw of a case with a model of the locks.

use isolde_core::History;
use isolde_core::history::{ErrorClass, Event, TxEnd, What};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Waits,
    Free,
    /// Engines and versions differ here; only that nothing is missed counts.
    Either,
}

/// Follows a run and knows who must wait.
pub trait Model {
    /// Whether this statement has to wait now.
    fn truth(&self, session: &str, sql: &str, waiting: &BTreeMap<String, String>) -> Truth;

    /// A statement came to its end; `stays` is false for what was alone or
    /// failed, and holds nothing for sure.
    fn finished(&mut self, session: &str, sql: &str, stays: bool);

    fn ended(&mut self, session: &str, committed: bool);
}

#[derive(Default)]
pub struct Tally {
    pub waits: usize,
    pub free: usize,
    /// Looks at a statement that had to go on waiting after something ended.
    pub passed_on: usize,
}

pub fn check(history: &History, model: &mut dyn Model, tally: &mut Tally) {
    let wrong =
        |what: &str| -> ! { panic!("{what}\n{}", isolde_core::transcript::transcript(history)) };
    let mut waiting: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Vec<String> = Vec::new();
    let mut ended_since = false;
    for (at, event) in history.events.iter().enumerate() {
        if event.what == What::Cancelled {
            wrong("it waited, and was taken for one that works too long");
        }
        if let What::Ended { how, .. } = &event.what {
            let committed = *how == TxEnd::Committed;
            model.ended(&event.session, committed);
            open.retain(|s| *s != event.session);
            ended_since = true;
        }
        let Some(step) = event.step else { continue };
        let sql = history.steps[step].sql.as_str();
        match &event.what {
            What::Sent { .. } => {
                // Everything has settled: who still waits has to.
                for (session, sql) in &waiting {
                    if model.truth(session, sql, &waiting) == Truth::Free {
                        wrong(&format!("{session} waits for nothing: {sql}"));
                    }
                    tally.passed_on += usize::from(ended_since);
                }
                ended_since = false;
                let later = history.events[at + 1..]
                    .iter()
                    .take_while(|e| !matches!(e.what, What::Sent { .. }));
                let mine =
                    |e: &&Event| e.step == Some(step) && matches!(e.what, What::Waiting { .. });
                let waits = later.clone().any(|e| mine(&e));
                match (waits, model.truth(&event.session, sql, &waiting)) {
                    (true, Truth::Free) => wrong(&format!("taken for waiting, but free: {sql}")),
                    (false, Truth::Waits) => wrong(&format!("waits, but taken for free: {sql}")),
                    (true, _) => tally.waits += 1,
                    (false, _) => tally.free += 1,
                }
            }
            What::Waiting { .. } => {
                waiting.insert(event.session.clone(), sql.into());
            }
            What::Resumed => {
                waiting.remove(&event.session);
                // Others may be on their way; only what is done counts here. What
                // is alone may have come and gone before one that is told first.
                let alone = !open.contains(&event.session);
                if !alone && model.truth(&event.session, sql, &BTreeMap::new()) == Truth::Waits {
                    wrong(&format!("resumed while it had to wait: {sql}"));
                }
            }
            What::Error(error) => {
                if !matches!(error.class, ErrorClass::Constraint | ErrorClass::Deadlock) {
                    wrong(&format!("{error}"));
                }
                model.finished(&event.session, sql, false);
            }
            What::Affected { .. } | What::Rows { .. } | What::Done => {
                if sql == "begin" {
                    open.push(event.session.clone());
                }
                model.finished(&event.session, sql, open.contains(&event.session));
            }
            _ => {}
        }
    }
}

/// Three rows with room between them.
pub const WITH_ROOM: [&str; 2] = [
    "create table t (id int primary key, v int, pad varchar(8000))",
    "insert into t values (10, 0, ''), (20, 0, ''), (30, 0, '')",
];

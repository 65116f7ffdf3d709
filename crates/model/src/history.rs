//! A history: what was sent, what came back, what waited, how each
//! transaction ended, and the rows at the end.
//!
//! Two runs of one case are the same run when their histories are equal; so
//! there are no times in it. Where several statements finish between two
//! submissions, the runner records them in a fixed order (a deadlock's victim,
//! the statement that was just sent, then the others in the order in which they
//! began to wait), because the order in which replies reach the client is
//! determined by the network, not by the database.

use crate::value::Row;
use crate::{Case, Level, Value};
pub use isolde_catalog::{ErrorClass, ErrorEffect, Follows, TargetInfo};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    pub isolde: String,
    pub case: String,
    #[serde(flatten)]
    pub on: TargetInfo,
    pub level: Option<Level>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    pub steps: Vec<SentStep>,
    pub events: Vec<Event>,
    pub transactions: Vec<Transaction>,
    pub final_state: Vec<FinalRows>,
    /// The server did not live to see the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub death: Option<ServerFailure>,
}

/// What became of a server in mid-run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFailure {
    pub how: FailureKind,
    pub why: String,
    /// The end of its log, where Isolde has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Died,
    /// It is there and does not answer.
    Hangs,
}

impl FailureKind {
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Died => "the server died",
            FailureKind::Hangs => "the server hangs",
        }
    }
}

impl std::fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.how.name(), self.why)
    }
}

/// A step of the case as the runner understood it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentStep {
    pub label: String,
    pub session: String,
    pub sql: String,
    /// Sent whatever became of its transaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anyway: bool,
}

impl SentStep {
    pub fn of(case: &Case, step: usize) -> SentStep {
        let label = case.label(step);
        let step = &case.steps[step];
        SentStep {
            label,
            session: step.session.clone(),
            sql: step.sql.clone(),
            anyway: step.anyway,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub session: String,
    /// Which step of the case; none for what the runner did by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    #[serde(flatten)]
    pub what: EventKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    Sent {
        /// What really went over the wire, where the engine needs other words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        as_sql: Option<String>,
    },
    Waiting {
        /// The sessions it waits for, where the server says so.
        #[serde(rename = "for", default, skip_serializing_if = "Vec::is_empty")]
        on: Vec<String>,
    },
    Resumed,
    Rows {
        columns: Vec<String>,
        rows: Vec<Row>,
    },
    Affected {
        count: u64,
    },
    Done,
    Error(DbError),
    NotSent {
        why: String,
    },
    Ended {
        transaction: usize,
        how: TxEnd,
    },
    /// The runner ended a statement that took too long.
    Cancelled,
    /// The runner rolled a transaction back, for the reason given.
    RolledBackByRunner {
        why: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct DbError {
    /// The engine's own code: 1213, 40001, SQLITE_BUSY.
    pub code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
    pub message: String,
    pub class: ErrorClass,
    pub effect: ErrorEffect,
}

impl DbError {
    /// The connection is gone, and this is all that is known of why.
    pub fn lost(message: impl Into<String>) -> DbError {
        DbError {
            code: "lost".into(),
            sqlstate: None,
            message: message.into(),
            class: ErrorClass::Lost,
            effect: ErrorEffect::Lost,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TxEnd {
    Committed,
    /// By a statement of the case, or by the runner at the end of the run.
    RolledBack,
    /// By the engine, or because it left no other way.
    Aborted,
    /// With its session or its server; what became of it is not known.
    Lost,
    /// In a way that the protocol does not report: prepared for two-phase
    /// commit, or ended inside of a procedure.
    Unknown,
}

impl TxEnd {
    pub fn name(self) -> &'static str {
        match self {
            TxEnd::Committed => "committed",
            TxEnd::RolledBack => "rolled back",
            TxEnd::Aborted => "aborted",
            TxEnd::Lost => "lost",
            TxEnd::Unknown => "not known",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    pub session: String,
    /// The step that began it.
    pub begin: usize,
    /// A statement that ran and committed by itself.
    pub autocommit: bool,
    pub how: TxEnd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinalRows {
    pub query: String,
    pub columns: Vec<String>,
    /// In the order of [`crate::value::compare_rows`].
    pub rows: Vec<Row>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DbError>,
}

/// All that happened to one step, gathered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutcome<'a> {
    pub waited: bool,
    pub waited_for: Vec<&'a str>,
    pub still_waiting: bool,
    pub reply: Option<&'a EventKind>,
}

impl History {
    /// The DDL statement that committed a transaction implicitly: the commit comes
    /// before the statement itself, which may then wait for a metadata lock.
    pub fn implicit_commit(&self, transaction: usize) -> Option<usize> {
        let ends = |event: &&Event| {
            matches!(event.what, EventKind::Ended { transaction: t, how: TxEnd::Committed }
                if t == transaction)
        };
        let step = self.events.iter().find(ends)?.step?;
        (isolde_sql::kind(&self.steps[step].sql) == isolde_sql::Kind::Ddl).then_some(step)
    }

    pub fn outcome(&self, step: usize) -> StepOutcome<'_> {
        let mut outcome = StepOutcome::default();
        for event in self.events.iter().filter(|e| e.step == Some(step)) {
            match &event.what {
                EventKind::Waiting { on } => {
                    outcome.waited = true;
                    outcome.still_waiting = true;
                    outcome.waited_for = on.iter().map(String::as_str).collect();
                }
                EventKind::Rows { .. }
                | EventKind::Affected { .. }
                | EventKind::Done
                | EventKind::Error(_)
                | EventKind::NotSent { .. } => {
                    outcome.still_waiting = false;
                    outcome.reply = Some(&event.what);
                }
                _ => {}
            }
        }
        outcome
    }

    /// How the last explicit transaction of a session ended, or its last
    /// statement if it had none.
    pub fn ending(&self, session: &str) -> Option<TxEnd> {
        let mine = || self.transactions.iter().rev().filter(|t| t.session == session);
        mine().find(|t| !t.autocommit).or_else(|| mine().next()).map(|t| t.how)
    }

    /// Whether a session was lost, perhaps with its server.
    pub fn lost_server(&self) -> bool {
        let lost = |error: &DbError| error.effect == ErrorEffect::Lost;
        self.death.is_some()
            || self.events.iter().any(|e| e.what.error().is_some_and(lost))
            || self.final_state.iter().any(|f| f.error.as_ref().is_some_and(lost))
    }

    /// Whether the runner ended a statement that did not end by itself. What
    /// came of it is then the runner's doing, and says nothing of the engine.
    pub fn was_cancelled(&self) -> bool {
        self.events.iter().any(|e| e.what == EventKind::Cancelled)
    }

    /// The same for people, with the statements by name; none where nothing
    /// was cancelled.
    pub fn cancelled(&self) -> Option<String> {
        let label = |e: &Event| e.step.map(|step| self.steps[step].label.as_str());
        let cancelled = self.events.iter().filter(|e| e.what == EventKind::Cancelled);
        let labels: Vec<&str> = cancelled.filter_map(label).collect();
        self.was_cancelled().then(|| {
            format!(
                "Isolde cancelled {}, which did not end by itself; what came after is Isolde's doing",
                labels.join(", ")
            )
        })
    }

    /// Steps in the order in which they finished: the actual schedule.
    pub fn actual_schedule(&self) -> Vec<usize> {
        self.events
            .iter()
            .filter(|e| {
                matches!(
                    e.what,
                    EventKind::Rows { .. }
                        | EventKind::Affected { .. }
                        | EventKind::Done
                        | EventKind::Error(_)
                )
            })
            .filter_map(|e| e.step)
            .collect()
    }
}

impl EventKind {
    pub fn error(&self) -> Option<&DbError> {
        match self {
            EventKind::Error(error) => Some(error),
            _ => None,
        }
    }

    pub fn rows(&self) -> Option<&[Vec<Value>]> {
        match self {
            EventKind::Rows { rows, .. } => Some(rows),
            _ => None,
        }
    }
}

//! What an engine says of itself, as data: its levels and what each promises,
//! how it waits, which errors end a transaction.

use crate::anomaly::Anomaly;
use crate::concurrency::{ConcurrencyModel, SerialOrderPromise, SnapshotAt};
use crate::error_class::{ErrorClass, ErrorEffect};
use crate::level::Level;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub levels: Vec<Promise>,
    pub default_level: Level,
    /// What a bare BEGIN of a case becomes on this engine.
    #[serde(default = "plain_begin")]
    pub begin: String,
    pub waiting: Waiting,
    #[serde(default)]
    pub ddl: Ddl,
    /// Errors with a meaning for transactions, the most specific first.
    #[serde(default)]
    pub errors: Vec<ErrorRule>,
    /// What every error not in the table does.
    #[serde(default = "statement_only")]
    pub other_errors: ErrorEffect,
    /// Where the levels are described.
    #[serde(default)]
    pub documentation: String,
    /// Written from documentation and never seen running.
    #[serde(default)]
    pub untested: bool,
    /// Levels at which transactions take effect in the order of their commits,
    /// so that reads can be compared with those of a serial run.
    #[serde(default)]
    pub commit_ordered: Vec<Level>,
    /// How transactions are kept apart.
    #[serde(default)]
    pub protocol: Protocol,
    /// What a plain read sees, for the levels at which it differs from what their names imply.
    #[serde(default, rename = "sees")]
    pub read_visibility: Vec<(Level, ReadVisibility)>,
}

/// How an engine isolates transactions, for the inference of the execution order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// Versions for readers, locks to the end of the transaction for writers.
    #[default]
    #[serde(rename = "mvcc-2pl")]
    Mvcc2pl,
    /// No statement is blocked; a COMMIT fails if another transaction has changed accessed rows.
    #[serde(rename = "occ")]
    Occ,
    /// Each transaction has a timestamp, and conflicts go in that order.
    #[serde(rename = "to")]
    TimestampOrdering,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Mvcc2pl, Protocol::Occ, Protocol::TimestampOrdering];

    pub fn name(self) -> &'static str {
        match self {
            Protocol::Mvcc2pl => "mvcc-2pl",
            Protocol::Occ => "occ",
            Protocol::TimestampOrdering => "to",
        }
    }
}

/// What a plain read sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadVisibility {
    /// What is there, committed or not.
    Latest,
    /// What was committed when its statement began.
    Committed,
    /// What was committed at the first statement of its transaction, and so do writes.
    Snapshot,
    /// What was committed at the first plain read of its transaction. Writes and locking
    /// reads see what is current.
    SnapshotOfFirstRead,
    /// What was committed at BEGIN. Writes and locking reads see what is current.
    SnapshotOfBegin,
    /// What is committed, and a shared lock keeps it so to the end of the transaction.
    Locked,
}

impl ReadVisibility {
    /// What the name of a level promises, where the engine says nothing else.
    pub fn by_name(level: Level) -> ReadVisibility {
        match level {
            Level::ReadUncommitted => ReadVisibility::Latest,
            Level::ReadCommitted => ReadVisibility::Committed,
            Level::RepeatableRead | Level::Snapshot | Level::Serializable => {
                ReadVisibility::Snapshot
            }
        }
    }

    fn by_model(model: &ConcurrencyModel) -> ReadVisibility {
        match model.snapshot.taken {
            SnapshotAt::Dirty => ReadVisibility::Latest,
            _ if model.locking.plain_reads_lock || model.locking.table_locks.is_some() => {
                ReadVisibility::Locked
            }
            SnapshotAt::Statement => ReadVisibility::Committed,
            SnapshotAt::FirstStatement => ReadVisibility::Snapshot,
            SnapshotAt::FirstRead => ReadVisibility::SnapshotOfFirstRead,
            SnapshotAt::Begin => ReadVisibility::SnapshotOfBegin,
        }
    }
}

/// The protocol of a run, with what its reads see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyControl {
    pub protocol: Protocol,
    #[serde(rename = "sees")]
    pub read_visibility: ReadVisibility,
}

fn plain_begin() -> String {
    "begin".into()
}

fn statement_only() -> ErrorEffect {
    ErrorEffect::Statement
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promise {
    pub level: Level,
    /// The anomalies that the documentation allows at this level; none when
    /// it does not say.
    #[serde(default)]
    pub allows: Option<Vec<Anomaly>>,
    /// How the engine provides the level, in a few words.
    #[serde(default)]
    pub by: String,
}

/// How a session that must wait shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// The call blocks, and a control connection can observe the lock wait.
    Probe,
    /// The call returns an error of class busy at once; the runner tries it
    /// again whenever another session has done something.
    Retry,
    /// Nothing ever waits.
    Never,
    /// The call blocks and no lock view shows it: after this long it counts as
    /// waiting. The fallback for drivers without a lock view.
    Timeout,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ddl {
    #[default]
    Transactional,
    CommitsImplicitly,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorRule {
    /// The engine's code, or the start of its SQLSTATE.
    pub code: String,
    /// Only errors whose message contains this text: some codes are used for many errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    pub class: ErrorClass,
    pub effect: ErrorEffect,
}

impl Profile {
    pub fn level_names(&self) -> Vec<Level> {
        self.levels.iter().map(|p| p.level).collect()
    }

    pub fn promise(&self, level: Level) -> Option<&Promise> {
        self.levels.iter().find(|p| p.level == level)
    }

    /// How transactions of a level are kept apart.
    pub fn control(&self, level: Level) -> ConcurrencyControl {
        let recorded = self.read_visibility.iter().find(|(of, _)| *of == level);
        let read_visibility = recorded.map_or_else(
            || ReadVisibility::by_name(level),
            |(_, read_visibility)| *read_visibility,
        );
        ConcurrencyControl { protocol: self.protocol, read_visibility }
    }

    /// Completes the profile of an engine that has rules: its concurrency models say in which
    /// order transactions take effect and what their reads see.
    pub fn completed_by(mut self, model: impl Fn(Level) -> Option<ConcurrencyModel>) -> Profile {
        for level in self.level_names() {
            let Some(model) = model(level) else { continue };
            let dirty = model.snapshot.taken == SnapshotAt::Dirty;
            if model.commit.serial_order == SerialOrderPromise::CommitOrder && !dirty {
                self.commit_ordered.push(level);
            }
            let visibility = ReadVisibility::by_model(&model);
            if visibility != ReadVisibility::by_name(level) {
                self.read_visibility.push((level, visibility));
            }
        }
        self
    }

    /// The class and effect of an error, by its code first and then by the
    /// start of its SQLSTATE.
    pub fn classify(
        &self,
        code: &str,
        sqlstate: Option<&str>,
        message: &str,
    ) -> (ErrorClass, ErrorEffect) {
        let says = |r: &&ErrorRule| r.says.as_ref().is_none_or(|text| message.contains(text));
        let by_code = self.errors.iter().filter(says).find(|r| r.code == code);
        let by_state = || {
            let starts = |r: &&ErrorRule| sqlstate.is_some_and(|s| s.starts_with(&r.code));
            self.errors.iter().filter(says).find(starts)
        };
        by_code
            .or_else(by_state)
            .map_or((ErrorClass::Other, self.other_errors), |r| (r.class, r.effect))
    }
}

/// Shorthand for the tables in the engines' files.
pub fn error(code: &str, class: ErrorClass, effect: ErrorEffect) -> ErrorRule {
    ErrorRule { code: code.into(), says: None, class, effect }
}

/// Shorthand: a level, how it is provided, and what its documentation allows.
pub fn promise(level: Level, by: &str, allows: &[Anomaly]) -> Promise {
    Promise { level, allows: Some(allows.to_vec()), by: by.into() }
}

//! What an engine says of itself, as data: its levels and what each promises,
//! how it waits, which errors end a transaction.

use crate::history::{ErrorClass, ErrorEffect};
use crate::{Anomaly, Level};
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
    /// What a plain read sees, at the levels where their names do not tell.
    #[serde(default)]
    pub sees: Vec<(Level, Sees)>,
}

/// How an engine keeps transactions apart, for who infers the order of what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// Versions for readers, locks to the end of the transaction for writers.
    #[default]
    #[serde(rename = "mvcc-2pl")]
    Mvcc2pl,
    /// Nobody waits; a COMMIT fails when somebody else has changed what was accessed.
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
pub enum Sees {
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

impl Sees {
    /// What the name of a level promises, where the engine says nothing else.
    pub fn by_name(level: Level) -> Sees {
        match level {
            Level::ReadUncommitted => Sees::Latest,
            Level::ReadCommitted => Sees::Committed,
            Level::RepeatableRead | Level::Snapshot | Level::Serializable => Sees::Snapshot,
        }
    }
}

/// The protocol of a run, with what its reads see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub protocol: Protocol,
    pub sees: Sees,
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
    /// The call blocks, and a control connection can tell.
    Probe,
    /// The call returns an error of class busy at once; the runner tries it
    /// again whenever another session has done something.
    Retry,
    /// Nothing ever waits.
    Never,
    /// The call blocks and nobody can tell: after this long it counts as
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
    /// Only errors that say this: some codes stand for anything.
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
    pub fn control(&self, level: Level) -> Control {
        let told = self.sees.iter().find(|(of, _)| *of == level);
        let sees = told.map_or_else(|| Sees::by_name(level), |(_, sees)| *sees);
        Control { protocol: self.protocol, sees }
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
pub fn rule(code: &str, class: ErrorClass, effect: ErrorEffect) -> ErrorRule {
    ErrorRule { code: code.into(), says: None, class, effect }
}

/// Shorthand: a level, how it is provided, and what its documentation allows.
pub fn promise(level: Level, by: &str, allows: &[Anomaly]) -> Promise {
    Promise { level, allows: Some(allows.to_vec()), by: by.into() }
}

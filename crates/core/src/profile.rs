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

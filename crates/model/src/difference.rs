//! A difference between what a run showed and what an oracle expected of it.

use crate::breach::Breach;
use crate::value::Row;
use serde::{Deserialize, Serialize};

/// The rule id used where each statement is allowed, but no serial order of the
/// transactions gives the result.
pub const NO_SERIAL_ORDER: &str = "serializable";

/// One way in which a run is not as expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// The final rows of a query.
    Final {
        query: String,
        columns: Vec<String>,
        concurrent: Vec<Row>,
        serial: Vec<Row>,
        /// In one and not, or not as often, in the other.
        only_concurrent: Vec<Row>,
        only_serial: Vec<Row>,
    },
    /// A statement went through in one run and failed in the other.
    Success { label: String, sql: String, concurrent: String, serial: String },
    /// A write changed more or fewer rows.
    Affected { label: String, sql: String, concurrent: u64, serial: u64 },
    /// A read returned other rows.
    Read { label: String, sql: String, concurrent: Vec<Row>, serial: Vec<Row> },
    /// What no rule of the engine allows; without a label the final rows.
    Rule {
        label: String,
        sql: String,
        rule: String,
        about: String,
        page: String,
        /// The breach as a sentence.
        why: String,
        /// The breach as data; findings of older versions have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        breach: Option<Box<Breach>>,
    },
    /// A cycle of dependencies that the level rules out, a sentence for each edge.
    Anomaly { class: String, meaning: String, cycle: Vec<String> },
    /// A session or the server was lost, or the engine says that it is broken.
    Broken { label: String, sql: String, error: String },
}

impl Difference {
    /// The statement that it is about; none for the final rows.
    pub fn label(&self) -> Option<&String> {
        match self {
            Difference::Final { .. } | Difference::Anomaly { .. } => None,
            Difference::Success { label, .. }
            | Difference::Affected { label, .. }
            | Difference::Read { label, .. }
            | Difference::Rule { label, .. }
            | Difference::Broken { label, .. } => Some(label),
        }
    }

    /// What kind of difference it is: two violations with other kinds are not
    /// the same violation.
    pub fn kind(&self) -> &'static str {
        match self {
            Difference::Final { .. } => "final rows",
            Difference::Success { .. } => "success",
            Difference::Affected { .. } => "affected",
            Difference::Read { .. } => "read",
            Difference::Rule { .. } => "rule",
            Difference::Anomaly { .. } => "anomaly",
            Difference::Broken { .. } => "broken",
        }
    }
}

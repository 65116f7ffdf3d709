//! A breach: how an observation breaks a rule, as data.
//!
//! The reference model reports breaches; [`Display`] makes sentences of them
//! for people, and [`Breach::id`] is what triage, groups and baselines compare:
//! it names no session, table or value and does not change with the English.

mod obstacle;

pub use obstacle::{KeyOwner, MissingParent, Obstacle, RowChange, RowRole};

use crate::history::ErrorClass;
use crate::value::{Row, rows_without};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// How an observation breaks a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Breach {
    /// A statement succeeded although this obstacle had to stop it.
    Proceeded { obstacle: Obstacle },
    /// A write reports another number of rows than predicted.
    RowCount {
        observed: u64,
        predicted: u64,
        /// It returned these rows, instead of counting them.
        returned: bool,
    },
    /// A statement returned other rows than predicted.
    Rows { diff: RowDiff },
    /// A statement used a row version that was not the newest.
    StaleVersion {
        /// It returned that version; otherwise it acted on it.
        returned: bool,
    },
    /// An error that no rule allows here.
    UnexpectedError { class: ErrorClass, code: String, message: String },
    /// A lock wait without a lock holder.
    UnexpectedWait { wait: Wait },
    /// COMMIT succeeded although it must wait for a reader.
    CommittedDespiteReader { reader: String },
    /// The final rows of a table are not those of the committed transactions.
    FinalRows { table: String, diff: RowDiff },
    /// A query at the end of the case does not fit the committed rows.
    FinalQuery { query: String, diff: RowDiff },
    /// Each statement is allowed, but no serial order explains them all.
    NoSerialOrder {
        /// What broke the serial order that explains the most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nearest: Option<Box<Breach>>,
        /// What breaks each serial order, where there are few.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<SerialAttempt>,
    },
}

/// A serial order that does not explain a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SerialAttempt {
    /// The sessions up to the one that breaks it.
    pub order: Vec<String>,
    /// The statement that breaks it; none for the final rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub breach: Box<Breach>,
}

impl Display for SerialAttempt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let place = self.step.as_deref().unwrap_or("at the end");
        write!(f, "in the order {}, {place}: {}", self.order.join(", "), self.breach)
    }
}

/// What is wrong with a lock wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Wait {
    /// The engine documents that nothing ever waits.
    NeverAllowed,
    /// No transaction holds a lock that the statement needs.
    NoHolder,
    /// The session that the server names holds no such lock.
    WrongHolder { named: String },
}

/// Rows added to and missing from an expected result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowDiff {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<Row>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Row>,
}

impl RowDiff {
    /// What separates two multisets of rows.
    pub fn between(observed: &[Row], predicted: &[Row]) -> RowDiff {
        RowDiff {
            extra: rows_without(observed, predicted),
            missing: rows_without(predicted, observed),
        }
    }
}

impl Display for RowDiff {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = |rows: &[Row]| {
            let cells = |row: &Row| {
                let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
                format!("({})", cells.join(", "))
            };
            rows.iter().map(cells).collect::<Vec<_>>().join(", ")
        };
        match (self.extra.is_empty(), self.missing.is_empty()) {
            (false, false) => write!(f, "{} instead of {}", text(&self.extra), text(&self.missing)),
            (false, true) => write!(f, "unexpected {}", text(&self.extra)),
            (true, _) => write!(f, "missing {}", text(&self.missing)),
        }
    }
}

impl Breach {
    /// Whether only the locking differs: a statement waited, did not wait or was
    /// aborted where the rules say otherwise, and its result may be right.
    pub fn is_about_locking(&self) -> bool {
        match self {
            Breach::Proceeded { obstacle } => obstacle.is_lock(),
            Breach::UnexpectedError { class, .. } => class.is_conflict(),
            Breach::UnexpectedWait { .. } | Breach::CommittedDespiteReader { .. } => true,
            Breach::RowCount { .. }
            | Breach::Rows { .. }
            | Breach::StaleVersion { .. }
            | Breach::FinalRows { .. }
            | Breach::FinalQuery { .. }
            | Breach::NoSerialOrder { .. } => false,
        }
    }

    /// A stable name of this kind of breach, for machines.
    pub fn id(&self) -> String {
        match self {
            Breach::Proceeded { obstacle } => format!("proceeded/{}", obstacle.id()),
            Breach::RowCount { observed, predicted, .. } if observed > predicted => {
                "row-count/more".into()
            }
            Breach::RowCount { .. } => "row-count/fewer".into(),
            Breach::Rows { .. } => "rows".into(),
            Breach::StaleVersion { returned: true } => "stale-version/returned".into(),
            Breach::StaleVersion { returned: false } => "stale-version/used".into(),
            Breach::UnexpectedError { class, .. } => format!("unexpected-error/{}", class.name()),
            Breach::UnexpectedWait { wait: Wait::NeverAllowed } => {
                "unexpected-wait/never-allowed".into()
            }
            Breach::UnexpectedWait { wait: Wait::NoHolder } => "unexpected-wait/no-holder".into(),
            Breach::UnexpectedWait { wait: Wait::WrongHolder { .. } } => {
                "unexpected-wait/wrong-holder".into()
            }
            Breach::CommittedDespiteReader { .. } => "committed-despite-reader".into(),
            Breach::FinalRows { .. } => "final-rows".into(),
            Breach::FinalQuery { .. } => "final-query".into(),
            Breach::NoSerialOrder { .. } => "no-serial-order".into(),
        }
    }

    /// What happened, without names and values: the same sentence for every
    /// case that breaks a rule in this way. `statement` is the kind of statement
    /// that is to blame: *read* or *write*.
    pub fn summary(&self, statement: &str) -> String {
        match self {
            Breach::Proceeded { obstacle } => {
                format!("a {statement} proceeded although {}", obstacle.describe(false))
            }
            Breach::RowCount { observed, predicted, .. } => {
                let more = if observed > predicted { "more" } else { "fewer" };
                format!("a {statement} changed {more} rows than predicted")
            }
            Breach::Rows { .. } => format!("a {statement} found other rows than predicted"),
            Breach::StaleVersion { .. } => {
                format!("a {statement} used a row version that was not the newest")
            }
            Breach::UnexpectedError { class, .. } => {
                format!("a {statement} failed with {}", class.noun())
            }
            Breach::UnexpectedWait { .. } => format!("a {statement} waited without a lock holder"),
            Breach::CommittedDespiteReader { .. } => {
                "a COMMIT did not wait for a transaction that was reading".into()
            }
            Breach::FinalRows { .. } => "the final rows differ from the prediction".into(),
            Breach::FinalQuery { .. } => {
                "a query at the end returned other rows than predicted".into()
            }
            Breach::NoSerialOrder { .. } => "no serial order explains it".into(),
        }
    }
}

impl Display for Breach {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Proceeded { obstacle } => write!(f, "it proceeded although {obstacle}"),
            Breach::RowCount { observed, predicted, returned } => {
                let did = if *returned { "returned" } else { "changed" };
                let rows = if *observed == 1 { "row" } else { "rows" };
                write!(f, "it {did} {observed} {rows}; the rules predict {predicted}")
            }
            Breach::Rows { diff } => write!(f, "it returned {diff}"),
            Breach::StaleVersion { returned } => {
                let does = if *returned { "returned" } else { "acted on" };
                write!(f, "it {does} a row version that was not the newest")
            }
            Breach::UnexpectedError { code, message, .. } => {
                write!(f, "it failed with {code} ({message}), and no rule allows an error here")
            }
            Breach::UnexpectedWait { wait } => match wait {
                Wait::NeverAllowed => f.write_str("it waited, although statements never wait here"),
                Wait::NoHolder => {
                    f.write_str("it waited, although no transaction holds a lock that it needs")
                }
                Wait::WrongHolder { named } => {
                    write!(f, "it waited for {named}, which holds no lock that it needs")
                }
            },
            Breach::CommittedDespiteReader { reader } => {
                write!(f, "it committed while {reader} was reading")
            }
            Breach::FinalRows { table, diff } => write!(f, "the final rows of {table}: {diff}"),
            Breach::FinalQuery { query, diff } => write!(f, "`{query}` at the end: {diff}"),
            Breach::NoSerialOrder { nearest, attempts } => {
                f.write_str("no serial order of the committed transactions explains it")?;
                if !attempts.is_empty() {
                    let each: Vec<String> = attempts.iter().map(ToString::to_string).collect();
                    return write!(f, ": {}", each.join("; "));
                }
                nearest.as_ref().map_or(Ok(()), |breach| write!(f, ": {breach}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn concurrent(theirs: RowChange, ours: RowChange) -> Breach {
        let (other, table) = ("s1".into(), "t".into());
        Breach::Proceeded { obstacle: Obstacle::ConcurrentChange { other, table, theirs, ours } }
    }

    #[test]
    fn breach_ids_do_not_depend_on_names_or_on_which_transaction_came_first() {
        let one = concurrent(RowChange::Delete, RowChange::Update);
        let other = concurrent(RowChange::Update, RowChange::Delete);
        assert_eq!(one.id(), "proceeded/concurrent-change/delete-update");
        assert_eq!(one.id(), other.id());
        assert_eq!(one.summary("write"), other.summary("write"));
        assert_ne!(one.to_string(), other.to_string());
        assert_ne!(one.id(), concurrent(RowChange::Value, RowChange::Value).id());
    }

    #[test]
    fn sentences_name_the_session_and_summaries_do_not() {
        let table = Some("t".to_string());
        let obstacle = Obstacle::RowLocked { holder: "s1".into(), table, role: RowRole::Needed };
        let breach = Breach::Proceeded { obstacle };
        assert_eq!(
            breach.to_string(),
            "it proceeded although s1 holds a lock on a row of t that it needs"
        );
        assert_eq!(
            breach.summary("write"),
            "a write proceeded although another transaction holds a lock on a row that it needs"
        );
    }

    #[test]
    fn row_diff_shows_extra_and_missing_rows() {
        let row = |n: i64| vec![Value::Int(n)];
        let diff = RowDiff::between(&[row(1), row(2)], &[row(2), row(3)]);
        assert_eq!(diff.to_string(), "(1) instead of (3)");
        assert_eq!(RowDiff::between(&[row(1)], &[]).to_string(), "unexpected (1)");
        assert_eq!(RowDiff::between(&[], &[row(1)]).to_string(), "missing (1)");
    }

    #[test]
    fn breaches_survive_a_round_trip_through_json() {
        let nearest = Some(Box::new(concurrent(RowChange::Delete, RowChange::Delete)));
        let attempts = vec![SerialAttempt {
            order: vec!["s1".into(), "s2".into()],
            step: Some("s2.1".into()),
            breach: Box::new(Breach::StaleVersion { returned: true }),
        }];
        let breach = Breach::NoSerialOrder { nearest, attempts };
        let text = serde_json::to_string(&breach).unwrap();
        assert_eq!(serde_json::from_str::<Breach>(&text).unwrap(), breach);
    }
}

//! A breach: how an observation breaks a rule, as data.
//!
//! The reference model reports breaches; [`Display`] makes sentences of them
//! for people, and [`Breach::id`] is what triage, groups and baselines compare:
//! it names no session, table or value and does not change with the English.

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

/// What had to stop a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Obstacle {
    /// Another transaction holds a lock on a row.
    RowLocked {
        holder: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<String>,
        role: RowRole,
    },
    /// Another transaction is writing a row with the same unique key.
    KeyLocked { holder: String },
    /// Another transaction reads or writes the table, which is locked as a whole.
    TableLocked { holder: String, table: String, writes: bool },
    /// Another transaction is writing to a database with a single writer.
    DatabaseLocked { holder: String },
    /// A row was changed after the snapshot that the statement works on, by the
    /// session that is named if one is known.
    RowChanged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<String>,
        role: RowRole,
    },
    /// Another transaction has committed since this one read.
    DatabaseChanged,
    /// Two transactions changed the same row in ways that exclude each other.
    ConcurrentChange { other: String, table: String, theirs: RowChange, ours: RowChange },
    /// Concurrent changes of one row that cannot be merged at COMMIT.
    MergeConflict { table: String },
    /// A unique key is taken.
    KeyTaken { owner: KeyOwner },
    /// The row that a foreign key refers to is missing.
    ParentMissing { table: Option<String>, parent: MissingParent },
    /// Rows refer to the row that the statement removes.
    ChildExists { child: String, added: bool },
    /// A column that must not be null.
    NotNull { column: String },
    /// A CHECK constraint.
    Check,
    /// The transaction is read only.
    ReadOnly,
}

/// What a row is to the statement that an obstacle stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowRole {
    /// It writes or otherwise needs the row.
    Needed,
    /// It writes the row.
    Written,
    /// It locks the row.
    Locked,
    /// It locks the row, and read it in a view of its own.
    LockedInView,
    /// Its condition selects the row.
    Searched,
    /// The row has the key that it inserts.
    KeyOwner,
    /// The row that its foreign key refers to.
    Parent,
    /// A key of the row that its foreign key refers to.
    ParentKey,
    /// The row that its foreign key refers to, and which is gone.
    DeletedParent,
    /// A row that refers to the row it changes.
    Child,
}

/// What a transaction did to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowChange {
    /// It deleted the row.
    Delete,
    /// It changed the row.
    Update,
    /// It changed the same column.
    Value,
}

/// The row that a unique key belongs to already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyOwner {
    /// A row that the statement sees.
    Visible,
    /// A row that it does not see.
    Invisible,
    /// A row of its snapshot.
    InSnapshot,
    /// A row that was committed since.
    CommittedSince,
    /// A row that was written since.
    WrittenSince,
    /// Another row of the merged table.
    Merged,
    /// A row, found when the statement gives another row a new key.
    OfNewKey,
}

/// Why the row that a foreign key refers to is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingParent {
    /// There is no such row.
    Absent,
    /// It is gone by the time of the COMMIT.
    Gone,
    /// The snapshot does not show it.
    Invisible,
    /// It is not in the merged tables.
    NotMerged,
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

impl Obstacle {
    /// Whether another transaction's lock is in the way, and not a row or a
    /// constraint.
    fn is_lock(&self) -> bool {
        match self {
            Obstacle::RowLocked { .. }
            | Obstacle::KeyLocked { .. }
            | Obstacle::TableLocked { .. }
            | Obstacle::DatabaseLocked { .. } => true,
            Obstacle::RowChanged { .. }
            | Obstacle::DatabaseChanged
            | Obstacle::ConcurrentChange { .. }
            | Obstacle::MergeConflict { .. }
            | Obstacle::KeyTaken { .. }
            | Obstacle::ParentMissing { .. }
            | Obstacle::ChildExists { .. }
            | Obstacle::NotNull { .. }
            | Obstacle::Check
            | Obstacle::ReadOnly => false,
        }
    }

    /// A stable name of this kind of obstacle, for machines. Which of two
    /// transactions came first when they changed one row is chance, so both
    /// orders have one name.
    pub fn id(&self) -> String {
        match self {
            Obstacle::RowLocked { role, .. } => format!("row-locked/{}", role.name()),
            Obstacle::KeyLocked { .. } => "key-locked".into(),
            Obstacle::TableLocked { .. } => "table-locked".into(),
            Obstacle::DatabaseLocked { .. } => "database-locked".into(),
            Obstacle::RowChanged { role, .. } => format!("row-changed/{}", role.name()),
            Obstacle::DatabaseChanged => "database-changed".into(),
            Obstacle::ConcurrentChange { theirs, ours, .. } => {
                let mut both = [theirs.name(), ours.name()];
                both.sort_unstable();
                format!("concurrent-change/{}-{}", both[0], both[1])
            }
            Obstacle::MergeConflict { .. } => "merge-conflict".into(),
            Obstacle::KeyTaken { owner } => match owner {
                KeyOwner::Visible => "key-taken".into(),
                KeyOwner::Invisible => "key-taken/invisible".into(),
                KeyOwner::InSnapshot => "key-taken/in-snapshot".into(),
                KeyOwner::CommittedSince => "key-taken/committed-since".into(),
                KeyOwner::WrittenSince => "key-taken/written-since".into(),
                KeyOwner::Merged => "key-taken/merged".into(),
                KeyOwner::OfNewKey => "key-taken/new-key".into(),
            },
            Obstacle::ParentMissing { parent, .. } => match parent {
                MissingParent::Absent => "parent-missing".into(),
                MissingParent::Gone => "parent-missing/gone".into(),
                MissingParent::Invisible => "parent-missing/invisible".into(),
                MissingParent::NotMerged => "parent-missing/not-merged".into(),
            },
            Obstacle::ChildExists { added: false, .. } => "child-exists".into(),
            Obstacle::ChildExists { added: true, .. } => "child-exists/added".into(),
            Obstacle::NotNull { .. } => "not-null".into(),
            Obstacle::Check => "check".into(),
            Obstacle::ReadOnly => "read-only".into(),
        }
    }

    /// The obstacle as a clause, with or without the names of this case.
    fn describe(&self, names: bool) -> String {
        let session = |name: &str| match names {
            true => name.to_string(),
            false => "another transaction".to_string(),
        };
        let of = |table: &Option<String>| match table {
            Some(table) if names => format!(" of {table}"),
            _ => String::new(),
        };
        match self {
            Obstacle::RowLocked { holder, table, role } => {
                let row = role.row(&of(table));
                format!("{} holds a lock on {row}", session(holder))
            }
            Obstacle::KeyLocked { holder } => {
                format!("{} is writing a row with its key", session(holder))
            }
            Obstacle::TableLocked { holder, table, writes } => {
                let does = if *writes { "writes" } else { "reads" };
                let table = if names { table.as_str() } else { "the table" };
                format!("{} {does} {table}", session(holder))
            }
            Obstacle::DatabaseLocked { holder } => format!("{} is writing", session(holder)),
            Obstacle::RowChanged { table, role, by } => match role {
                RowRole::DeletedParent => {
                    "the row that it refers to was deleted after its snapshot".into()
                }
                RowRole::LockedInView => "a row that it locks was changed after its view".into(),
                _ => {
                    let by = match by {
                        Some(session) if names => format!(" by {session}"),
                        _ => String::new(),
                    };
                    format!("{} was changed{by} after its snapshot", role.row(&of(table)))
                }
            },
            Obstacle::DatabaseChanged => "another transaction committed after its snapshot".into(),
            Obstacle::ConcurrentChange { other, table, theirs, ours } => {
                if !names && theirs != ours {
                    return "one transaction changed and another deleted the same row".into();
                }
                let row = match theirs {
                    RowChange::Value => format!("a value{}", of(&Some(table.clone()))),
                    _ => format!("a row{}", of(&Some(table.clone()))),
                };
                format!("{} {} {row} that it {}", session(other), theirs.past(), ours.past())
            }
            Obstacle::MergeConflict { table } => {
                let row = format!("a row{}", of(&Some(table.clone())));
                format!("another transaction committed other changes of {row}")
            }
            Obstacle::KeyTaken { owner } => match owner {
                KeyOwner::Visible => "its key is taken".into(),
                KeyOwner::Invisible => "a row that it does not see has its key".into(),
                KeyOwner::InSnapshot => "a key that it inserts was taken in its snapshot".into(),
                KeyOwner::CommittedSince => {
                    "another transaction committed a row with its key".into()
                }
                KeyOwner::WrittenSince => "another transaction has written its key since".into(),
                KeyOwner::Merged => "another row of the merged table has its key".into(),
                KeyOwner::OfNewKey => "its new key is taken".into(),
            },
            Obstacle::ParentMissing { table, parent } => match parent {
                MissingParent::Absent => {
                    format!("no row{} has the key that it refers to", of(table))
                }
                MissingParent::Gone => "the row that it refers to is gone".into(),
                MissingParent::Invisible => {
                    "its snapshot does not show the row that it refers to".into()
                }
                MissingParent::NotMerged => {
                    "a row of the merged tables refers to a row that does not exist".into()
                }
            },
            Obstacle::ChildExists { child, added } => {
                let rows = format!("rows{}", of(&Some(child.clone())));
                let since = if *added { " that were added since" } else { "" };
                format!("{rows}{since} refer to the row that it removes")
            }
            Obstacle::NotNull { column } if names => format!("{column} must not be null"),
            Obstacle::NotNull { .. } => "a column must not be null".into(),
            Obstacle::Check => "a CHECK constraint does not hold".into(),
            Obstacle::ReadOnly => "its transaction is read only".into(),
        }
    }
}

impl Display for Obstacle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(true))
    }
}

impl RowRole {
    fn name(self) -> &'static str {
        match self {
            RowRole::Needed => "needed",
            RowRole::Written => "written",
            RowRole::Locked => "locked",
            RowRole::LockedInView => "locked-in-view",
            RowRole::Searched => "searched",
            RowRole::KeyOwner => "key-owner",
            RowRole::Parent => "parent",
            RowRole::ParentKey => "parent-key",
            RowRole::DeletedParent => "deleted-parent",
            RowRole::Child => "child",
        }
    }

    /// The row as a noun phrase; `of` names its table, or is empty.
    fn row(self, of: &str) -> String {
        match self {
            RowRole::Needed => format!("a row{of} that it needs"),
            RowRole::Written => format!("a row{of} that it writes"),
            RowRole::Locked | RowRole::LockedInView => format!("a row{of} that it locks"),
            RowRole::Searched => format!("a row{of} that it looks for"),
            RowRole::KeyOwner => "the row that has its key".into(),
            RowRole::Parent | RowRole::DeletedParent => "the row that it refers to".into(),
            RowRole::ParentKey => "a key of the row that it refers to".into(),
            RowRole::Child => "a row that refers to it".into(),
        }
    }
}

impl RowChange {
    fn name(self) -> &'static str {
        match self {
            RowChange::Delete => "delete",
            RowChange::Update => "update",
            RowChange::Value => "value",
        }
    }

    fn past(self) -> &'static str {
        match self {
            RowChange::Delete => "deleted",
            RowChange::Update | RowChange::Value => "changed",
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

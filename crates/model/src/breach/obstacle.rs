//! Obstacles: what had to stop a statement that succeeded.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

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
    /// A row that the same statement has written, where it may not write a row twice.
    SameStatement,
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

impl Obstacle {
    /// Whether another transaction's lock is in the way, and not a row or a
    /// constraint.
    pub(super) fn is_lock(&self) -> bool {
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
                KeyOwner::SameStatement => "key-taken/same-statement".into(),
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
    pub(super) fn describe(&self, names: bool) -> String {
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
                KeyOwner::SameStatement => "it writes the row with its key a second time".into(),
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

//! Statements that change rows.

use super::query::{Expr, OrderKey, Select, SelectItem, Source};

/// A statement that changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Merge(Merge),
}

/// MERGE: what becomes of the rows of a table depends on whether a source has rows that match
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    pub table: String,
    pub alias: Option<String>,
    pub source: Source,
    pub on: Expr,
    pub clauses: Vec<MergeClause>,
}

/// One WHEN clause. The first one whose kind and condition fit is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeClause {
    pub kind: MatchKind,
    pub condition: Option<Expr>,
    pub action: MergeAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// A row of the table with a row of the source.
    Matched,
    /// A row of the source alone.
    NotMatched,
    /// A row of the table alone.
    NotMatchedBySource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeAction {
    Update(Vec<(String, Expr)>),
    Delete,
    /// Without columns, all of the table.
    Insert {
        columns: Vec<String>,
        values: Vec<Expr>,
    },
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    pub table: String,
    pub alias: Option<String>,
    /// Empty if the statement names none, which means all columns of the table in their order.
    pub columns: Vec<String>,
    pub source: InsertSource,
    pub conflict: Conflict,
    pub returning: Vec<SelectItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InsertSource {
    Values(Vec<Vec<Expr>>),
    Select(Box<Select>),
    /// `default values`
    Defaults,
}

/// What happens to a row whose key exists already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    Fail,
    /// The row is skipped: INSERT IGNORE of MySQL, INSERT OR IGNORE of SQLite, ON CONFLICT DO
    /// NOTHING elsewhere.
    Ignore,
    /// ON CONFLICT DO NOTHING where the dialect spells `Ignore` differently, or with the key that
    /// must conflict.
    DoNothing {
        key: Vec<String>,
    },
    /// The existing row is deleted: REPLACE.
    Replace,
    /// The existing row is updated. The key must be the conflicting one; only some dialects name
    /// it.
    Update {
        key: Vec<String>,
        sets: Vec<(String, Expr)>,
        filter: Option<Expr>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    pub table: String,
    pub alias: Option<String>,
    /// In generated statements only a filter: no engine defines which of several joined rows is
    /// used, so assigned values do not depend on the other table.
    pub join: Option<TableJoin>,
    /// With a join in the MySQL family a column may belong to the other table; only the schema
    /// decides.
    pub sets: Vec<(String, Expr)>,
    pub filter: Option<Expr>,
    pub order: Vec<OrderKey>,
    pub limit: Option<Expr>,
    pub returning: Vec<SelectItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    pub table: String,
    pub alias: Option<String>,
    pub join: Option<TableJoin>,
    pub filter: Option<Expr>,
    pub order: Vec<OrderKey>,
    pub limit: Option<Expr>,
    pub returning: Vec<SelectItem>,
}

/// The other table of a write with a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableJoin {
    pub table: String,
    pub alias: Option<String>,
    /// None for a cross join.
    pub on: Option<Expr>,
}

impl Write {
    /// The table whose rows it changes.
    pub fn table(&self) -> &str {
        match self {
            Write::Insert(insert) => &insert.table,
            Write::Update(update) => &update.table,
            Write::Delete(delete) => &delete.table,
            Write::Merge(merge) => &merge.table,
        }
    }

    /// The tables (and CTEs) that it names outside of expressions.
    pub(super) fn tables(&self) -> Vec<&str> {
        let mut names = vec![self.table()];
        match self {
            Write::Insert(insert) => {
                if let InsertSource::Select(select) = &insert.source {
                    names.extend(select.sources());
                }
            }
            Write::Update(Update { join, .. }) | Write::Delete(Delete { join, .. }) => {
                names.extend(join.iter().map(|join| join.table.as_str()));
            }
            Write::Merge(merge) => match &merge.source {
                Source::Table { name, .. } => names.push(name),
                Source::Derived { select, .. } => names.extend(select.sources()),
            },
        }
        names
    }
}

impl Update {
    /// An UPDATE of the table `name` without assignments.
    pub fn of(name: &str) -> Update {
        Update {
            table: name.into(),
            alias: None,
            join: None,
            sets: Vec::new(),
            filter: None,
            order: Vec::new(),
            limit: None,
            returning: Vec::new(),
        }
    }
}

impl Delete {
    /// A DELETE of all rows of the table `name`.
    pub fn from(name: &str) -> Delete {
        Delete {
            table: name.into(),
            alias: None,
            join: None,
            filter: None,
            order: Vec::new(),
            limit: None,
            returning: Vec::new(),
        }
    }
}

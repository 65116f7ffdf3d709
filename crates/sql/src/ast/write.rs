//! Statements that change rows.

use super::query::{Expr, OrderKey, Select, SelectItem};

/// A statement that changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Insert(Insert),
    Update(Update),
    Delete(Delete),
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
    /// it. Its parts are columns or expressions (`render::key_name`).
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

//! Tables, keys, constraints and indexes.

use super::query::{Expr, Select};
use super::value::{Literal, Type};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub views: Vec<View>,
}

/// A view. All columns of its query have names, and `*` is expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub name: String,
    pub select: Select,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// Empty if the table has none.
    pub primary_key: Vec<String>,
    pub unique: Vec<Vec<String>>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Expr>,
    pub indexes: Vec<Index>,
    /// The column by whose hash the table is partitioned.
    pub partitioned_by: Option<String>,
    /// The table options after the column list, as written, in lower case: `engine=innodb`,
    /// `without rowid`.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub of_type: Type,
    pub not_null: bool,
    pub default: Option<Literal>,
    pub generated: Option<Generated>,
    /// Set if the engine numbers rows in this column.
    pub numbered: Option<Numbered>,
    /// The values that rows and statements use; few, so that statements conflict.
    pub pool: Vec<Literal>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub from: Expr,
    pub stored: bool,
}

/// How the engine numbers a row when the INSERT gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// MySQL's family.
    AutoIncrement,
    /// SQLite.
    Autoincrement,
    /// INTEGER PRIMARY KEY of SQLite, an alias of the row id.
    RowId,
    /// PostgreSQL's types `serial`, `bigserial` and `smallserial`.
    Serial,
    IdentityAlways,
    IdentityByDefault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub column: String,
    pub parent: String,
    pub parent_column: String,
    pub on_delete: OnDelete,
    pub update_cascades: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// Checked at the end of the statement: NO ACTION.
    Refuse,
    /// Checked immediately: RESTRICT.
    Restrict,
    Cascade,
    SetNull,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    pub unique: bool,
    pub parts: Vec<IndexPart>,
    /// The condition of a partial index.
    pub only_where: Option<Expr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPart {
    pub of: Expr,
    pub descending: bool,
}

impl Schema {
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }

    /// The tables with a foreign key to the named table.
    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Table> {
        self.tables.iter().filter(move |t| t.foreign_keys.iter().any(|f| f.parent == name))
    }
}

impl Table {
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The unique keys: primary key, unique constraints, unique indexes of columns.
    pub fn keys(&self) -> Vec<Vec<String>> {
        let mut keys = Vec::new();
        if !self.primary_key.is_empty() {
            keys.push(self.primary_key.clone());
        }
        keys.extend(self.unique.iter().cloned());
        let of_columns = |index: &&Index| index.columns().len() == index.parts.len();
        for index in self.indexes.iter().filter(|i| i.unique).filter(of_columns) {
            keys.push(index.columns());
        }
        keys
    }

    pub fn is_in_a_key(&self, column: &str) -> bool {
        self.keys().iter().flatten().any(|c| c == column)
    }

    /// The columns that statements may write.
    pub fn writable(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|c| c.generated.is_none())
    }
}

impl Column {
    /// Whether arithmetic on its values cannot overflow its type.
    pub fn allows_arithmetic(&self) -> bool {
        self.pool.iter().all(Literal::is_small_number)
    }
}

impl Index {
    pub fn columns(&self) -> Vec<String> {
        let name = |part: &IndexPart| match &part.of {
            Expr::Column { name, .. } => Some(name.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(name).collect()
    }
}

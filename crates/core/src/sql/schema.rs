//! Tables, keys, constraints and indexes.

use super::expression::Expr;
use super::select::Select;
use super::value::{Literal, Type};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub views: Vec<View>,
}

/// A query under a name. Its columns have names, and no `*` is left in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub name: String,
    pub select: Select,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// Empty when the table has none.
    pub primary_key: Vec<String>,
    pub unique: Vec<Vec<String>>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Expr>,
    pub indexes: Vec<Index>,
    /// The column over whose hash the table is cut into parts.
    pub partitioned_by: Option<String>,
    /// What stands behind the columns, as it was written, in lower case:
    /// `engine=innodb`, `without rowid`.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub of_type: Type,
    pub not_null: bool,
    pub default: Option<Literal>,
    pub generated: Option<Generated>,
    /// The engine gives a row a number there when a write gives none.
    pub numbered: Option<Numbered>,
    /// The values that rows and statements use, few so that they meet.
    pub pool: Vec<Literal>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub from: Expr,
    pub stored: bool,
}

/// How the engine gives a row its number when a write gives none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbered {
    /// MySQL's family.
    AutoIncrement,
    /// SQLite.
    Autoincrement,
    /// SQLite's INTEGER PRIMARY KEY is the number that every row has.
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
    /// When the statement is done: NO ACTION.
    Refuse,
    /// At once.
    Restrict,
    Cascade,
    SetNull,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    pub unique: bool,
    pub parts: Vec<IndexPart>,
    /// Only rows for which this holds are in it.
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

    /// Tables whose rows hang on those of the named one.
    pub fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Table> {
        self.tables.iter().filter(move |t| t.foreign_keys.iter().any(|f| f.parent == name))
    }
}

impl Table {
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }

    /// The sets of columns that no two rows may share.
    pub fn keys(&self) -> Vec<Vec<String>> {
        let mut keys = Vec::new();
        if !self.primary_key.is_empty() {
            keys.push(self.primary_key.clone());
        }
        keys.extend(self.unique.iter().cloned());
        for index in self.indexes.iter().filter(|i| i.unique) {
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

    /// All expressions that are part of the table.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.checks.iter().for_each(|e| e.visit(see));
        for column in &self.columns {
            column.generated.iter().for_each(|g| g.from.visit(see));
        }
        for index in &self.indexes {
            index.parts.iter().map(|p| &p.of).chain(&index.only_where).for_each(|e| e.visit(see));
        }
    }
}

impl Column {
    /// Whether arithmetic on it cannot leave its type.
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

//! Version tables: tables with every version of every row of a replay, and the SQL
//! that makes the engine evaluate a statement on some of these versions.
//!
//! A version table has the columns of its table, with their types, defaults and
//! generating expressions, but not its keys and constraints, because it contains
//! several versions of one row. In an evaluated statement, a derived table of the
//! visible versions replaces each table that is read, under the table's own name.
//! Rows that the statement writes are inserted as new versions, so that the engine
//! itself converts and computes every value.

use isolde_model::Value;
use isolde_model::value::Row;
use isolde_sql::Source;
use isolde_sql::dialect::{Dialect, Family};
use isolde_sql::render::{Renderer, listed};
use isolde_sql::{Column, Expr, IndexPart, Literal, Schema, Table, TableJoin};

mod evaluation;
mod merge;

/// The id of a row version in its version table.
pub type VersionId = i64;

/// Prefix of the names of version tables. No table or column of a case has this name
/// or one of the following.
pub const PREFIX: &str = "isolde_v_";
const ROWS_PREFIX: &str = "isolde_w_";
const STAGE: &str = "isolde_s_";
pub(super) const ID: &str = "isolde_iv";
pub(super) const SOURCE: &str = "isolde_src";
pub(super) const MADE: &str = "isolde_made";

/// Placeholder for the number of the evaluation, which is stored with the versions
/// that it creates. The sender of the statement replaces it. No value of a case
/// equals it.
pub const MADE_MARK: &str = "8080808080808080";

/// The columns that a statement assigns, with the new values.
pub type Sets<'a> = &'a [(String, Expr)];

/// The table that a write searches, and its condition.
#[derive(Clone, Copy)]
pub struct Search<'s> {
    pub table: &'s str,
    pub alias: Option<&'s str>,
    pub join: Option<&'s TableJoin>,
    pub filter: Option<&'s Expr>,
}

impl<'s> Search<'s> {
    /// The name that qualifies the columns of the table.
    pub fn name(&self) -> &'s str {
        self.alias.unwrap_or(self.table)
    }

    /// The same without conditions.
    pub fn all(self) -> Search<'s> {
        Search { join: None, filter: None, ..self }
    }

    /// The same without the join.
    pub fn alone(self) -> Search<'s> {
        Search { join: None, ..self }
    }
}

pub struct VersionTables<'a> {
    pub schema: &'a Schema,
    pub dialect: &'a Dialect,
}

/// The versions of each table that a statement reads.
pub type View = Vec<Vec<VersionId>>;

/// The view of a statement, and the view of the queries inside of it.
#[derive(Clone, Copy)]
pub struct Views<'v> {
    pub outer: &'v View,
    pub inner: &'v View,
}

/// Marks the name of a table that the statement itself reads, not a query inside of
/// it.
pub(super) const OUTER: char = '\u{2}';

/// A key of a table: its columns and, for a partial index, the condition of the table
/// that decides whether a row is in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The cells of a version that the key consists of. Behind those of the columns of
    /// the table are the values of [`key_expressions`].
    pub columns: Vec<usize>,
    pub condition: Option<usize>,
    /// A plain unique key, which foreign keys may refer to.
    pub primary: bool,
}

/// The conditions that are evaluated for every version: CHECK constraints, then those
/// of partial unique indexes.
pub fn conditions(table: &Table) -> Vec<&Expr> {
    let partial = table.indexes.iter().filter(|i| i.unique).filter_map(|i| i.only_where.as_ref());
    table.checks.iter().chain(partial).collect()
}

/// The parts of unique indexes that are no columns. They are evaluated for every version.
pub fn key_expressions(table: &Table) -> Vec<&Expr> {
    let unique = table.indexes.iter().filter(|index| index.unique);
    let parts = unique.flat_map(|index| &index.parts).map(|part| &part.of);
    parts.filter(|part| !matches!(part, Expr::Column { .. })).collect()
}

pub fn keys(table: &Table) -> Vec<Key> {
    let places = |names: &[String]| -> Vec<usize> {
        let place = |name: &String| table.columns.iter().position(|c| c.name == *name);
        names.iter().filter_map(place).collect()
    };
    let mut keys = Vec::new();
    if !table.primary_key.is_empty() {
        let columns = places(&table.primary_key);
        keys.push(Key { columns, condition: None, primary: true });
    }
    let unique = |columns| Key { columns, condition: None, primary: false };
    keys.extend(table.unique.iter().map(|key| unique(places(key))));
    let mut partial = table.checks.len();
    let mut expression = table.columns.len();
    for index in table.indexes.iter().filter(|i| i.unique) {
        let condition = index.only_where.as_ref().map(|_| {
            partial += 1;
            partial - 1
        });
        let cell = |part: &IndexPart| match &part.of {
            Expr::Column { name, .. } => table.columns.iter().position(|c| c.name == *name),
            _ => {
                expression += 1;
                Some(expression - 1)
            }
        };
        let columns = index.parts.iter().filter_map(cell).collect();
        keys.push(Key { columns, condition, primary: false });
    }
    keys
}

impl VersionTables<'_> {
    /// The name of the table that contains the rows of one view of a table.
    pub(super) fn rows_name(&self, table: &Table) -> String {
        self.quoted(&format!("{ROWS_PREFIX}{}", table.name))
    }

    pub(super) fn name(&self, table: &Table) -> String {
        self.quoted(&format!("{PREFIX}{}", table.name))
    }

    /// A name of the case, quoted where the engine requires it.
    pub(super) fn quoted(&self, name: &str) -> String {
        Renderer::new(self.dialect).name(name).into_owned()
    }

    pub fn create_sql(&self) -> Vec<String> {
        let renderer = Renderer::new(self.dialect);
        let id = match self.dialect.family {
            Family::Sqlite => "integer primary key",
            Family::Mysql => "bigint auto_increment primary key",
            Family::Duckdb => "bigint default nextval('isolde_ids')",
            Family::Postgres | Family::Other => "bigserial primary key",
        };
        let mut sql = Vec::new();
        if self.dialect.family == Family::Duckdb {
            sql.push("create sequence if not exists isolde_ids".into());
        }
        for table in &self.schema.tables {
            let columns = listed(&table.columns, |c| {
                renderer.column(&Column { not_null: false, numbered: None, ..c.clone() })
            });
            let plain = listed(&table.columns, |c| {
                renderer.column(&Column {
                    not_null: false,
                    numbered: None,
                    generated: None,
                    ..c.clone()
                })
            });
            sql.push(format!("create table {} ({plain})", self.rows_name(table)));
            let name = self.name(table);
            sql.push(format!(
                "create table {name} ({ID} {id}, {SOURCE} bigint, {MADE} int, {columns})"
            ));
        }
        sql
    }

    /// Replaces the versions of an earlier case by the initial rows of this one.
    pub fn load_sql(&self, rows: &[Vec<Vec<Literal>>]) -> Vec<String> {
        let renderer = Renderer::new(self.dialect);
        let mut sql = Vec::new();
        for (table, rows) in self.schema.tables.iter().zip(rows) {
            sql.push(format!("delete from {}", self.name(table)));
            if rows.is_empty() {
                continue;
            }
            let written: Vec<usize> = (0..table.columns.len())
                .filter(|c| table.columns[*c].generated.is_none())
                .collect();
            let row = |row: &Vec<Literal>| {
                format!("(0, 0, {})", listed(&written, |c| renderer.literal(&row[*c])))
            };
            sql.push(format!(
                "insert into {} ({MADE}, {SOURCE}, {}) values {}",
                self.name(table),
                listed(&written, |c| self.quoted(&table.columns[*c].name)),
                listed(rows, row)
            ));
        }
        sql
    }

    /// The same, with the initial rows copied from the tables of the case.
    pub fn copy_sql(&self) -> Vec<String> {
        let mut sql = Vec::new();
        for table in &self.schema.tables {
            let name = self.name(table);
            let written: Vec<String> = table.writable().map(|c| self.quoted(&c.name)).collect();
            let columns = written.join(", ");
            sql.push(format!("delete from {name}"));
            sql.push(format!(
                "insert into {name} ({MADE}, {SOURCE}, {columns}) select 0, 0, {columns} from {}",
                self.quoted(&table.name)
            ));
        }
        sql
    }

    /// The columns in which versions are read back: id, source, columns, parts of keys,
    /// conditions.
    pub(super) fn read_back(&self, table: &Table) -> String {
        let renderer = Renderer::new(self.dialect);
        let mut items = vec![ID.to_string(), SOURCE.to_string()];
        items.extend(table.columns.iter().map(|c| self.quoted(&c.name)));
        items.extend(key_expressions(table).into_iter().map(|e| renderer.expr(e)));
        for condition in conditions(table) {
            let condition = renderer.expr(condition);
            items.push(format!("case when {condition} then 1 when not ({condition}) then 0 end"));
        }
        items.join(", ")
    }

    pub fn first_versions(&self, table: usize) -> Vec<String> {
        let table = &self.schema.tables[table];
        let (items, name) = (self.read_back(table), self.name(table));
        vec![format!("select {items} from {name} where {MADE} = 0")]
    }

    /// Inserts the rows of `rest` as versions, and reads them back.
    pub(super) fn make(&self, table: &Table, columns: &[&str], rest: &str) -> Vec<String> {
        let (items, name) = (self.read_back(table), self.name(table));
        let columns: String = columns.iter().map(|c| format!(", {}", self.quoted(c))).collect();
        let insert = format!("insert into {name} ({MADE}, {SOURCE}{columns}) {rest}");
        match self.dialect.family {
            Family::Sqlite | Family::Postgres | Family::Duckdb | Family::Other => {
                vec![format!("{insert} returning {items}")]
            }
            Family::Mysql => {
                let mut sql = match needs_staging(rest) {
                    true => self.staged(table, &columns, rest),
                    false => vec![insert],
                };
                let made = format!("where {MADE} = {MADE_MARK} order by {ID}");
                sql.push(format!("select {items} from {name} {made}"));
                sql
            }
        }
    }

    /// Inserts the rows of `rest` through a temporary table. INSERT … SELECT that reads its own
    /// table buffers the rows in one whose columns have the declared precision of the values.
    fn staged(&self, table: &Table, columns: &str, rest: &str) -> Vec<String> {
        let (name, staging) = (self.name(table), self.rows_name(table).replace(ROWS_PREFIX, STAGE));
        let all = format!("{MADE}, {SOURCE}{columns}");
        vec![
            format!("drop temporary table if exists {staging}"),
            format!("create temporary table {staging} like {name}"),
            format!("insert into {staging} ({all}) {rest}"),
            format!("insert into {name} ({all}) select {all} from {staging} order by {ID}"),
        ]
    }

    /// A query for some versions of a table.
    pub(super) fn versions(&self, table: &Table, ids: &[VersionId], with_id: bool) -> String {
        let ids = if ids.is_empty() { "0".into() } else { listed(ids, |id| id.to_string()) };
        let id = if with_id { format!("{ID}, ") } else { String::new() };
        let columns = listed(&table.columns, |c| self.quoted(&c.name));
        format!("select {id}{columns} from {} where {ID} in ({ids})", self.name(table))
    }

    /// The derived table that replaces a table in a statement over the views. It
    /// contains the version ids if the statement itself reads the table.
    pub(super) fn instead(&self, name: &str, views: Views<'_>) -> Option<String> {
        let outer = name.strip_prefix(OUTER);
        let (name, view) = outer.map_or((name, views.inner), |name| (name, views.outer));
        let place = self.schema.tables.iter().position(|t| t.name == name)?;
        let table = &self.schema.tables[place];
        Some(format!("({})", self.versions(table, &view[place], outer.is_some())))
    }
}

/// Whether values have more digits than their type declares, as PI() does.
fn needs_staging(sql: &str) -> bool {
    sql.to_ascii_lowercase().contains("pi(")
}

/// The new value of one column: from the action of a foreign key, or from IGNORE.
pub enum Put {
    Null,
    Literal(&'static str),
    Version { table: usize, id: VersionId, column: String },
}

pub(super) const EXCLUDED: &str = "isolde_excluded";

/// Marks a table as read by the statement itself. It keeps its name as a qualifier.
pub(super) fn mark_outer(source: &mut Source) {
    if let Source::Table { name, alias } = source {
        alias.get_or_insert_with(|| name.clone());
        name.insert(0, OUTER);
    }
}

pub(super) fn version_of(name: &str) -> Expr {
    qualified(name, ID)
}

pub(super) fn qualified(table: &str, column: &str) -> Expr {
    Expr::Column { qualifier: Some(table.into()), name: column.into() }
}

pub(super) fn made_mark() -> Expr {
    Expr::int(MADE_MARK.parse().expect("it is a number"))
}

/// The name of a column of the incoming version. It differs from that of the existing
/// row, which a name without a qualifier refers to.
pub(super) fn incoming_name(column: &str) -> String {
    format!("{EXCLUDED}_{column}")
}

/// Replaces references to the row that could not be inserted by columns of the
/// incoming version.
pub(super) fn with_incoming(value: &Expr) -> Expr {
    let mut value = value.clone();
    fn replace(e: &mut Expr) {
        if let Expr::Incoming(name) = e {
            *e = qualified(EXCLUDED, &incoming_name(name));
        }
        e.children_mut().into_iter().for_each(replace);
    }
    replace(&mut value);
    value
}

/// A version that was just created and read back.
pub struct Fresh {
    pub id: VersionId,
    pub source: VersionId,
    /// The columns of the table, and the values of [`key_expressions`].
    pub row: Row,
    pub conditions: Vec<Option<bool>>,
}

impl Fresh {
    pub fn read(table: &Table, mut cells: Row) -> Option<Fresh> {
        let cells_of_row = table.columns.len() + key_expressions(table).len();
        if cells.len() < 2 + cells_of_row {
            return None;
        }
        let conditions = cells.split_off(2 + cells_of_row);
        let row = cells.split_off(2);
        let condition = |v: &Value| whole(v).map(|n| n != 0);
        Some(Fresh {
            id: whole(&cells[0])?,
            source: whole(&cells[1])?,
            row,
            conditions: conditions.iter().map(condition).collect(),
        })
    }
}

pub fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int(i) => Some(*i),
        Value::Bool(b) => Some(i64::from(*b)),
        Value::Decimal(text) => text.parse().ok(),
        _ => None,
    }
}

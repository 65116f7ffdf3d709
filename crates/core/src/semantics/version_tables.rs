//! Version tables: every version of every row that a prediction knows,
//! and the SQL that makes the engine evaluate a statement on some of them.
//!
//! A version table has the columns of its table, with their types, defaults
//! and generating expressions, and none of its keys and constraints: versions
//! of one row stand side by side. What a statement reads is a derived table of
//! the versions it may see, under the table's own name; what it writes goes in
//! as new versions, so the engine itself converts and computes every value.

use super::store::VersionId;
use crate::Value;
use crate::sql::dialect::{Dialect, Family};
use crate::sql::render::{Renderer, Substitute, listed};
use crate::sql::select::Source;
use crate::sql::{
    Column, Expr, Insert, InsertSource, Join, JoinKind, Literal, Order, Schema, Select, SelectItem,
    Table, TableJoin,
};
use crate::value::Row;

/// Names that no table and no column of a case bears.
pub const PREFIX: &str = "isolde_v_";
const ROWS_PREFIX: &str = "isolde_w_";
const ID: &str = "isolde_iv";
const SOURCE: &str = "isolde_src";
const MADE: &str = "isolde_made";

/// Stands in a statement for the number under which its versions are filed;
/// who sends it puts the number in. No value of a case comes near it.
pub const MADE_MARK: &str = "8080808080808080";

/// A column set, as what a new version gets.
pub type Sets<'a> = &'a [(String, Expr)];

/// What a write looks for, and in which table.
#[derive(Clone, Copy)]
pub struct Search<'s> {
    pub table: &'s str,
    pub alias: Option<&'s str>,
    pub join: Option<&'s TableJoin>,
    pub filter: Option<&'s Expr>,
}

impl<'s> Search<'s> {
    /// The name under which the table's columns are reached.
    fn name(&self) -> &'s str {
        self.alias.unwrap_or(self.table)
    }

    /// The same without conditions.
    pub fn all(self) -> Search<'s> {
        Search { join: None, filter: None, ..self }
    }

    /// The same without a partner.
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

/// What a statement reads, and what the queries inside of it read.
#[derive(Clone, Copy)]
pub struct Views<'v> {
    pub outer: &'v View,
    pub inner: &'v View,
}

/// Marks a table as one of the statement itself, not of a query inside.
const OUTER: char = '\u{2}';

/// A key of a table: its columns, and which condition of the table says that
/// a row takes part in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub columns: Vec<usize>,
    pub condition: Option<usize>,
    /// A plain unique key, which foreign keys may refer to.
    pub primary: bool,
}

/// What must hold of every row.
pub fn conditions(table: &Table) -> Vec<&Expr> {
    let partial = table.indexes.iter().filter(|i| i.unique).filter_map(|i| i.only_where.as_ref());
    table.checks.iter().chain(partial).collect()
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
    for index in table.indexes.iter().filter(|i| i.unique) {
        let condition = index.only_where.as_ref().map(|_| {
            partial += 1;
            partial - 1
        });
        keys.push(Key { columns: places(&index.columns()), condition, primary: false });
    }
    keys
}

impl VersionTables<'_> {
    /// The table that holds one view of a table.
    fn rows_name(&self, table: &Table) -> String {
        self.quoted(&format!("{ROWS_PREFIX}{}", table.name))
    }

    fn name(&self, table: &Table) -> String {
        self.quoted(&format!("{PREFIX}{}", table.name))
    }

    /// A name of the case, as the engine takes it.
    fn quoted(&self, name: &str) -> String {
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

    /// From whatever the last case left to the first rows of this one.
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

    /// The same where the first rows stand in the tables themselves.
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

    /// What is read back of versions: id, source, columns, conditions.
    fn read_back(&self, table: &Table) -> String {
        let renderer = Renderer::new(self.dialect);
        let mut items = vec![ID.to_string(), SOURCE.to_string()];
        items.extend(table.columns.iter().map(|c| self.quoted(&c.name)));
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

    /// Makes versions from the statement, and reads them back.
    fn make(&self, table: &Table, columns: &[&str], rest: &str) -> Vec<String> {
        let (items, name) = (self.read_back(table), self.name(table));
        let columns: String = columns.iter().map(|c| format!(", {}", self.quoted(c))).collect();
        let insert = format!("insert into {name} ({MADE}, {SOURCE}{columns}) {rest}");
        match self.dialect.family {
            Family::Sqlite | Family::Postgres | Family::Duckdb | Family::Other => {
                vec![format!("{insert} returning {items}")]
            }
            Family::Mysql => vec![
                insert,
                format!("select {items} from {name} where {MADE} = {MADE_MARK} order by {ID}"),
            ],
        }
    }

    /// The versions of a table, as a query.
    fn versions(&self, table: &Table, ids: &[VersionId], with_id: bool) -> String {
        let ids = if ids.is_empty() { "0".into() } else { listed(ids, |id| id.to_string()) };
        let id = if with_id { format!("{ID}, ") } else { String::new() };
        let columns = listed(&table.columns, |c| self.quoted(&c.name));
        format!("select {id}{columns} from {} where {ID} in ({ids})", self.name(table))
    }

    /// What stands for each table in a query over the views; those of the
    /// statement itself have their versions' numbers in it.
    fn instead(&self, name: &str, views: Views<'_>) -> Option<String> {
        let outer = name.strip_prefix(OUTER);
        let (name, view) = outer.map_or((name, views.inner), |name| (name, views.outer));
        let place = self.schema.tables.iter().position(|t| t.name == name)?;
        let table = &self.schema.tables[place];
        Some(format!("({})", self.versions(table, &view[place], outer.is_some())))
    }

    pub fn select(&self, select: &Select, view: &View) -> Vec<String> {
        let views = Views { outer: view, inner: view };
        let substitute: Substitute = &|name| self.instead(name, views);
        let plain = Select { locking: None, ..select.clone() };
        vec![Renderer::reading(self.dialect, substitute).select(&plain)]
    }

    /// The same query over tables that hold the view.
    pub fn select_materialised(&self, select: &Select, view: &View) -> Vec<String> {
        let mut sql = Vec::new();
        let names = select.sources();
        for (place, table) in self.schema.tables.iter().enumerate() {
            if !names.contains(&table.name.as_str()) {
                continue;
            }
            let rows = self.rows_name(table);
            let columns = listed(&table.columns, |c| self.quoted(&c.name));
            sql.push(format!("delete from {rows}"));
            let versions = self.versions(table, &view[place], false);
            sql.push(format!("insert into {rows} ({columns}) {versions}"));
        }
        let substitute: Substitute = &|name| {
            let table = self.schema.table(name)?;
            Some(self.rows_name(table))
        };
        let plain = Select { locking: None, ..select.clone() };
        sql.push(Renderer::reading(self.dialect, substitute).select(&plain));
        sql
    }

    /// A query whose rows begin with the numbers of the versions that they
    /// were made of, one for each source.
    pub fn select_with_sources(&self, select: &Select, views: Views<'_>) -> Vec<String> {
        let substitute: Substitute = &|name| self.instead(name, views);
        let names = select.from_and_joined().filter_map(Source::visible_name);
        let mut items: Vec<SelectItem> = names.map(|name| version_of(name).into()).collect();
        items.extend(select.items.iter().cloned());
        let order = Order::None;
        let mut plain = Select { locking: None, items, order, ..select.clone() };
        let joined = plain.joins.iter_mut().map(|j| &mut j.source);
        plain.from.iter_mut().chain(joined).for_each(mark_outer);
        vec![Renderer::reading(self.dialect, substitute).select(&plain)]
    }

    /// The versions that an UPDATE makes of those that it finds.
    pub fn update(&self, search: Search<'_>, sets: Sets<'_>, views: Views<'_>) -> Vec<String> {
        let of = self.schema.table(search.table).expect("a table of the schema");
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let mut items = vec![made_mark(), version_of(search.name())];
        items.extend(written.iter().map(|column| match sets.iter().find(|(c, _)| c == column) {
            Some((_, value)) => value.clone(),
            None => qualified(search.name(), column),
        }));
        let select = self.targets(search, items, views);
        self.make(of, &written, &select)
    }

    /// The versions that a write finds in the view.
    pub fn found(&self, search: Search<'_>, views: Views<'_>) -> Vec<String> {
        vec![self.targets(search, vec![version_of(search.name())], views)]
    }

    /// The same with the partner's version in a join.
    pub fn found_pairs(&self, search: Search<'_>, views: Views<'_>) -> Vec<String> {
        let partner = search.join.map(|j| version_of(j.alias.as_deref().unwrap_or(&j.table)));
        let items = std::iter::once(version_of(search.name())).chain(partner).collect();
        vec![self.targets(search, items, views)]
    }

    fn targets(&self, search: Search<'_>, items: Vec<Expr>, views: Views<'_>) -> String {
        let substitute: Substitute = &|name| self.instead(name, views);
        let source = |table: &str, alias: Option<&str>| {
            let alias = alias.map(str::to_string);
            let mut source = Source::Table { name: table.into(), alias };
            mark_outer(&mut source);
            source
        };
        let join = |j: &TableJoin| Join {
            kind: if j.on.is_some() { JoinKind::Inner } else { JoinKind::Cross },
            source: source(&j.table, j.alias.as_deref()),
            on: j.on.clone(),
        };
        let select = Select {
            items: items.into_iter().map(SelectItem::from).collect(),
            from: Some(source(search.table, search.alias)),
            joins: search.join.map(join).into_iter().collect(),
            filter: search.filter.cloned(),
            ..Select::default()
        };
        Renderer::reading(self.dialect, substitute).select(&select)
    }

    /// The rows that an INSERT brings, as versions, in its order.
    pub fn incoming(&self, insert: &Insert, view: &View) -> Vec<String> {
        let table = self.schema.table(&insert.table).expect("a table of the schema");
        let views = Views { outer: view, inner: view };
        let substitute: Substitute = &|name| self.instead(name, views);
        let renderer = Renderer::reading(self.dialect, substitute);
        let columns: Vec<&str> = match (&insert.source, insert.columns.is_empty()) {
            (InsertSource::Values(_) | InsertSource::Select(_), true) => {
                table.writable().map(|c| c.name.as_str()).collect()
            }
            _ => insert.columns.iter().map(String::as_str).collect(),
        };
        let rest = match &insert.source {
            InsertSource::Values(rows) => {
                let row = |row: &Vec<Expr>| {
                    let cells: String =
                        row.iter().map(|e| format!(", {}", renderer.expr(e))).collect();
                    format!("({MADE_MARK}, 0{cells})")
                };
                format!("values {}", listed(rows, row))
            }
            InsertSource::Select(select) => {
                let mut select = (**select).clone();
                select.items.splice(0..0, [made_mark().into(), Expr::int(0).into()]);
                renderer.select(&select)
            }
            InsertSource::Defaults => format!("values ({MADE_MARK}, 0)"),
        };
        self.make(table, &columns, &rest)
    }

    /// What an upsert makes of a row that is there and one that comes.
    pub fn upserted(
        &self,
        table: &str,
        sets: Sets<'_>,
        existing: VersionId,
        incoming: VersionId,
    ) -> Vec<String> {
        let of = self.schema.table(table).expect("a table of the schema");
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let mut items = vec![made_mark(), version_of(table)];
        items.extend(written.iter().map(|column| match sets.iter().find(|(c, _)| c == column) {
            Some((_, value)) => with_incoming(value),
            None => qualified(table, column),
        }));
        let renderer = Renderer::new(self.dialect);
        let select = format!(
            "select {} from ({}) as {} cross join ({}) as {EXCLUDED}",
            listed(&items, |e| renderer.expr(e)),
            self.versions(of, &[existing], true),
            self.quoted(table),
            self.versions(of, &[incoming], false)
        );
        self.make(of, &written, &select)
    }

    /// A version with one column set, as a foreign key's action does.
    pub fn with_column(
        &self,
        table: usize,
        id: VersionId,
        column: &str,
        from: &Parent,
    ) -> Vec<String> {
        let of = &self.schema.tables[table];
        let written: Vec<&str> = of.writable().map(|c| c.name.as_str()).collect();
        let value = match from {
            Parent::Null => "null".into(),
            Parent::Version { table: parent, id, column } => format!(
                "(select {} from {} where {ID} = {id})",
                self.quoted(column),
                self.name(&self.schema.tables[*parent])
            ),
        };
        let cells: String = written
            .iter()
            .map(|c| match *c == column {
                true => format!(", {value}"),
                false => format!(", {}", self.quoted(c)),
            })
            .collect();
        let select =
            format!("select {MADE_MARK}, {ID}{cells} from {} where {ID} = {id}", self.name(of));
        self.make(of, &written, &select)
    }
}

/// What a foreign key's action puts into a child's column.
pub enum Parent {
    Null,
    Version { table: usize, id: VersionId, column: String },
}

const EXCLUDED: &str = "isolde_excluded";

/// The table is one of the statement itself; it keeps its name for its columns.
fn mark_outer(source: &mut Source) {
    if let Source::Table { name, alias } = source {
        alias.get_or_insert_with(|| name.clone());
        name.insert(0, OUTER);
    }
}

fn version_of(name: &str) -> Expr {
    qualified(name, ID)
}

fn qualified(table: &str, column: &str) -> Expr {
    Expr::Column { qualifier: Some(table.into()), name: column.into() }
}

fn made_mark() -> Expr {
    Expr::int(MADE_MARK.parse().expect("it is a number"))
}

/// The value that could not be inserted is a column of the incoming version.
fn with_incoming(value: &Expr) -> Expr {
    let mut value = value.clone();
    fn replace(e: &mut Expr) {
        if let Expr::Incoming(name) = e {
            *e = qualified(EXCLUDED, name);
        }
        e.children_mut().into_iter().for_each(replace);
    }
    replace(&mut value);
    value
}

/// A version as it was read back: id, source, columns, conditions.
pub struct Fresh {
    pub id: VersionId,
    pub source: VersionId,
    pub row: Row,
    pub conditions: Vec<Option<bool>>,
}

impl Fresh {
    pub fn read(table: &Table, mut cells: Row) -> Option<Fresh> {
        let columns = table.columns.len();
        if cells.len() < 2 + columns {
            return None;
        }
        let conditions = cells.split_off(2 + columns);
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

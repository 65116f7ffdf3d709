//! A fixture: the tables and rows that a run starts from, as SQL.

use crate::ast::{Literal, Schema, Table};
use crate::dialect::Dialect;
use crate::render::{Renderer, listed};

/// The rows of one table: one cell per column. Cells of generated columns hold
/// NULL and are never written.
pub type Rows = Vec<Vec<Literal>>;

/// Tables, and for each table its first rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixture {
    pub schema: Schema,
    pub rows: Vec<Rows>,
    pub dialect: Dialect,
}

impl Fixture {
    pub fn create_sql(&self) -> Vec<String> {
        create_sql(&self.schema, &self.dialect)
    }

    pub fn reset_sql(&self) -> Vec<String> {
        reset_sql(&self.schema, &self.rows, &self.dialect)
    }
}

/// CREATE statements of all tables and indexes.
pub fn create_sql(schema: &Schema, dialect: &Dialect) -> Vec<String> {
    let renderer = Renderer::new(dialect);
    schema.tables.iter().flat_map(|t| renderer.create_table(t)).collect()
}

/// INSERT statements of the first rows, parents first.
pub fn insert_sql(schema: &Schema, rows: &[Rows], dialect: &Dialect) -> Vec<String> {
    let tables = schema.tables.iter().zip(rows);
    tables.filter_map(|(table, rows)| insert_rows(table, rows, dialect)).collect()
}

fn insert_rows(table: &Table, rows: &Rows, dialect: &Dialect) -> Option<String> {
    let written: Vec<usize> =
        (0..table.columns.len()).filter(|c| table.columns[*c].generated.is_none()).collect();
    if rows.is_empty() || written.is_empty() {
        return None;
    }
    let renderer = Renderer::new(dialect);
    let cells = |row: &Vec<Literal>| listed(&written, |c| renderer.literal(&row[*c]));
    Some(format!(
        "insert into {} ({}) values {}",
        table.name,
        listed(&written, |c| table.columns[*c].name.clone()),
        listed(rows, |row| format!("({})", cells(row)))
    ))
}

/// Replaces any rows by the first rows: children are deleted first and
/// inserted last.
pub fn reset_sql(schema: &Schema, rows: &[Rows], dialect: &Dialect) -> Vec<String> {
    let tables = schema.tables.iter().rev();
    let mut sql: Vec<String> = tables.map(|t| format!("delete from {}", t.name)).collect();
    sql.extend(insert_sql(schema, rows, dialect));
    sql
}

/// One query per table that reads all its columns, by name.
pub fn final_sql(schema: &Schema) -> Vec<String> {
    let columns = |table: &Table| listed(&table.columns, |c| c.name.clone());
    let query = |table: &Table| format!("select {} from {}", columns(table), table.name);
    schema.tables.iter().map(query).collect()
}

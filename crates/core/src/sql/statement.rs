//! Statements of a transaction.
//!
//! A new kind of statement is a variant here: the matches in this file say
//! how it is walked, written down and counted. What makes it is one line in
//! the table of `make/mod.rs`.

use super::expression::Expr;
use super::render::Renderer;
use super::schema::{Index, Schema};
use super::select::{Select, sources_below};
use super::value::Type;
use super::write::{Delete, Insert, InsertSource, TableJoin, Update};
use crate::sql::dialect::Dialect;
use crate::sql::feature::Feature;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stmt {
    Select(Select),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    CreateIndex { table: String, index: Index },
    DropIndex { table: String, index: String },
    AddColumn { table: String, column: String, of_type: Type },
    Truncate(String),
    Prepare { name: String, statement: Box<Stmt> },
    Execute(String),
}

impl Stmt {
    /// One line of SQL, without a semicolon.
    pub fn render(&self, dialect: &Dialect) -> String {
        let renderer = Renderer::new(dialect);
        match self {
            Stmt::Select(select) => renderer.select(select),
            Stmt::Insert(insert) => renderer.insert(insert),
            Stmt::Update(update) => renderer.update(update),
            Stmt::Delete(delete) => renderer.delete(delete),
            Stmt::Savepoint(name) => format!("savepoint {name}"),
            Stmt::RollbackTo(name) => format!("rollback to savepoint {name}"),
            Stmt::Release(name) => format!("release savepoint {name}"),
            Stmt::CreateIndex { table, index } => renderer.create_index(table, index),
            Stmt::DropIndex { table, index } => renderer.drop_index(table, index),
            Stmt::AddColumn { table, column, of_type } => {
                format!("alter table {table} add column {column} {}", dialect.type_name(*of_type))
            }
            Stmt::Truncate(table) => format!("truncate table {table}"),
            Stmt::Prepare { name, statement } => renderer.prepare(name, statement),
            Stmt::Execute(name) => format!("execute {name}"),
        }
    }

    /// All expressions in it.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            Stmt::Select(select) => select.visit(see),
            Stmt::Insert(insert) => insert.visit(see),
            Stmt::Update(update) => update.visit(see),
            Stmt::Delete(delete) => delete.visit(see),
            Stmt::CreateIndex { index, .. } => {
                let parts = index.parts.iter().map(|p| &p.of);
                parts.chain(&index.only_where).for_each(|e| e.visit(see));
            }
            Stmt::Prepare { statement, .. } => statement.visit(see),
            Stmt::Savepoint(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_)
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_)
            | Stmt::Execute(_) => {}
        }
    }

    /// The tables (and CTEs) that it names.
    pub fn tables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        match self {
            Stmt::Select(select) => return select.sources(),
            Stmt::Insert(insert) => {
                names.push(&insert.table);
                if let InsertSource::Select(select) = &insert.source {
                    names.extend(select.sources());
                }
            }
            Stmt::Update(update) => names.extend(with_partner(&update.table, &update.join)),
            Stmt::Delete(delete) => names.extend(with_partner(&delete.table, &delete.join)),
            Stmt::CreateIndex { table, .. }
            | Stmt::DropIndex { table, .. }
            | Stmt::AddColumn { table, .. }
            | Stmt::Truncate(table) => names.push(table),
            Stmt::Prepare { statement, .. } => return statement.tables(),
            Stmt::Savepoint(_) | Stmt::RollbackTo(_) | Stmt::Release(_) | Stmt::Execute(_) => {}
        }
        let mut below = Vec::new();
        self.visit(&mut |e| below.extend(sources_below(e)));
        names.extend(below);
        names
    }

    /// The table whose rows it changes.
    pub fn written_table(&self) -> Option<&str> {
        match self {
            Stmt::Insert(insert) => Some(&insert.table),
            Stmt::Update(update) => Some(&update.table),
            Stmt::Delete(delete) => Some(&delete.table),
            Stmt::Prepare { statement, .. } => statement.written_table(),
            _ => None,
        }
    }

    pub fn is_ddl(&self) -> bool {
        match self {
            Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_) => true,
            Stmt::Prepare { statement, .. } => statement.is_ddl(),
            _ => false,
        }
    }

    /// What it exercises, the tables that it writes included.
    pub fn features(&self, schema: &Schema) -> Vec<Feature> {
        let mut found = match self {
            Stmt::Select(_) => vec![Feature::Select],
            Stmt::Insert(_) => vec![Feature::Insert],
            Stmt::Update(_) => vec![Feature::Update],
            Stmt::Delete(_) => vec![Feature::Delete],
            Stmt::Savepoint(_) => vec![Feature::Savepoint],
            Stmt::RollbackTo(_) => vec![Feature::RollbackTo],
            Stmt::Release(_) => vec![Feature::ReleaseSavepoint],
            Stmt::CreateIndex { .. } => vec![Feature::CreateIndex],
            Stmt::DropIndex { .. } => vec![Feature::DropIndex],
            Stmt::AddColumn { .. } => vec![Feature::AddColumn],
            Stmt::Truncate(_) => vec![Feature::Truncate],
            Stmt::Prepare { .. } => vec![Feature::Prepared],
            Stmt::Execute(_) => vec![Feature::Prepared],
        };
        crate::sql::coverage::add_details(self, schema, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The statement itself, or the one that it prepares.
    pub fn unprepared(&self) -> &Stmt {
        match self {
            Stmt::Prepare { statement, .. } => statement,
            other => other,
        }
    }

    /// The savepoint or prepared statement that it needs.
    pub fn needs(&self) -> Option<&str> {
        match self {
            Stmt::RollbackTo(name) | Stmt::Release(name) | Stmt::Execute(name) => Some(name),
            _ => None,
        }
    }

    /// The savepoint or prepared statement that it makes.
    pub fn provides(&self) -> Option<&str> {
        match self {
            Stmt::Savepoint(name) | Stmt::Prepare { name, .. } => Some(name),
            _ => None,
        }
    }
}

fn with_partner<'a>(table: &'a str, join: &'a Option<TableJoin>) -> impl Iterator<Item = &'a str> {
    std::iter::once(table).chain(join.iter().map(|j| j.table.as_str()))
}

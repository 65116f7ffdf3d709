//! Statements of a transaction.
//!
//! A new kind of statement is a variant here: the matches in this file say
//! how it is walked, written down and counted. What makes it is one line in
//! the table of `make/mod.rs`.

use super::expression::Expr;
use super::render::Renderer;
use super::schema::{Index, Schema};
use super::select::{Select, sources_below};
use super::transaction::{Begin, SetTransaction};
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
    Begin(Begin),
    Commit,
    Rollback,
    SetAutocommit(bool),
    SetTransaction(SetTransaction),
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    CreateIndex {
        table: String,
        index: Index,
    },
    /// The table is known where the dialect has to say it.
    DropIndex {
        table: Option<String>,
        index: String,
    },
    AddColumn {
        table: String,
        column: String,
        of_type: Type,
    },
    Truncate(String),
    Prepare {
        name: String,
        statement: Box<Stmt>,
    },
    Execute(String),
}

impl Stmt {
    /// One line of SQL, without a semicolon.
    pub fn render(&self, dialect: &Dialect) -> String {
        let renderer = Renderer::new(dialect);
        let name = |name: &str| renderer.name(name).into_owned();
        match self {
            Stmt::Select(select) => renderer.select(select),
            Stmt::Insert(insert) => renderer.insert(insert),
            Stmt::Update(update) => renderer.update(update),
            Stmt::Delete(delete) => renderer.delete(delete),
            Stmt::Begin(begin) => begin.render(),
            Stmt::Commit => "commit".into(),
            Stmt::Rollback => "rollback".into(),
            Stmt::SetAutocommit(on) => format!("set autocommit = {}", u8::from(*on)),
            Stmt::SetTransaction(set) => set.render(dialect),
            Stmt::Savepoint(savepoint) => format!("savepoint {}", name(savepoint)),
            Stmt::RollbackTo(savepoint) => format!("rollback to savepoint {}", name(savepoint)),
            Stmt::Release(savepoint) => format!("release savepoint {}", name(savepoint)),
            Stmt::CreateIndex { table, index } => renderer.create_index(table, index),
            Stmt::DropIndex { table, index } => renderer.drop_index(table.as_deref(), index),
            Stmt::AddColumn { table, column, of_type } => {
                let of_type = dialect.type_name(of_type);
                format!("alter table {} add column {} {of_type}", name(table), name(column))
            }
            Stmt::Truncate(table) => format!("truncate table {}", name(table)),
            Stmt::Prepare { name, statement } => renderer.prepare(name, statement),
            Stmt::Execute(prepared) => format!("execute {}", name(prepared)),
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
            Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::Savepoint(_)
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
            Stmt::DropIndex { table, .. } => names.extend(table.as_deref()),
            Stmt::CreateIndex { table, .. }
            | Stmt::AddColumn { table, .. }
            | Stmt::Truncate(table) => names.push(table),
            Stmt::Prepare { statement, .. } => return statement.tables(),
            Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::Savepoint(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_)
            | Stmt::Execute(_) => {}
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
            Stmt::Select(_)
            | Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::Savepoint(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_)
            | Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_)
            | Stmt::Execute(_) => None,
        }
    }

    /// Whether it reads or writes rows.
    pub fn is_data(&self) -> bool {
        matches!(self, Stmt::Select(_) | Stmt::Insert(_) | Stmt::Update(_) | Stmt::Delete(_))
    }

    pub fn is_ddl(&self) -> bool {
        match self {
            Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_) => true,
            Stmt::Prepare { statement, .. } => statement.is_ddl(),
            Stmt::Select(_)
            | Stmt::Insert(_)
            | Stmt::Update(_)
            | Stmt::Delete(_)
            | Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::Savepoint(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_)
            | Stmt::Execute(_) => false,
        }
    }

    /// What it exercises, the tables that it writes included.
    pub fn features(&self, schema: &Schema) -> Vec<Feature> {
        let mut found = match self {
            Stmt::Select(_) => vec![Feature::Select],
            Stmt::Insert(_) => vec![Feature::Insert],
            Stmt::Update(_) => vec![Feature::Update],
            Stmt::Delete(_) => vec![Feature::Delete],
            Stmt::Begin(begin) => begin.features(),
            Stmt::Commit => vec![Feature::Commit],
            Stmt::Rollback => vec![Feature::Rollback],
            Stmt::SetAutocommit(true) | Stmt::SetTransaction(_) => Vec::new(),
            Stmt::SetAutocommit(false) => vec![Feature::AutocommitOff],
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
            Stmt::Select(_)
            | Stmt::Insert(_)
            | Stmt::Update(_)
            | Stmt::Delete(_)
            | Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_)
            | Stmt::Savepoint(_)
            | Stmt::Prepare { .. } => None,
        }
    }

    /// The savepoint or prepared statement that it makes.
    pub fn provides(&self) -> Option<&str> {
        match self {
            Stmt::Savepoint(name) | Stmt::Prepare { name, .. } => Some(name),
            Stmt::Select(_)
            | Stmt::Insert(_)
            | Stmt::Update(_)
            | Stmt::Delete(_)
            | Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::CreateIndex { .. }
            | Stmt::DropIndex { .. }
            | Stmt::AddColumn { .. }
            | Stmt::Truncate(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_)
            | Stmt::Execute(_) => None,
        }
    }
}

fn with_partner<'a>(table: &'a str, join: &'a Option<TableJoin>) -> impl Iterator<Item = &'a str> {
    std::iter::once(table).chain(join.iter().map(|j| j.table.as_str()))
}

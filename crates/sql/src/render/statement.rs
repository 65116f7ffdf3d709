//! Renders whole statements, and those that control transactions.

use super::{Renderer, type_name};
use crate::ast::{
    Access, Begin, Characteristics, Control, Ddl, SetScope, SetTransaction, Stmt, Write,
};
use crate::dialect::{Dialect, Family, PrepareForm};

impl Stmt {
    /// One line of SQL, without a semicolon.
    pub fn render(&self, dialect: &Dialect) -> String {
        let renderer = Renderer::new(dialect);
        match self {
            Stmt::Select(select) => renderer.select(select),
            Stmt::Write(Write::Insert(insert)) => renderer.insert(insert),
            Stmt::Write(Write::Update(update)) => renderer.update(update),
            Stmt::Write(Write::Delete(delete)) => renderer.delete(delete),
            Stmt::Write(Write::Merge(merge)) => renderer.merge(merge),
            Stmt::Control(control) => renderer.control(control),
            Stmt::Ddl(ddl) => renderer.ddl(ddl),
            Stmt::Prepare { name, statement } => renderer.prepare(name, statement),
            Stmt::Execute(prepared) => format!("execute {}", renderer.name(prepared)),
        }
    }
}

impl Renderer<'_> {
    fn control(&self, control: &Control) -> String {
        match control {
            Control::Begin(begin) => begin_clause(begin),
            Control::Commit => "commit".into(),
            Control::Rollback => "rollback".into(),
            Control::SetAutocommit(on) => format!("set autocommit = {}", u8::from(*on)),
            Control::SetTransaction(set) => self.set_transaction(set),
            Control::Savepoint(name) => format!("savepoint {}", self.name(name)),
            Control::RollbackTo(name) => format!("rollback to savepoint {}", self.name(name)),
            Control::Release(name) => format!("release savepoint {}", self.name(name)),
        }
    }

    fn ddl(&self, ddl: &Ddl) -> String {
        match ddl {
            Ddl::CreateIndex { table, index } => self.create_index(table, index),
            Ddl::DropIndex { table, index } => self.drop_index(table.as_deref(), index),
            Ddl::AddColumn { table, column, of_type } => {
                let of_type = type_name(self.dialect, of_type);
                format!(
                    "alter table {} add column {} {of_type}",
                    self.name(table),
                    self.name(column)
                )
            }
            Ddl::Truncate(table) => format!("truncate table {}", self.name(table)),
        }
    }

    pub fn prepare(&self, name: &str, statement: &Stmt) -> String {
        let (name, text) = (self.name(name), statement.render(self.dialect));
        match self.dialect.spelling.prepare {
            PrepareForm::As => format!("prepare {name} as {text}"),
            PrepareForm::From => format!("prepare {name} from {}", self.text(&text)),
        }
    }

    fn set_transaction(&self, set: &SetTransaction) -> String {
        let target = match (set.scope, self.dialect.family) {
            (SetScope::Transaction, _) => "set transaction",
            (SetScope::Session, Family::Mysql) => "set session transaction",
            (SetScope::Session, _) => "set session characteristics as transaction",
        };
        format!("{target} {}", clauses(&set.characteristics).join(", "))
    }
}

fn begin_clause(begin: &Begin) -> String {
    let mut options = Vec::new();
    if begin.consistent_snapshot {
        options.push("with consistent snapshot".to_string());
    }
    options.extend(clauses(&begin.characteristics));
    match (begin.mode, options.is_empty()) {
        (None, true) => "begin".into(),
        (None, false) => format!("start transaction {}", options.join(", ")),
        (Some(mode), true) => format!("begin {}", mode.word()),
        (Some(mode), false) => format!("begin {} {}", mode.word(), options.join(", ")),
    }
}

fn clauses(characteristics: &Characteristics) -> Vec<String> {
    let level = characteristics.level;
    let level = level.map(|level| format!("isolation level {}", level.name().to_lowercase()));
    let access = characteristics.access.map(|access| match access {
        Access::ReadOnly => "read only".to_string(),
        Access::ReadWrite => "read write".to_string(),
    });
    let deferrable = characteristics.deferrable.map(|deferrable| match deferrable {
        true => "deferrable".to_string(),
        false => "not deferrable".to_string(),
    });
    level.into_iter().chain(access).chain(deferrable).collect()
}

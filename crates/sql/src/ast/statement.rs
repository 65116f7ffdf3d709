//! Statements of a transaction, grouped by what they do.
//!
//! A new kind of statement is a variant of its group ([`Write`],
//! [`Control`], [`Ddl`]) or of [`Stmt`]; the compiler then names the
//! matches that render it, walk it and count its features. The generator draws
//! it by one line in the table of `draw/mod.rs`.

use super::query::{Select, sources_below};
use super::schema::Index;
use super::transaction::Control;
use super::value::Type;
use super::write::{Delete, Insert, Merge, Update, Write};

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "statements are few and passed by reference")]
pub enum Stmt {
    Select(Select),
    Write(Write),
    Control(Control),
    Ddl(Ddl),
    Prepare { name: String, statement: Box<Stmt> },
    Execute(String),
}

/// A statement that changes the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ddl {
    CreateIndex {
        table: String,
        index: Index,
    },
    /// The table is present where the dialect requires it.
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
}

impl Ddl {
    /// The table that it changes, where the statement names it.
    pub fn table(&self) -> Option<&str> {
        match self {
            Ddl::DropIndex { table, .. } => table.as_deref(),
            Ddl::CreateIndex { table, .. }
            | Ddl::AddColumn { table, .. }
            | Ddl::Truncate(table) => Some(table),
        }
    }
}

impl Stmt {
    /// The tables (and CTEs) that it names.
    pub fn tables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = match self {
            Stmt::Select(select) => return select.sources(),
            Stmt::Write(write) => write.tables(),
            Stmt::Ddl(ddl) => ddl.table().into_iter().collect(),
            Stmt::Prepare { statement, .. } => return statement.tables(),
            Stmt::Control(_) | Stmt::Execute(_) => Vec::new(),
        };
        let mut below = Vec::new();
        self.visit(&mut |e| below.extend(sources_below(e)));
        names.extend(below);
        names
    }

    /// The table whose rows it changes.
    pub fn written_table(&self) -> Option<&str> {
        match self {
            Stmt::Write(write) => Some(write.table()),
            Stmt::Prepare { statement, .. } => statement.written_table(),
            Stmt::Select(_) | Stmt::Control(_) | Stmt::Ddl(_) | Stmt::Execute(_) => None,
        }
    }

    /// Whether it reads or writes rows.
    pub fn is_data(&self) -> bool {
        matches!(self, Stmt::Select(_) | Stmt::Write(_))
    }

    /// Whether it changes the schema, or prepares a statement that does.
    pub fn is_ddl(&self) -> bool {
        match self {
            Stmt::Ddl(_) => true,
            Stmt::Prepare { statement, .. } => statement.is_ddl(),
            Stmt::Select(_) | Stmt::Write(_) | Stmt::Control(_) | Stmt::Execute(_) => false,
        }
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
            Stmt::Control(control) => control.needs(),
            Stmt::Execute(name) => Some(name),
            Stmt::Select(_) | Stmt::Write(_) | Stmt::Ddl(_) | Stmt::Prepare { .. } => None,
        }
    }

    /// The savepoint or prepared statement that it creates.
    pub fn provides(&self) -> Option<&str> {
        match self {
            Stmt::Control(control) => control.provides(),
            Stmt::Prepare { name, .. } => Some(name),
            Stmt::Select(_) | Stmt::Write(_) | Stmt::Ddl(_) | Stmt::Execute(_) => None,
        }
    }
}

impl From<Select> for Stmt {
    fn from(select: Select) -> Stmt {
        Stmt::Select(select)
    }
}

impl From<Insert> for Stmt {
    fn from(insert: Insert) -> Stmt {
        Stmt::Write(Write::Insert(insert))
    }
}

impl From<Update> for Stmt {
    fn from(update: Update) -> Stmt {
        Stmt::Write(Write::Update(update))
    }
}

impl From<Delete> for Stmt {
    fn from(delete: Delete) -> Stmt {
        Stmt::Write(Write::Delete(delete))
    }
}

impl From<Merge> for Stmt {
    fn from(merge: Merge) -> Stmt {
        Stmt::Write(Write::Merge(merge))
    }
}

impl From<Control> for Stmt {
    fn from(control: Control) -> Stmt {
        Stmt::Control(control)
    }
}

impl From<Ddl> for Stmt {
    fn from(ddl: Ddl) -> Stmt {
        Stmt::Ddl(ddl)
    }
}

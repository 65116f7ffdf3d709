//! Instrumentation: tables and statements that tell which version of which row
//! each statement read and wrote.
//!
//! ```text
//!   Schema ──► columns beside its own          Stmt ──► Sent: the statement, and what its
//!     row     who it is                                 answer tells beside what was asked
//!     writes  the statements that wrote it      answers ──► Heard ──► Told ──► checker::History
//!     origin  what INSERT … SELECT made it of
//!     past    what it held before each of them
//! ```
//!
//! Every statement has a number. A write adds it to the list in the row, so that a
//! list is the row's version, and the lists of a row are the order of its versions
//! (IsoRel; the thesis for what it cannot see). What changes rows without saying so
//! (a statement that could not be instrumented, a cascade) makes its table not
//! followed: nothing is claimed of it. `docs/instrumentation.md` has the details for
//! people.
//!
//! The columns have no keys and no indexes, and nothing here asks for a lock that
//! the statement itself does not take. Part of what follows is the same for the
//! topological oracle: who wants to know versions asks here.

mod case;
mod contents;
mod hearing;
mod history;
mod means;
mod order;
mod plain;
mod predicate;
mod read;
mod tables;
mod views;
mod write;
mod writer;

pub use case::{CaseTold, ToldCase};
pub use contents::Evaluation;
pub use hearing::{Entry, Heard, Version};
pub use history::{Account, StatementTold, Told, TransactionTold};
pub use means::Means;
pub use order::VersionOrder;
pub use plain::ALONE;
pub use predicate::Predicate;
pub use views::{Present, Referenced};

use crate::sql::{Dialect, Schema, Select, SelectItem, Stmt, Table};

/// The number of a statement, by which rows say who wrote them.
pub type StatementId = u64;

/// The tables of a case, and how its engine is made to tell.
#[derive(Clone, Debug)]
pub struct Instrument {
    pub schema: Schema,
    pub dialect: Dialect,
    pub means: Means,
    /// For each table whether all its writes can be followed.
    followed: Vec<bool>,
}

/// A statement to send, and how to read what comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub statement: Stmt,
    pub probe: Probe,
}

/// What an answer tells beside what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    Nothing,
    /// Behind its own columns, cells that name the rows that were read; where all that
    /// satisfy a predicate are in a cell, that predicate.
    Read {
        own_columns: usize,
        cells: Vec<Option<Predicate>>,
        /// It sees what is current and not a snapshot.
        locking: bool,
    },
    /// Behind its own columns, whole rows of a table.
    Rows {
        own_columns: usize,
        table: usize,
        what: RowsOf,
        predicate: Option<Predicate>,
    },
    /// In its only column, the versions of all rows that the next statement will look at.
    View,
    /// A write that only says how many. Who reads the rows later finds its number.
    Count,
}

/// What the rows of an answer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsOf {
    /// As the statement left them.
    Written,
    /// As they were before the statement took them away.
    Deleted,
    /// Those that the statement takes the place of, if it comes to that.
    Replaced,
    /// As they are, for nobody's statement.
    Stored,
}

/// Why a statement is sent as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftAlone(pub &'static str);

impl std::fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0)
    }
}

impl Instrument {
    pub fn new(schema: Schema, dialect: Dialect, means: Means) -> Instrument {
        let followed = schema.tables.iter().map(|t| !changes_unseen(t)).collect();
        Instrument { schema, dialect, means, followed }
    }

    /// The number of a statement and what is sent in its place, the statement itself
    /// last. What reads or writes nothing is sent as it is.
    pub fn statement(&self, id: StatementId, statement: &Stmt) -> Result<Vec<Sent>, LeftAlone> {
        match statement {
            Stmt::Select(select) => self.select(select).map(|sent| vec![sent]),
            Stmt::Insert(insert) => self.insert(id, insert),
            Stmt::Update(update) => self.update(id, update).map(|sent| vec![sent]),
            Stmt::Delete(delete) => self.delete(delete),
            Stmt::Begin(_)
            | Stmt::Commit
            | Stmt::Rollback
            | Stmt::SetAutocommit(_)
            | Stmt::SetTransaction(_)
            | Stmt::Savepoint(_)
            | Stmt::RollbackTo(_)
            | Stmt::Release(_) => Ok(vec![plain(statement)]),
            Stmt::CreateIndex { .. } | Stmt::DropIndex { .. } => Ok(vec![plain(statement)]),
            Stmt::AddColumn { .. } | Stmt::Truncate(_) => {
                Err(LeftAlone("it changes a table as a whole"))
            }
            Stmt::Prepare { .. } | Stmt::Execute(_) => Err(LeftAlone("it is a prepared statement")),
        }
    }

    /// Nothing is claimed of this table any more: somebody changes it unseen.
    pub fn give_up(&mut self, table: &str) {
        if let Some(place) = self.place(table) {
            self.followed[place] = false;
        }
    }

    pub fn is_followed(&self, table: usize) -> bool {
        self.followed[table]
    }

    pub fn follows_nothing(&self) -> bool {
        !self.followed.contains(&true)
    }

    fn place(&self, table: &str) -> Option<usize> {
        self.schema.tables.iter().position(|t| t.name == table)
    }

    fn table(&self, name: &str) -> Option<(usize, &Table)> {
        self.place(name).map(|place| (place, &self.schema.tables[place]))
    }
}

/// A foreign key's action writes rows that no statement names.
fn changes_unseen(table: &Table) -> bool {
    use crate::sql::OnDelete;
    table.foreign_keys.iter().any(|key| {
        key.update_cascades || matches!(key.on_delete, OnDelete::Cascade | OnDelete::SetNull)
    })
}

/// As it is.
pub fn plain(statement: &Stmt) -> Sent {
    Sent { statement: statement.clone(), probe: Probe::Nothing }
}

/// How many columns a query returns, once its stars are written out.
fn count_items(items: &[SelectItem]) -> Result<usize, LeftAlone> {
    let star = items.iter().any(|item| item.expression().is_none());
    if star { Err(LeftAlone("it selects * of what is no table")) } else { Ok(items.len()) }
}

/// Whether a query is no more than rows of its sources that satisfy a condition.
fn is_bare(select: &Select) -> bool {
    select.ctes.is_empty()
        && !select.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.set_operation.is_none()
        && select.limit.is_none()
        && select.offset.is_none()
}

#[cfg(test)]
mod tests;

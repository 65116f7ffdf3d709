//! Instrumentation: hidden columns and rewritten statements that reveal which version of which row
//! each statement read and wrote.
//!
//! ```text
//!   Schema ──► added columns                    Stmt ──► Sent: the rewritten statement, and a
//!     row     the identity of the row                    Probe: what its result reveals
//!     writes  the statements that wrote it      result rows ──► ProbeResult ──► ObservedRun
//!     origin  the versions that INSERT … SELECT made it of              └──► checker::History
//!     past    its contents before each write
//!     keys    what foreign keys with actions referred to after the last write
//! ```
//!
//! Every statement has a number. A write appends it to the list in the row, so that the list is
//! the row's version, and the lists of a row give the order of its versions (IsoRel; the thesis
//! for its limits). A table that changes without a trace (by a statement that could not be
//! instrumented, or by an action of a foreign key that cannot be attributed) is no longer followed: nothing is claimed of it.
//! `docs/instrumentation.md` has the details for users.
//!
//! The columns have no keys and no indexes, and no added statement takes a lock that the original
//! statement does not take. The isolation oracle and the topological oracle share this module.
//!
//! `tables` defines the columns; `query` and `write` rewrite statements; `decode` turns result rows
//! back into versions; `history` collects the observations of a run in a ledger and exports it as
//! a history for the checker.

mod action_mark;
mod actions;
mod case;
mod contents;
mod decode;
mod history;
mod original_run;
mod predicate;
mod query;
mod tables;
mod version_order;
mod views;
mod write;
mod writer;

pub use case::{CaseObservations, InstrumentedCase};
pub use contents::Evaluation;
pub use decode::{Entry, ProbeResult, Version};
pub use history::{ExtractedHistory, ObservedRun, StatementObservation, TransactionObservations};
pub use isolde_catalog::{CurrentReadScope, EngineCapabilities};
pub use original_run::ALONE;
pub use predicate::Predicate;
pub use version_order::VersionOrder;
pub use views::Referenced;

use isolde_sql::{Ddl, Dialect, Schema, Select, Stmt, Table, Write};

/// The number of a statement. Rows list the numbers of the statements that wrote them.
pub type StatementId = u64;

/// The tables of a case, and how they are instrumented on its engine.
#[derive(Clone, Debug)]
pub struct Instrument {
    pub schema: Schema,
    pub dialect: Dialect,
    pub capabilities: EngineCapabilities,
    /// For each table whether all its writes can be followed.
    followed: Vec<bool>,
}

/// A statement to send, and how to read what comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub statement: Stmt,
    pub probe: Probe,
    /// Why some of what it reads is not revealed.
    pub unobserved: Vec<NotInstrumented>,
}

/// What the result of a statement reveals beyond its own columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    Nothing,
    /// After its own columns, cells that name the rows that were read. A cell that names all rows
    /// that satisfy a predicate comes with that predicate.
    Read {
        own_columns: usize,
        /// The next column tells its rows, with 0 in it, from those that only name versions.
        appended: bool,
        cells: Vec<Option<Predicate>>,
        /// It sees what is current and not a snapshot.
        locking: bool,
    },
    /// After its own columns, whole rows of a table.
    Rows {
        own_columns: usize,
        table: usize,
        what: RowsOf,
        predicate: Option<Predicate>,
    },
    /// In its only column, the versions of all rows that the next statement will look at.
    View,
    /// A write that only returns a count. Later reads of its rows reveal its number.
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
    /// As they are stored, independent of a statement.
    Stored,
}

/// Why a statement is sent unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotInstrumented(pub &'static str);

impl std::fmt::Display for NotInstrumented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.0)
    }
}

impl Instrument {
    pub fn new(schema: Schema, dialect: Dialect, capabilities: EngineCapabilities) -> Instrument {
        let count = schema.tables.len();
        let mut instrument =
            Instrument { schema, dialect, capabilities, followed: vec![true; count] };
        for table in
            (0..count).filter(|table| instrument.has_untracked_actions(*table)).collect::<Vec<_>>()
        {
            instrument.stop(table);
        }
        instrument
    }

    /// The number of a statement and what is sent in its place, the statement itself
    /// last. What reads or writes nothing is sent as it is.
    pub fn statement(
        &self,
        id: StatementId,
        statement: &Stmt,
    ) -> Result<Vec<Sent>, NotInstrumented> {
        match statement {
            Stmt::Select(select) => self.select(select).map(|sent| vec![sent]),
            Stmt::Write(Write::Insert(insert)) => self.insert(id, insert),
            Stmt::Write(Write::Update(update)) => self.update(id, update).map(|sent| vec![sent]),
            Stmt::Write(Write::Delete(delete)) => self.delete(delete),
            Stmt::Write(Write::Merge(_)) => Err(NotInstrumented("it is a MERGE")),
            Stmt::Control(_) => Ok(vec![plain(statement)]),
            Stmt::Ddl(Ddl::CreateIndex { .. } | Ddl::DropIndex { .. }) => {
                Ok(vec![plain(statement)])
            }
            Stmt::Ddl(Ddl::AddColumn { .. } | Ddl::Truncate(_)) => {
                Err(NotInstrumented("it changes a table as a whole"))
            }
            Stmt::Prepare { .. } | Stmt::Execute(_) => {
                Err(NotInstrumented("it is a prepared statement"))
            }
        }
    }

    /// Makes no more claims about a table: it changes without a trace.
    pub fn stop_tracking(&mut self, table: &str) {
        if let Some(place) = self.place(table) {
            self.stop(place);
        }
    }

    /// The same, and about tables that change with it.
    fn stop(&mut self, table: usize) {
        if std::mem::replace(&mut self.followed[table], false) {
            self.changed_with(table).into_iter().for_each(|child| self.stop(child));
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

/// As it is.
pub fn plain(statement: &Stmt) -> Sent {
    Sent::new(statement.clone(), Probe::Nothing)
}

impl Sent {
    /// A statement whose result reveals all that it reads.
    fn new(statement: impl Into<Stmt>, probe: Probe) -> Sent {
        Sent { statement: statement.into(), probe, unobserved: Vec::new() }
    }
}

/// Whether a query is no more than rows of its sources that satisfy a condition.
fn is_bare(select: &Select) -> bool {
    select.ctes.is_empty()
        && select.values.is_empty()
        && !select.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.set_operation.is_none()
        && select.limit.is_none()
        && select.offset.is_none()
}

#[cfg(test)]
mod tests;

//! Lock waits: a blocked statement must have an open lock holder.
//!
//! Lock holders are looked up table by table. Where only rows are locked, another
//! transaction must have locked a row of a table that the statement may need (its
//! own, and those that foreign keys lead to); where everything that is scanned may
//! be locked, including gaps, it must have scanned such a table. Which of them it
//! was is not predicted, unless the server names the lock holder.

use crate::model::ReferenceModel;
use crate::stop::Stop;
use crate::world::TxId;
use isolde_catalog::{Rule, Waits};
use isolde_model::breach::{Breach, Wait};
use isolde_model::history::EventKind;
use isolde_model::parsed_case::Operation;
use isolde_sql::BeginForm;
use isolde_sql::Stmt;
use std::collections::BTreeSet;

impl ReferenceModel<'_> {
    /// What a statement may lock from now on, found or not.
    pub fn record_scan(&mut self, session: &str, step: usize) {
        let Some(tx) = self.world.tx_of(session) else { return };
        if self.world.tx(tx).concurrency.as_ref().is_some_and(|c| c.locking.waits == Waits::Scans) {
            let tables = self.may_lock(tx, step);
            self.world.add_scanned(tx, step, tables);
        }
    }

    /// Whether a statement was found waiting before anything else happened.
    pub fn blocked_immediately(&self, step: usize) -> bool {
        self.subject.history.events.windows(2).any(|two| {
            two.iter().all(|e| e.step == Some(step))
                && matches!(two[0].what, EventKind::Sent { .. })
                && matches!(two[1].what, EventKind::Waiting { .. })
        })
    }

    /// A statement was found waiting, for those that are named if any are.
    pub fn waits(&mut self, session: &str, step: usize, named: &[String]) -> Result<(), Stop> {
        let Some(tx) = self.world.tx_of(session) else { return Ok(()) };
        let Some(concurrency) = self.world.tx(tx).concurrency.as_ref() else { return Ok(()) };
        if concurrency.locking.waits == Waits::Never {
            let rule = concurrency.rules.write;
            return self.report(step, rule, Breach::UnexpectedWait { wait: Wait::NeverAllowed });
        }
        let rule = concurrency.rules.held_row;
        if concurrency.locking.waits == Waits::Unknown || self.has_unknown_locks() {
            return Ok(());
        }
        let reasons = match concurrency.locking.waits {
            Waits::Database => self.users_of_database(tx, step),
            Waits::Never | Waits::Rows | Waits::Scans | Waits::Unknown => {
                self.users_of_tables(tx, step)
            }
        };
        if reasons.is_empty() {
            return self.report(step, rule, Breach::UnexpectedWait { wait: Wait::NoHolder });
        }
        let session_of = |tx: &TxId| self.world.session(*tx);
        if let Some(other) = named.iter().find(|n| !reasons.iter().any(|r| session_of(r) == **n)) {
            let wait = Wait::WrongHolder { named: other.clone() };
            return self.report(step, rule, Breach::UnexpectedWait { wait });
        }
        let is_named = |tx: &TxId| named.is_empty() || named.iter().any(|n| n == session_of(tx));
        let holders: Vec<TxId> = reasons.into_iter().filter(is_named).collect();
        self.note_holders("waits for", (tx, step), &holders);
        // It may lock every row that it reads again, even those that it does not change.
        let tables = self.may_lock(tx, step);
        self.world.add_scanned(tx, step, tables);
        Ok(())
    }

    /// Locks of the schema, and those that only their names are known of.
    fn has_unknown_locks(&self) -> bool {
        let reading = &self.subject.reading;
        reading.unknown_waits
            || reading.operations.iter().any(|operation| match operation {
                Operation::Opaque(_) => true,
                Operation::Utility(utility) => utility.locks_tables(),
                Operation::Statement(statement) => matches!(**statement, Stmt::Ddl(_)),
                _ => false,
            })
    }

    /// Other transactions that may hold rows of the tables that a statement may need.
    pub fn users_of_tables(&self, tx: TxId, step: usize) -> Vec<TxId> {
        let wanted = self.may_lock(tx, step);
        let locked =
            |o: TxId| self.world.locks().any(|l| l.by == o && wanted.contains(&l.place.table));
        let touched = |o: TxId| !self.world.scanned(o).is_disjoint(&wanted);
        self.world.others(tx).filter(|o| locked(*o) || touched(*o)).collect()
    }

    /// Other transactions whose use of the database blocks a statement.
    fn users_of_database(&self, tx: TxId, step: usize) -> Vec<TxId> {
        let operation = &self.subject.reading.operations[step];
        let ends = matches!(operation, Operation::Commit);
        let alone = self.world.tx(tx).autocommit
            && self.world.concurrency(tx).commit.waits_for_readers.is_some();
        let in_the_way = |o: &TxId| {
            let other = self.world.tx(*o);
            other.writer || (ends || alone) && other.snapshot.is_some()
        };
        let begins = matches!(operation, Operation::Begin(form) if *form != BeginForm::Immediate);
        self.world.others(tx).filter(in_the_way).filter(|_| !begins).collect()
    }

    /// The tables whose rows a statement may lock.
    pub fn may_lock(&self, tx: TxId, step: usize) -> BTreeSet<usize> {
        let Some(statement) = self.operation(step) else { return BTreeSet::new() };
        let plain = matches!(statement, Stmt::Select(select) if select.locking.is_none());
        if plain && !self.plain_reads_lock(tx, step) {
            return BTreeSet::new();
        }
        let schema = &self.subject.reading.schema.tables;
        let place = |name: &str| schema.iter().position(|t| t.name == name);
        let mut tables: BTreeSet<usize> =
            statement.tables().into_iter().filter_map(place).collect();
        if statement.written_table().is_none() {
            return tables;
        }
        loop {
            let linked = schema.iter().enumerate().flat_map(|(child, table)| {
                let parents = table.foreign_keys.iter().filter_map(|f| place(&f.parent));
                parents.map(move |parent| (child, parent))
            });
            let reached = linked.filter(|(c, p)| tables.contains(c) != tables.contains(p));
            let more: Vec<usize> = reached.flat_map(|(c, p)| [c, p]).collect();
            if more.is_empty() {
                return tables;
            }
            tables.extend(more);
        }
    }

    /// Whether a plain read locks the rows that it reads.
    pub fn plain_reads_lock(&self, tx: TxId, step: usize) -> bool {
        self.world.concurrency(tx).locking.plain_reads_lock
            && (!self.world.tx(tx).autocommit || self.autocommit_is_off(step))
    }

    /// Whether its session has switched autocommit off. A statement that then
    /// begins a transaction and fails with it leaves none that is recorded.
    fn autocommit_is_off(&self, step: usize) -> bool {
        let session = &self.subject.history.steps[step].session;
        (0..step).any(|before| {
            self.subject.history.steps[before].session == *session
                && matches!(self.subject.reading.operations[before], Operation::AutocommitOff)
        })
    }

    /// Requires that a COMMIT waits for readers, where it would change the pages that
    /// they read.
    pub fn check_readers(&mut self, tx: TxId, step: usize) -> Result<(), Stop> {
        let waits: Option<&'static Rule> = self.world.concurrency(tx).commit.waits_for_readers;
        let Some(rule) = waits.filter(|_| self.world.has_written(tx)) else { return Ok(()) };
        let Some(reader) = self.world.others(tx).find(|o| self.world.tx(*o).has_read) else {
            return Ok(());
        };
        let breach =
            Breach::CommittedDespiteReader { reader: self.world.session(reader).to_string() };
        self.report(step, rule, breach)
    }
}

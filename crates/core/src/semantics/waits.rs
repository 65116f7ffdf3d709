//! Why a statement waits: somebody who is open must hold what it wants.
//!
//! Whom it waits for is asked table by table. Where rows alone are locked,
//! others must have locked one of a table that it may need (its own, and those
//! that foreign keys lead to); where whatever is scanned may be locked, gaps
//! included, they must have been there. Which of them it was is not predicted,
//! unless the server names whom the statement waits for.

use super::rules::{Rule, Waits};
use super::store::TxId;
use super::transaction::{End, FIRST_ROWS};
use super::walk::Walk;
use super::{Operation, Stop};
use crate::generate::BeginForm;
use crate::history::What;
use crate::sql::Stmt;
use std::collections::BTreeSet;

impl Walk<'_> {
    /// What a statement may lock from now on, found or not.
    pub fn note_scan(&mut self, session: &str, step: usize) {
        let Some(tx) = self.tx_of(session) else { return };
        if self.txs[tx].conduct.as_ref().is_some_and(|c| c.waits == Waits::Scans) {
            let tables = self.may_lock(tx, step);
            self.touched.entry(tx).or_default().extend(tables);
        }
    }

    /// Whether a statement was found waiting before anything else happened.
    pub fn waits_at_once(&self, step: usize) -> bool {
        self.subject.history.events.windows(2).any(|two| {
            two.iter().all(|e| e.step == Some(step))
                && matches!(two[0].what, What::Sent { .. })
                && matches!(two[1].what, What::Waiting { .. })
        })
    }

    /// A statement was found waiting, for those that are named if any are.
    pub fn waits(&mut self, session: &str, step: usize, named: &[String]) -> Result<(), Stop> {
        let Some(tx) = self.tx_of(session) else { return Ok(()) };
        let Some(conduct) = self.txs[tx].conduct.as_ref() else { return Ok(()) };
        if conduct.waits == Waits::Never {
            let why = "it waited, where nobody ever does".into();
            return Err(Stop::Outside { step: Some(step), rule: conduct.rules.write, why });
        }
        let rule = conduct.rules.held_row;
        if conduct.waits == Waits::Unknown || self.has_unknown_locks() {
            return Ok(());
        }
        let reasons = match conduct.waits {
            Waits::Database => self.users_of_database(tx, step),
            Waits::Never | Waits::Rows | Waits::Scans | Waits::Unknown => {
                self.users_of_tables(tx, step)
            }
        };
        let outside = |why: String| Err(Stop::Outside { step: Some(step), rule, why });
        if reasons.is_empty() {
            return outside("it waited, and nobody holds what it wants".into());
        }
        let session_of = |tx: &TxId| self.txs[*tx].session.as_str();
        if let Some(other) = named.iter().find(|n| !reasons.iter().any(|r| session_of(r) == **n)) {
            return outside(format!("it waited for {other}, who holds nothing that it wants"));
        }
        let is_named = |tx: &&TxId| named.is_empty() || named.iter().any(|n| n == session_of(tx));
        let who: Vec<String> = reasons
            .iter()
            .filter(is_named)
            .map(|other| format!("{}, who {}", session_of(other), self.hold_of(*other, tx, step)))
            .collect();
        let text = format!("waits for {}", who.join("; or for "));
        self.waited_for.insert(step, text);
        self.use_rule(step, rule);
        // It may lock what it looks at again, be it to leave it alone.
        let tables = self.may_lock(tx, step);
        self.touched.entry(tx).or_default().extend(tables);
        Ok(())
    }

    /// Locks of the schema, and those that only their names are known of.
    fn has_unknown_locks(&self) -> bool {
        self.subject.reading.operations.iter().any(|operation| match operation {
            Operation::Opaque(_) => true,
            Operation::Statement(statement) => matches!(
                **statement,
                Stmt::CreateIndex { .. }
                    | Stmt::DropIndex { .. }
                    | Stmt::AddColumn { .. }
                    | Stmt::Truncate(_)
            ),
            _ => false,
        })
    }

    fn others(&self, tx: TxId) -> impl Iterator<Item = TxId> {
        let open = move |o: &TxId| *o != tx && *o != FIRST_ROWS && self.txs[*o].end == End::Open;
        (0..self.txs.len()).filter(open)
    }

    /// What another has done that is in a statement's way.
    fn hold_of(&self, other: TxId, tx: TxId, step: usize) -> String {
        if self.conduct(tx).waits == Waits::Database {
            let writes = self.txs[other].writer;
            return if writes { "is writing".into() } else { "is reading".into() };
        }
        let wanted = self.may_lock(tx, step);
        let names = |tables: &BTreeSet<usize>| {
            let schema = &self.subject.reading.schema.tables;
            let names: Vec<&str> = tables.iter().map(|t| schema[*t].name.as_str()).collect();
            names.join(", ")
        };
        let locks = self.locks.iter().filter(|l| l.by == other).map(|l| l.place.table);
        let locked: BTreeSet<usize> = locks.filter(|t| wanted.contains(t)).collect();
        if !locked.is_empty() {
            return format!("holds rows of {}", names(&locked));
        }
        let touched = self.touched.get(&other).cloned().unwrap_or_default();
        format!("may hold what it looked at in {}", names(&(&touched & &wanted)))
    }

    /// Others who may hold rows of the tables that a statement may need.
    fn users_of_tables(&self, tx: TxId, step: usize) -> Vec<TxId> {
        let wanted = self.may_lock(tx, step);
        let locked =
            |o: TxId| self.locks.iter().any(|l| l.by == o && wanted.contains(&l.place.table));
        let touched = |o: TxId| self.touched.get(&o).is_some_and(|t| !t.is_disjoint(&wanted));
        self.others(tx).filter(|o| locked(*o) || touched(*o)).collect()
    }

    /// Others who use the database in a way that is in a statement's way.
    fn users_of_database(&self, tx: TxId, step: usize) -> Vec<TxId> {
        let operation = &self.subject.reading.operations[step];
        let ends = matches!(operation, Operation::Commit);
        let alone = self.txs[tx].autocommit && self.conduct(tx).commit_waits.is_some();
        let in_the_way = |o: &TxId| {
            let other = &self.txs[*o];
            other.writer || (ends || alone) && other.snapshot.is_some()
        };
        let begins = matches!(operation, Operation::Begin(form) if *form != BeginForm::Immediate);
        self.others(tx).filter(in_the_way).filter(|_| !begins).collect()
    }

    /// The tables whose rows a statement may lock.
    fn may_lock(&self, tx: TxId, step: usize) -> BTreeSet<usize> {
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

    /// Whether a plain read locks what it reads.
    pub fn plain_reads_lock(&self, tx: TxId, step: usize) -> bool {
        self.conduct(tx).reads_lock && (!self.txs[tx].autocommit || self.autocommit_is_off(step))
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

    /// Who reads keeps others from committing, where they would write into
    /// what is read.
    pub fn commits_beside_readers(&self, tx: TxId, step: usize) -> Result<(), Stop> {
        let waits: Option<&'static Rule> = self.conduct(tx).commit_waits;
        let mut versions = self.store.tables.iter().flatten().flat_map(|c| &c.versions);
        let Some(rule) = waits.filter(|_| versions.any(|v| v.by == tx)) else { return Ok(()) };
        let Some(reader) = self.others(tx).find(|o| self.txs[*o].has_read) else { return Ok(()) };
        let why = format!("it committed while {} was reading", self.txs[reader].session);
        Err(Stop::Outside { step: Some(step), rule, why })
    }
}

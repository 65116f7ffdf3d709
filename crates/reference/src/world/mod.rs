//! The state of the database as the reference model has it: row versions, locks
//! and transactions.
//!
//! Only the methods of [`World`] change it. Its clock counts the events of the
//! run; versions, commits and snapshots are compared by that clock. The methods
//! are grouped by file: `store` has the version chains, `visibility` which
//! version a transaction reads, `locks` the locks, and `transaction` how
//! transactions begin, roll back and end.

mod fingerprint;
mod ids;
mod locks;
mod store;
mod transaction;
mod visibility;

use crate::version_tables::{Fresh, VersionId};
pub use fingerprint::Distinct;
pub use ids::{FIRST_ROWS, Place, TxId};
pub use locks::{Lock, Mark, Strength, TableLock};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
pub use store::{Chain, Store, Version, same_key};
pub use transaction::{End, Savepoint, Tx};

#[derive(Clone, Debug)]
pub struct World {
    store: Store,
    transactions: Vec<Tx>,
    locks: Vec<Lock>,
    table_locks: Vec<TableLock>,
    marks: Vec<Mark>,
    /// The transaction that each session is in.
    current: BTreeMap<String, TxId>,
    /// The savepoints of each session.
    savepoints: BTreeMap<String, Vec<Savepoint>>,
    /// The number of events so far.
    now: usize,
    /// The number of statements so far.
    statement: usize,
    /// When each step began to execute.
    started: BTreeMap<usize, usize>,
    /// The steps that are blocked.
    waiting: Vec<usize>,
    /// The tables in which each transaction may hold locks, even if it found no
    /// row there, by the step that scanned them.
    scanned: BTreeMap<TxId, BTreeMap<usize, BTreeSet<usize>>>,
    /// Rows that the current statement does not find.
    hidden: Vec<(TxId, Place)>,
    /// The tables that open transactions have truncated, with the statement.
    truncated: Vec<(TxId, usize, usize)>,
}

impl World {
    /// An empty database with this number of tables.
    pub fn new(tables: usize) -> World {
        World {
            store: Store::new(tables),
            transactions: vec![Tx::first()],
            locks: Vec::new(),
            table_locks: Vec::new(),
            marks: Vec::new(),
            current: BTreeMap::new(),
            savepoints: BTreeMap::new(),
            now: 1,
            statement: 0,
            started: BTreeMap::new(),
            waiting: Vec::new(),
            scanned: BTreeMap::new(),
            hidden: Vec::new(),
            truncated: Vec::new(),
        }
    }

    pub fn now(&self) -> usize {
        self.now
    }

    /// Advances the clock by one event.
    pub fn tick(&mut self) {
        self.now += 1;
    }

    /// The number of the current statement.
    pub fn statement(&self) -> usize {
        self.statement
    }

    pub fn next_statement(&mut self) {
        self.statement += 1;
    }

    /// When a step began to execute: now, if it has not.
    pub fn started(&self, step: usize) -> usize {
        self.started.get(&step).copied().unwrap_or(self.now)
    }

    pub fn start(&mut self, step: usize, at: usize) {
        self.started.insert(step, at);
    }

    /// The steps that are blocked.
    pub fn waiting(&self) -> &[usize] {
        &self.waiting
    }

    pub fn block(&mut self, step: usize) {
        self.waiting.push(step);
    }

    pub fn unblock(&mut self, step: usize) {
        self.waiting.retain(|s| *s != step);
    }

    /// A row version that a transaction writes now.
    pub fn version(&self, fresh: Fresh, by: TxId) -> Version {
        Version {
            id: fresh.id,
            row: Rc::new(fresh.row),
            conditions: Rc::new(fresh.conditions),
            by,
            at: self.now,
            statement: self.statement,
            dead: false,
        }
    }

    pub fn table_count(&self) -> usize {
        self.store.tables.len()
    }

    /// The version chains of each table.
    pub fn tables(&self) -> &[Vec<Chain>] {
        &self.store.tables
    }

    /// The version chains of all tables.
    pub fn chains(&self) -> impl Iterator<Item = &Chain> {
        self.store.tables.iter().flatten()
    }

    pub fn chain(&self, place: Place) -> &Chain {
        self.store.chain(place)
    }

    pub fn places(&self, table: usize) -> impl Iterator<Item = Place> + use<> {
        self.store.places(table)
    }

    pub fn find(&self, table: usize, id: VersionId) -> Option<Place> {
        self.store.find(table, id)
    }

    /// Whether a transaction has written a version of any row.
    pub fn has_written(&self, tx: TxId) -> bool {
        self.chains().any(|chain| chain.versions.iter().any(|v| v.by == tx))
    }

    pub fn add_row(&mut self, table: usize, version: Version) -> Place {
        self.store.add_row(table, version)
    }

    pub fn add_version(&mut self, place: Place, version: Version) {
        self.store.add_version(place, version);
    }

    /// Deletes a row; `was` is the version that its writer saw.
    pub fn delete(&mut self, place: Place, was: Version, by: TxId) {
        self.store.delete(place, was, by, self.statement, self.now);
    }

    /// Deletes all rows of a table. Its COMMIT removes them from every snapshot.
    pub fn truncate(&mut self, table: usize, by: TxId) {
        for place in self.places(table) {
            if let Some(was) = self.newest(place, by).filter(|v| !v.dead).cloned() {
                self.delete(place, was, by);
            }
        }
        self.truncated.push((by, table, self.statement));
    }

    /// Deletes a version, and all before it, from the view of one transaction.
    pub fn hide(&mut self, place: Place, version: usize, by: TxId) {
        self.store.hide(place, version, by, self.statement, self.now);
    }

    /// All rows, to be restored if the statement that writes next fails.
    pub fn save_rows(&self) -> Store {
        self.store.clone()
    }

    /// Removes all versions that a transaction has written.
    pub fn remove_versions_of(&mut self, tx: TxId) {
        self.store.roll_back(tx, None);
    }
}

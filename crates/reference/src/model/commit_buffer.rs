//! What buffering transactions leave for their COMMIT to check, besides their
//! versions and locks.

use crate::world::{Distinct, Place, TxId};
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hash;

#[derive(Clone, Debug, Default)]
pub struct CommitBuffer {
    duplicates: Vec<DuplicateKey>,
    /// The tables in which each transaction has searched for rows to lock.
    searched: Vec<(TxId, usize)>,
}

/// A row of a snapshot whose key a buffered INSERT took without checking.
#[derive(Clone, Copy, Debug)]
pub struct DuplicateKey {
    pub by: TxId,
    pub old: Place,
    pub new: Place,
    pub statement: usize,
}

impl CommitBuffer {
    pub fn add_duplicate(&mut self, duplicate: DuplicateKey) {
        self.duplicates.push(duplicate);
    }

    pub fn duplicates_of(&self, tx: TxId) -> impl Iterator<Item = &DuplicateKey> {
        self.duplicates.iter().filter(move |d| d.by == tx)
    }

    pub fn add_searched(&mut self, tx: TxId, tables: &[usize]) {
        self.searched.extend(tables.iter().map(|table| (tx, *table)));
    }

    pub fn searched_by(&self, tx: TxId) -> impl Iterator<Item = usize> {
        self.searched.iter().filter(move |(by, _)| *by == tx).map(|(_, table)| *table)
    }

    /// Undoes one statement of a transaction.
    pub fn undo_statement(&mut self, tx: TxId, statement: usize) {
        self.duplicates.retain(|d| d.by != tx || d.statement != statement);
    }

    /// Undoes all statements of a transaction after the given one.
    pub fn roll_back_to(&mut self, tx: TxId, before: usize) {
        self.duplicates.retain(|d| d.by != tx || d.statement <= before);
    }

    pub fn hash_state(&self, distinct: &Distinct, hasher: &mut DefaultHasher) {
        for twice in &self.duplicates {
            let places = (twice.old.table, twice.old.chain, twice.new.chain);
            (twice.by, places, distinct.statement(twice.statement)).hash(hasher);
        }
        self.searched.iter().collect::<BTreeSet<_>>().hash(hasher);
    }
}

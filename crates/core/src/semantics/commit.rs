//! The COMMIT of a transaction that has kept its writes to itself: whatever it
//! wrote, read to write or refers to must be as its snapshot has it.

use super::Operation;
use super::conclude::Trouble;
use super::store::{Place, TxId, Version, same_key};
use super::transaction::{End, Strength, Tx};
use super::walk::Walk;
use crate::Value;
use crate::history::ErrorClass;

/// A row of a snapshot whose key was taken once more by an INSERT that did not
/// look.
#[derive(Clone, Copy, Debug)]
pub struct TakenTwice {
    pub by: TxId,
    pub old: Place,
    pub new: Place,
    pub statement: usize,
}

impl Walk<'_> {
    /// Whether the writes of a transaction stay with it until its COMMIT.
    pub fn buffers(&self, tx: TxId) -> bool {
        self.txs[tx].conduct.as_ref().is_some_and(super::rules::Conduct::buffers)
    }

    /// What keeps the COMMIT from going through, or would have to.
    pub fn meets_at_commit(&self, tx: TxId, trouble: &mut Trouble) {
        if !self.has_to_commit(tx) {
            return;
        }
        let rules = self.conduct(tx).rules;
        let tables = 0..self.store.tables.len();
        for place in tables.flat_map(|table| self.store.places(table)) {
            let chain = &self.store.chain(place).versions;
            let own = chain.iter().any(|v| v.by == tx);
            if !own && !self.locks.iter().any(|l| l.by == tx && l.place == place) {
                continue;
            }
            let table = &self.subject.reading.schema.tables[place.table].name;
            if chain.iter().any(|v| self.is_newer(tx, v)) {
                let why = format!("another has changed a row of {table} since that it needs");
                trouble.must(ErrorClass::WriteConflict, rules.changed_row, why);
            }
            if let Some(holder) = self.holder(place, tx, Strength::Update) {
                self.meets_holder(tx, holder, trouble);
            }
            if chain.iter().any(|v| self.is_committing(tx, v)) {
                trouble.may(ErrorClass::WriteConflict, rules.held_row);
            }
            if own {
                self.keys_at_commit(tx, place, trouble);
                self.children_at_commit(tx, place, trouble);
            }
        }
        if self.taken_twice.iter().any(|t| t.by == tx) {
            let why = "a key that it takes was taken in its snapshot";
            trouble.must(ErrorClass::Constraint, rules.unique, why);
        }
        // What an IGNORE passed by and what a failed statement found stays locked.
        let locks = |(other, t): (TxId, &Tx)| {
            let later = t.began > self.txs[tx].began;
            t.end == End::Open && later && t.writer && !self.buffers(other)
        };
        if self.txs.iter().enumerate().any(locks) {
            trouble.may(ErrorClass::WriteConflict, rules.held_row);
        }
        // A search by a key takes that key, be there a row that fits or not.
        let fresh = |table: usize| {
            let mut versions = self.store.tables[table].iter().flat_map(|c| &c.versions);
            versions.any(|v| self.is_newer(tx, v))
        };
        if self.searched.iter().any(|(by, table)| *by == tx && fresh(*table)) {
            trouble.may(ErrorClass::WriteConflict, rules.changed_row);
        }
    }

    /// Whether it wrote anything, or looked for rows to lock.
    fn has_to_commit(&self, tx: TxId) -> bool {
        let mut versions = self.store.tables.iter().flatten().flat_map(|c| &c.versions);
        versions.any(|v| v.by == tx)
            || self.locks.iter().any(|l| l.by == tx)
            || self.searched.iter().any(|(by, _)| *by == tx)
            || self.taken_twice.iter().any(|t| t.by == tx)
    }

    /// Committed by another after the snapshot.
    fn is_newer(&self, tx: TxId, version: &Version) -> bool {
        let since = self.txs[tx].began;
        version.by != tx && matches!(self.txs[version.by].end, End::Committed(at) if at >= since)
    }

    /// Another's COMMIT that waits may have locked what it writes.
    fn is_committing(&self, tx: TxId, version: &Version) -> bool {
        let commits = |step: &usize| {
            let session = self.subject.history.steps[*step].session.as_str();
            matches!(self.subject.reading.operations[*step], Operation::Commit)
                && self.tx_of(session) == Some(version.by)
        };
        version.by != tx && self.buffers(version.by) && self.waiting.iter().any(commits)
    }

    /// A lock of somebody who began later is a conflict; one who began before
    /// is waited for.
    fn meets_holder(&self, tx: TxId, holder: TxId, trouble: &mut Trouble) {
        let rule = self.conduct(tx).rules.held_row;
        let why = format!("{} holds a row that it needs", self.txs[holder].session);
        if self.txs[holder].began > self.txs[tx].began {
            trouble.must(ErrorClass::WriteConflict, rule, why);
        } else {
            trouble.held(rule, why);
        }
    }

    /// The unique keys of a row that the transaction wrote, against all others.
    fn keys_at_commit(&self, tx: TxId, place: Place, trouble: &mut Trouble) {
        for key in 0..self.keys[place.table].len() {
            for cells in self.written_keys(tx, place, key) {
                for other in self.store.places(place.table).filter(|p| *p != place) {
                    self.key_meets(tx, other, (key, &cells), trouble);
                }
            }
        }
    }

    /// A key that the transaction writes, against the versions of one row.
    fn key_meets(
        &self,
        tx: TxId,
        other: Place,
        (key, cells): (usize, &[Value]),
        trouble: &mut Trouble,
    ) {
        let rule = self.conduct(tx).rules.changed_row;
        let has = |v: &Version| {
            let theirs = self.key_of(other.table, key, v).filter(|_| !v.dead);
            theirs.is_some_and(|theirs| same_key(cells, &theirs, self.folds_case(tx)))
        };
        let chain = &self.store.chain(other).versions;
        let passing = |by: TxId| {
            chain[0].by == by && chain.last().is_some_and(|last| last.dead && last.by == by)
        };
        let mut before: Option<&Version> = None;
        for version in chain {
            let had = before.filter(|v| has(v));
            let writes = match had {
                Some(had) => !has(version) || self.moves_key(other.table, had, version),
                None => has(version),
            };
            before = Some(version);
            if !writes {
                continue;
            }
            if self.is_newer(tx, version) && passing(version.by) {
                // What came and went in one transaction may leave no trace.
                trouble.may(ErrorClass::WriteConflict, rule);
            } else if self.is_newer(tx, version) {
                let why = "another has written its key since";
                trouble.must(ErrorClass::WriteConflict, rule, why);
            } else if self.is_committing(tx, version) {
                trouble.may(ErrorClass::WriteConflict, self.conduct(tx).rules.held_row);
            } else if version.by != tx && self.is_open(version.by) && !self.buffers(version.by) {
                self.meets_holder(tx, version.by, trouble);
            }
        }
    }

    /// The values of a key that the transaction wrote for a row.
    fn written_keys(&self, tx: TxId, place: Place, key: usize) -> Vec<Vec<Value>> {
        let chain = &self.store.chain(place).versions;
        let since = self.txs[tx].began;
        let first = chain.iter().rev().find(|v| self.committed_before(v.by, since));
        let stays = |v: &&Version| {
            first.is_some_and(|first| {
                !self.moves_key(place.table, first, v)
                    && self.key_of(place.table, key, v) == self.key_of(place.table, key, first)
            })
        };
        let own = chain.iter().filter(|v| v.by == tx && !v.dead && !stays(v));
        let mut written: Vec<_> = own.filter_map(|v| self.key_of(place.table, key, v)).collect();
        written.dedup();
        written
    }

    /// All keys of a row say where it is: they are written anew when its
    /// primary key changes.
    fn moves_key(&self, table: usize, from: &Version, to: &Version) -> bool {
        let primary = self.keys[table].iter().position(|k| k.primary);
        primary.is_some_and(|key| self.key_of(table, key, from) != self.key_of(table, key, to))
    }

    /// Rows that another has added since, and that refer to what goes.
    fn children_at_commit(&self, tx: TxId, place: Place, trouble: &mut Trouble) {
        let since = self.txs[tx].began;
        let chain = &self.store.chain(place).versions;
        let Some(before) = chain.iter().rev().find(|v| self.committed_before(v.by, since)) else {
            return;
        };
        for (child, foreign, column, key) in self.references_to(place.table) {
            let lost = &before.row[key];
            let keeps = |v: &Version| !v.dead && v.row[key].same(lost);
            let kept =
                self.store.places(place.table).any(|p| self.newest(p, tx).is_some_and(keeps));
            if kept {
                continue;
            }
            let refers = |v: &Version| !v.dead && v.row[column].same(lost) && *lost != Value::Null;
            let added = |p: Place| {
                let versions = &self.store.chain(p).versions;
                let committed = versions
                    .iter()
                    .rev()
                    .find(|v| v.by == tx || matches!(self.txs[v.by].end, End::Committed(_)));
                committed.is_some_and(|v| self.is_newer(tx, v) && refers(v))
            };
            if self.store.places(child).any(added) {
                let rule = self.conduct(tx).rules.foreign;
                let why =
                    format!("rows of {foreign} that were added since refer to what it takes away");
                trouble.must(ErrorClass::WriteConflict, rule, why);
            }
        }
    }
}

//! COMMIT: the checks of a transaction that buffered its writes. Every row that it
//! wrote, locked or refers to must be unchanged since its snapshot.

mod column_conflicts;
mod column_merge;
mod three_way;

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::world::{End, Place, Strength, Tx, TxId, Version, same_key};
pub use column_conflicts::written_columns;
use isolde_model::Value;
use isolde_model::breach::{KeyOwner, Obstacle, RowRole};
use isolde_model::history::ErrorClass;
use isolde_model::parsed_case::Operation;

impl ReferenceModel<'_> {
    /// Collects what must or may fail the COMMIT.
    pub fn check_buffered_commit(&self, tx: TxId, errors: &mut ExpectedErrors) {
        if !self.has_to_commit(tx) {
            return;
        }
        let rules = self.world.concurrency(tx).rules;
        let tables = 0..self.world.table_count();
        for place in tables.flat_map(|table| self.world.places(table)) {
            let chain = &self.world.chain(place).versions;
            let own = chain.iter().any(|v| v.by == tx);
            if !own && !self.world.locks().any(|l| l.by == tx && l.place == place) {
                continue;
            }
            let table = &self.subject.reading.schema.tables[place.table].name;
            if let Some(newer) = chain.iter().find(|v| self.is_newer(tx, v)) {
                let by = Some(self.world.session(newer.by).to_string());
                let (table, role) = (Some(table.clone()), RowRole::Needed);
                let obstacle = Obstacle::RowChanged { by, table, role };
                errors.require(ErrorClass::WriteConflict, rules.changed_row, obstacle);
            }
            if let Some(holder) = self.world.holder(place, tx, Strength::Update) {
                self.conflict_with_holder(tx, holder, errors);
            }
            if chain.iter().any(|v| self.is_committing(tx, v)) {
                errors.permit(ErrorClass::WriteConflict, rules.held_row);
            }
            if own {
                self.check_keys_at_commit(tx, place, errors);
                self.check_children_at_commit(tx, place, errors);
            }
        }
        if self.commit_buffer.duplicates_of(tx).next().is_some() {
            let obstacle = Obstacle::KeyTaken { owner: KeyOwner::InSnapshot };
            errors.require(ErrorClass::Constraint, rules.unique, obstacle);
        }
        // Rows that an IGNORE has skipped and rows that a failed statement has found stay
        // locked.
        let locks = |(other, t): (TxId, &Tx)| {
            let later = t.began > self.world.tx(tx).began;
            t.end == End::Open && later && t.writer && !self.world.buffers(other)
        };
        if self.world.transactions().any(locks) {
            errors.permit(ErrorClass::WriteConflict, rules.held_row);
        }
        // A search by a key takes that key, be there a row that fits or not.
        let fresh = |table: usize| {
            let mut versions = self.world.tables()[table].iter().flat_map(|c| &c.versions);
            versions.any(|v| self.is_newer(tx, v))
        };
        if self.commit_buffer.searched_by(tx).any(fresh) {
            errors.permit(ErrorClass::WriteConflict, rules.changed_row);
        }
    }

    /// Whether it wrote anything, or looked for rows to lock.
    fn has_to_commit(&self, tx: TxId) -> bool {
        let mut versions = self.world.chains().flat_map(|c| &c.versions);
        versions.any(|v| v.by == tx)
            || self.world.locks().any(|l| l.by == tx)
            || self.commit_buffer.searched_by(tx).next().is_some()
            || self.commit_buffer.duplicates_of(tx).next().is_some()
    }

    /// Committed by another after the snapshot.
    fn is_newer(&self, tx: TxId, version: &Version) -> bool {
        let since = self.world.tx(tx).began;
        version.by != tx && self.world.committed_since(version.by, since)
    }

    /// Whether the blocked COMMIT of another transaction may have locked the row.
    fn is_committing(&self, tx: TxId, version: &Version) -> bool {
        let commits = |step: &usize| {
            let session = self.subject.history.steps[*step].session.as_str();
            matches!(self.subject.reading.operations[*step], Operation::Commit)
                && self.world.tx_of(session) == Some(version.by)
        };
        version.by != tx
            && self.world.buffers(version.by)
            && self.world.waiting().iter().any(commits)
    }

    /// The lock of a transaction that began later is a conflict; COMMIT waits for
    /// one that began earlier.
    fn conflict_with_holder(&self, tx: TxId, holder: TxId, errors: &mut ExpectedErrors) {
        let rule = self.world.concurrency(tx).rules.held_row;
        let (session, role) = (self.world.session(holder).to_string(), RowRole::Needed);
        let obstacle = Obstacle::RowLocked { holder: session, table: None, role };
        if self.world.tx(holder).began > self.world.tx(tx).began {
            errors.require(ErrorClass::WriteConflict, rule, obstacle);
        } else {
            errors.block(rule, obstacle);
        }
    }

    /// The unique keys of a row that the transaction wrote, against all others.
    fn check_keys_at_commit(&self, tx: TxId, place: Place, errors: &mut ExpectedErrors) {
        for key in 0..self.keys[place.table].len() {
            for cells in self.written_keys(tx, place, key) {
                for other in self.world.places(place.table).filter(|p| *p != place) {
                    self.check_key_conflicts(tx, other, (key, &cells), errors);
                }
            }
        }
    }

    /// A key that the transaction writes, against the versions of one row.
    fn check_key_conflicts(
        &self,
        tx: TxId,
        other: Place,
        (key, cells): (usize, &[Value]),
        errors: &mut ExpectedErrors,
    ) {
        let rule = self.world.concurrency(tx).rules.changed_row;
        let has = |v: &Version| {
            let theirs = self.key_of(other.table, key, v).filter(|_| !v.dead);
            theirs.is_some_and(|theirs| same_key(cells, &theirs, self.case_insensitive_keys(tx)))
        };
        let chain = &self.world.chain(other).versions;
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
                errors.permit(ErrorClass::WriteConflict, rule);
            } else if self.is_newer(tx, version) {
                let obstacle = Obstacle::KeyTaken { owner: KeyOwner::WrittenSince };
                errors.require(ErrorClass::WriteConflict, rule, obstacle);
            } else if self.is_committing(tx, version) {
                errors.permit(ErrorClass::WriteConflict, self.world.concurrency(tx).rules.held_row);
            } else if version.by != tx
                && self.world.is_open(version.by)
                && !self.world.buffers(version.by)
            {
                self.conflict_with_holder(tx, version.by, errors);
            }
        }
    }

    /// The values of a key that the transaction wrote for a row.
    fn written_keys(&self, tx: TxId, place: Place, key: usize) -> Vec<Vec<Value>> {
        let chain = &self.world.chain(place).versions;
        let since = self.world.tx(tx).began;
        let first = chain.iter().rev().find(|v| self.world.committed_before(v.by, since));
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
    fn check_children_at_commit(&self, tx: TxId, place: Place, errors: &mut ExpectedErrors) {
        let since = self.world.tx(tx).began;
        let chain = &self.world.chain(place).versions;
        let Some(before) = chain.iter().rev().find(|v| self.world.committed_before(v.by, since))
        else {
            return;
        };
        for (child, foreign, column, key) in self.references_to(place.table) {
            let lost = &before.row[key];
            let keeps = |v: &Version| !v.dead && v.row[key].same(lost);
            let kept =
                self.world.places(place.table).any(|p| self.world.newest(p, tx).is_some_and(keeps));
            if kept {
                continue;
            }
            let refers = |v: &Version| !v.dead && v.row[column].same(lost) && *lost != Value::Null;
            let added = |p: Place| {
                let versions = &self.world.chain(p).versions;
                let committed = versions
                    .iter()
                    .rev()
                    .find(|v| v.by == tx || matches!(self.world.tx(v.by).end, End::Committed(_)));
                committed.is_some_and(|v| self.is_newer(tx, v) && refers(v))
            };
            if self.world.places(child).any(added) {
                let rule = self.world.concurrency(tx).rules.foreign;
                let obstacle = Obstacle::ChildExists { child: foreign.to_string(), added: true };
                errors.require(ErrorClass::WriteConflict, rule, obstacle);
            }
        }
    }
}

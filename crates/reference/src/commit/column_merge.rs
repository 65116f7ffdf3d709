//! COMMIT where write conflicts are per column: its checks, and the merge of
//! changes to different columns of a row.

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::stop::Stop;
use crate::world::{End, FIRST_ROWS, Mark, Place, TxId, Version, same_key};
use isolde_model::Value;
use isolde_model::breach::{KeyOwner, MissingParent, Obstacle, RowChange};
use isolde_model::history::ErrorClass;

impl ReferenceModel<'_> {
    /// The errors that a COMMIT must or may have, given what others have committed.
    pub async fn commit_errors(&mut self, tx: TxId, step: usize) -> Result<ExpectedErrors, Stop> {
        if self.world.concurrency(tx).merges_at_commit() {
            return self.merge_errors(tx, step).await;
        }
        let mut errors = ExpectedErrors::default();
        if self.world.buffers(tx) {
            self.check_buffered_commit(tx, &mut errors);
            return Ok(errors);
        }
        if !self.world.concurrency(tx).constraints.checked_in_indexes || self.world.tx(tx).failed {
            return Ok(errors);
        }
        let rules = self.world.concurrency(tx).rules;
        if let Some(obstacle) = self.lost_change(tx) {
            errors.conflict(rules.changed_row, obstacle);
        }
        for (place, own) in self.own_rows(tx) {
            if own.dead {
                for table in self.orphans(tx, place, own) {
                    let child = self.subject.reading.schema.tables[table].name.clone();
                    let obstacle = Obstacle::ChildExists { child, added: false };
                    errors.require(ErrorClass::Constraint, rules.foreign, obstacle);
                }
                continue;
            }
            let added = self.world.chain(place).versions.first().is_some_and(|v| v.by == tx);
            if added && self.has_rival(tx, place, own) {
                let obstacle = Obstacle::KeyTaken { owner: KeyOwner::CommittedSince };
                errors.require(ErrorClass::Constraint, rules.unique, obstacle);
            }
            if added && !self.parents_stay(tx, place, own) {
                let parent = MissingParent::Gone;
                let obstacle = Obstacle::ParentMissing { table: None, parent };
                errors.require(ErrorClass::Constraint, rules.foreign, obstacle);
            }
        }
        Ok(errors)
    }

    /// A row that this transaction has changed and another deleted, or the reverse.
    fn lost_change(&self, tx: TxId) -> Option<Obstacle> {
        let snapshot = self.world.snapshot_of(tx)?;
        let since = |by: TxId| match self.world.tx(by).end {
            End::Committed(at) => by != tx && at >= snapshot,
            _ => false,
        };
        let own = || self.world.marks().filter(|m| m.by == tx && m.certain);
        let theirs = |m: &&Mark| since(m.by) && m.certain;
        self.world.marks().filter(theirs).find_map(|theirs| {
            let meets =
                |m: &Mark| m.place == theirs.place && m.column.is_none() != theirs.column.is_none();
            own().find(|m| meets(m)).map(|own| {
                let table = self.subject.reading.schema.tables[own.place.table].name.clone();
                let other = self.world.session(theirs.by).to_string();
                let (theirs, ours) = match own.column {
                    None => (RowChange::Update, RowChange::Delete),
                    Some(_) => (RowChange::Delete, RowChange::Update),
                };
                Obstacle::ConcurrentChange { other, table, theirs, ours }
            })
        })
    }

    /// The rows that a transaction has written, each as it leaves it.
    fn own_rows(&self, tx: TxId) -> Vec<(Place, &Version)> {
        let tables = 0..self.world.table_count();
        let places = tables.flat_map(|table| self.world.places(table));
        let own = |p: Place| self.world.chain(p).last_of(|by| by == tx).map(|v| (p, v));
        places.filter_map(own).collect()
    }

    fn has_rival(&self, tx: TxId, place: Place, own: &Version) -> bool {
        let table = place.table;
        (0..self.keys[table].len()).any(|key| {
            let Some(cells) = self.key_of(table, key, own) else { return false };
            let has = |v: &Version| {
                let theirs = self.key_of(table, key, v);
                theirs
                    .is_some_and(|theirs| same_key(&cells, &theirs, self.case_insensitive_keys(tx)))
            };
            let mut others = self.world.places(table).filter(|p| *p != place);
            others.any(|p| self.world.in_index(p, tx).is_some_and(has))
        })
    }

    fn parents_stay(&self, tx: TxId, place: Place, own: &Version) -> bool {
        let foreign_keys = &self.subject.reading.schema.tables[place.table].foreign_keys;
        self.foreign_columns(place.table).into_iter().all(|(key, column)| {
            let value = &own.row[column];
            let Some((parent, of)) = self.parent_of(&foreign_keys[key]) else { return true };
            *value == Value::Null || self.index_has(tx, parent, of, value)
        })
    }

    /// The tables whose rows refer to a key that a deleted row takes away.
    fn orphans(&self, tx: TxId, place: Place, gone: &Version) -> Vec<usize> {
        let mut orphans = Vec::new();
        for (child, table) in self.subject.reading.schema.tables.iter().enumerate() {
            for (number, column) in self.foreign_columns(child) {
                let Some((parent, key)) = self.parent_of(&table.foreign_keys[number]) else {
                    continue;
                };
                let value = &gone.row[key.min(gone.row.len() - 1)];
                if parent == place.table
                    && self.index_has(tx, child, column, value)
                    && !self.index_has(tx, parent, key, value)
                {
                    orphans.push(child);
                }
            }
        }
        orphans
    }

    fn index_has(&self, tx: TxId, table: usize, column: usize, value: &Value) -> bool {
        let has = |v: &Version| {
            same_key(
                &[v.row[column].clone()],
                std::slice::from_ref(value),
                self.case_insensitive_keys(tx),
            )
        };
        self.world.places(table).any(|p| self.world.in_index(p, tx).is_some_and(has))
    }

    /// What a transaction wrote goes on top of what others have committed
    /// since its snapshot, column by column.
    pub async fn merge(&mut self, tx: TxId) -> Result<(), Stop> {
        let Some(snapshot) = self.world.snapshot_of(tx) else { return Ok(()) };
        let rows: Vec<(Place, Version)> =
            self.own_rows(tx).into_iter().map(|(place, own)| (place, own.clone())).collect();
        for (place, own) in rows {
            let chain = self.world.chain(place);
            let base = chain.last_of(|by| self.world.committed_before(by, snapshot)).cloned();
            let theirs = self.world.newest(place, FIRST_ROWS).cloned();
            let (Some(base), Some(theirs)) = (base, theirs) else { continue };
            if base.id == theirs.id && base.dead == theirs.dead {
                continue;
            }
            if own.dead || theirs.dead {
                let last = if own.dead { own } else { theirs };
                let (statement, at) = (self.world.statement(), self.world.now());
                self.world
                    .add_version(place, Version { by: tx, statement, at, dead: true, ..last });
                continue;
            }
            let changed: Vec<usize> =
                (0..own.row.len()).filter(|c| !own.row[*c].same(&base.row[*c])).collect();
            let sql = self.tables.merged(place.table, theirs.id, own.id, &changed);
            if let Some(fresh) = self.fresh(place.table, sql, None).await?.pop() {
                let merged = self.world.version(fresh, tx);
                self.world.add_version(place, merged);
            }
        }
        Ok(())
    }
}

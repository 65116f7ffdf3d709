//! COMMIT where writers go on side by side: what it checks, and how what was
//! written apart is put together.

use super::Stop;
use super::conclude::Trouble;
use super::store::{Place, TxId, Version, same_key};
use super::transaction::{End, FIRST_ROWS, Mark};
use super::walk::Walk;
use crate::Value;
use crate::history::ErrorClass;

impl Walk<'_> {
    /// What others have committed since may keep a transaction from doing so.
    pub async fn commit_trouble(&mut self, tx: TxId, step: usize) -> Result<Trouble, Stop> {
        if self.conduct(tx).merges_at_commit {
            return self.merge_trouble(tx, step).await;
        }
        let mut trouble = Trouble::default();
        if self.buffers(tx) {
            self.meets_at_commit(tx, &mut trouble);
            return Ok(trouble);
        }
        if !self.conduct(tx).checks_indexes || self.txs[tx].failed {
            return Ok(trouble);
        }
        let rules = self.conduct(tx).rules;
        if let Some(why) = self.lost_change(tx) {
            trouble.conflict(rules.changed_row, &why);
        }
        for (place, own) in self.own_rows(tx) {
            if own.dead {
                for (table, value) in self.orphans(tx, place, own) {
                    let name = &self.subject.reading.schema.tables[table].name;
                    let why = format!("a row of {name} refers to {value}, which it takes away");
                    trouble.must(ErrorClass::Constraint, rules.foreign, why);
                }
                continue;
            }
            let added = self.store.chain(place).versions.first().is_some_and(|v| v.by == tx);
            if added && self.has_rival(tx, place, own) {
                let why = "another has committed a row with its key";
                trouble.must(ErrorClass::Constraint, rules.unique, why);
            }
            if added && !self.parents_stay(tx, place, own) {
                let why = "the row that it refers to is gone";
                trouble.must(ErrorClass::Constraint, rules.foreign, why);
            }
        }
        Ok(trouble)
    }

    /// A row that one has changed and another deleted, where both commit.
    fn lost_change(&self, tx: TxId) -> Option<String> {
        let snapshot = self.snapshot_of(tx)?;
        let since = |by: TxId| match self.txs[by].end {
            End::Committed(at) => by != tx && at >= snapshot,
            _ => false,
        };
        let own = || self.marks.iter().filter(|m| m.by == tx && m.certain);
        let theirs = |m: &&Mark| since(m.by) && m.certain;
        self.marks.iter().filter(theirs).find_map(|theirs| {
            let meets =
                |m: &Mark| m.place == theirs.place && m.column.is_none() != theirs.column.is_none();
            own().find(|m| meets(m)).map(|own| {
                let table = &self.subject.reading.schema.tables[own.place.table].name;
                let who = &self.txs[theirs.by].session;
                let what = match own.column {
                    None => ("changed", "deleted"),
                    Some(_) => ("deleted", "changed"),
                };
                format!("{who} has {} a row of {table} that it has {}", what.0, what.1)
            })
        })
    }

    /// The rows that a transaction has written, each as it leaves it.
    fn own_rows(&self, tx: TxId) -> Vec<(Place, &Version)> {
        let tables = 0..self.store.tables.len();
        let places = tables.flat_map(|table| self.store.places(table));
        let own = |p: Place| self.store.chain(p).last_of(|by| by == tx).map(|v| (p, v));
        places.filter_map(own).collect()
    }

    fn has_rival(&self, tx: TxId, place: Place, own: &Version) -> bool {
        let table = place.table;
        (0..self.keys[table].len()).any(|key| {
            let Some(cells) = self.key_of(table, key, own) else { return false };
            let has = |v: &Version| {
                let theirs = self.key_of(table, key, v);
                theirs.is_some_and(|theirs| same_key(&cells, &theirs, self.folds_case(tx)))
            };
            let mut others = self.store.places(table).filter(|p| *p != place);
            others.any(|p| self.in_index(p, tx).is_some_and(has))
        })
    }

    fn parents_stay(&self, tx: TxId, place: Place, own: &Version) -> bool {
        let foreign_keys = &self.subject.reading.schema.tables[place.table].foreign_keys;
        self.foreign_columns(place.table).into_iter().all(|(key, column)| {
            let value = &own.row[column];
            let Some((parent, of)) = self.parent_of(&foreign_keys[key]) else { return true };
            *value == Value::Null || self.somebody_has(tx, parent, of, value)
        })
    }

    /// Keys that a deleted row takes away, with the table that refers to them.
    fn orphans(&self, tx: TxId, place: Place, gone: &Version) -> Vec<(usize, Value)> {
        let mut orphans = Vec::new();
        for (child, table) in self.subject.reading.schema.tables.iter().enumerate() {
            for (number, column) in self.foreign_columns(child) {
                let Some((parent, key)) = self.parent_of(&table.foreign_keys[number]) else {
                    continue;
                };
                let value = &gone.row[key.min(gone.row.len() - 1)];
                if parent == place.table
                    && self.somebody_has(tx, child, column, value)
                    && !self.somebody_has(tx, parent, key, value)
                {
                    orphans.push((child, value.clone()));
                }
            }
        }
        orphans
    }

    fn somebody_has(&self, tx: TxId, table: usize, column: usize, value: &Value) -> bool {
        let has = |v: &Version| {
            same_key(&[v.row[column].clone()], std::slice::from_ref(value), self.folds_case(tx))
        };
        self.store.places(table).any(|p| self.in_index(p, tx).is_some_and(has))
    }

    /// What a transaction wrote goes on top of what others have committed
    /// since its snapshot, column by column.
    pub async fn merge(&mut self, tx: TxId) -> Result<(), Stop> {
        let Some(snapshot) = self.snapshot_of(tx) else { return Ok(()) };
        let rows: Vec<(Place, Version)> =
            self.own_rows(tx).into_iter().map(|(place, own)| (place, own.clone())).collect();
        for (place, own) in rows {
            let chain = self.store.chain(place);
            let base = chain.last_of(|by| self.committed_before(by, snapshot)).cloned();
            let theirs = self.newest(place, FIRST_ROWS).cloned();
            let (Some(base), Some(theirs)) = (base, theirs) else { continue };
            if base.id == theirs.id && base.dead == theirs.dead {
                continue;
            }
            if own.dead || theirs.dead {
                let last = if own.dead { own } else { theirs };
                let (statement, at) = (self.statements, self.now);
                self.store
                    .add_version(place, Version { by: tx, statement, at, dead: true, ..last });
                continue;
            }
            let changed: Vec<usize> =
                (0..own.row.len()).filter(|c| !own.row[*c].same(&base.row[*c])).collect();
            let sql = self.tables.merged(place.table, theirs.id, own.id, &changed);
            if let Some(fresh) = self.fresh(place.table, sql, None).await?.pop() {
                let merged = self.version(fresh, tx);
                self.store.add_version(place, merged);
            }
        }
        Ok(())
    }
}

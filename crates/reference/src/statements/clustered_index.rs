//! Clustered indexes: a primary key has one record, whichever row has it, and a
//! row whose key changes moves to another record.

use super::current_read::decides_by_row;
use crate::model::ReferenceModel;
use crate::version_tables::{Search, VersionId};
use crate::world::{Place, TxId, Version, same_key};
use isolde_catalog::RowStorage;
use isolde_model::Value;
use isolde_model::value::Row;
use isolde_sql::{Expr, Index, Stmt, Write};

impl ReferenceModel<'_> {
    /// A new row. It goes on with the record of a deleted one that had its
    /// primary key: a statement that waits for that record finds the new row in it.
    pub fn add_row(&mut self, tx: TxId, table: usize, new: &Version) -> Place {
        let Some(record) = self.free_record(tx, table, new) else {
            return self.world.add_row(table, new.clone());
        };
        self.world.add_version(record, new.clone());
        record
    }

    /// The record that the last row with this primary key has left.
    fn free_record(&self, tx: TxId, table: usize, new: &Version) -> Option<Place> {
        let concurrency = self.world.concurrency(tx);
        // A scan of a single snapshot cannot distinguish the two.
        if concurrency.storage != RowStorage::ClusteredIndex
            || concurrency.single_scan_snapshot()
            || self.world.buffers(tx)
            || self.world.merges(tx)
        {
            return None;
        }
        let primary = self.keys[table].iter().position(|k| k.primary)?;
        let key = self.key_of(table, primary, new)?;
        let has_key = |v: &&Version| {
            let theirs = self.key_of(table, primary, v);
            theirs.is_some_and(|theirs| {
                same_key(&key, &theirs, concurrency.constraints.case_insensitive_keys)
            })
        };
        let left = |p: Place| self.world.newest(p, tx).filter(|v| v.dead).filter(has_key);
        let free = self.world.places(table).filter_map(|p| left(p).map(|v| (v.at, p)));
        free.max().map(|(_, place)| place)
    }

    /// A row goes, and whatever had its record before.
    pub fn remove_row(&mut self, tx: TxId, place: Place, old: Version) {
        self.world.delete(place, old.clone(), tx);
        self.supersede_records(tx, place, &old);
    }

    /// In a clustered index a new row takes the record of one that was deleted or
    /// whose key has changed: its writer no longer sees the old row, although that
    /// was removed after its read view was created.
    pub fn supersede_records(&mut self, tx: TxId, place: Place, new: &Version) {
        let primary = self.keys[place.table].iter().position(|k| k.primary);
        let clustered = self.world.concurrency(tx).storage == RowStorage::ClusteredIndex
            && !self.world.buffers(tx);
        let Some(primary) = primary.filter(|_| clustered) else { return };
        let key = self.key_of(place.table, primary, new);
        let others: Vec<Place> = self.world.places(place.table).filter(|p| *p != place).collect();
        for other in others {
            let has_key = |v: &Version| self.key_of(place.table, primary, v) == key;
            let Some(last) = self.world.newest(other, tx).filter(|v| v.by != tx) else { continue };
            if last.dead && has_key(last) {
                let old = last.clone();
                self.world.delete(other, old, tx);
            } else if !last.dead && !has_key(last) {
                let versions = &self.world.chain(other).versions;
                if let Some(had) = versions.iter().rposition(|v| !v.dead && has_key(v)) {
                    self.world.hide(other, had, tx);
                }
            }
        }
    }

    /// Whether versions of a row are at different positions: in different partitions,
    /// or in an index that a search by some columns may read. Any index counts if the
    /// searched columns are not known.
    pub fn moved(
        &self,
        place: Place,
        states: &[Option<VersionId>],
        searched: Option<&[&str]>,
    ) -> bool {
        let table = &self.subject.reading.schema.tables[place.table];
        // A condition on the columns that a generated column is computed from is also a
        // condition on that column. Without a primary key, rows may be in the order of
        // any other key.
        let is_open = |name: &str| {
            let column = table.column(name);
            table.primary_key.is_empty() || column.is_some_and(|c| c.generated.is_some())
        };
        let named = |name: &str| searched.is_none_or(|names| names.contains(&name));
        let is_read = |columns: &Vec<String>| columns.iter().any(|c| named(c) || is_open(c));
        let indexes = table.indexes.iter().map(Index::columns).chain(table.unique.iter().cloned());
        let mut indexed: Vec<String> = indexes.filter(is_read).flatten().collect();
        indexed.extend(table.partitioned_by.clone());
        let in_order = searched.is_some();
        let versions = &self.world.chain(place).versions;
        let rows: Vec<&Row> =
            versions.iter().filter(|v| states.contains(&Some(v.id))).map(|v| &*v.row).collect();
        rows.windows(2).any(|two| {
            let differs = |c: &usize| !two[0][*c].same(&two[1][*c]);
            let column = |name: &String| table.columns.iter().position(|c| c.name == *name);
            // A scan in key order finds a row again that moves forward.
            let goes_on = |c: usize| match (&two[0][c], &two[1][c]) {
                (Value::Int(old), Value::Int(new)) => in_order && old < new,
                _ => false,
            };
            indexed.iter().filter_map(column).any(|c| differs(&c))
                || table
                    .primary_key
                    .iter()
                    .filter_map(column)
                    .find(differs)
                    .is_some_and(|c| !goes_on(c))
        })
    }

    /// The columns by which a write looks for rows of its table: it reads no
    /// index of others. None when more than the row decides.
    pub fn searched_columns(&self, table: usize, step: usize) -> Option<Vec<&str>> {
        let (name, join, filter) = match self.operation(step)? {
            Stmt::Write(Write::Update(update)) => (&update.table, &update.join, &update.filter),
            Stmt::Write(Write::Delete(delete)) => (&delete.table, &delete.join, &delete.filter),
            _ => return None,
        };
        let search =
            Search { table: name, alias: None, join: join.as_ref(), filter: filter.as_ref() };
        if *name != self.subject.reading.schema.tables[table].name || !decides_by_row(search) {
            return None;
        }
        let mut columns = Vec::new();
        filter.iter().for_each(|f| {
            f.visit(&mut |e| {
                if let Expr::Column { name, .. } = e {
                    columns.push(name.as_str());
                }
            });
        });
        Some(columns)
    }
}

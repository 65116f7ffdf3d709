//! Records: where rows live by their primary key, a key has one record,
//! whichever row has it, and a row that gets another key goes elsewhere.

use super::current::decides_by_row;
use super::store::{Place, TxId, Version, VersionId, same_key};
use super::version_tables::Search;
use super::walk::Walk;
use crate::Value;
use crate::sql::{Expr, Index, Stmt};
use crate::value::Row;

impl Walk<'_> {
    /// A new row. It goes on with the record of a deleted one that had its
    /// primary key: whoever waits for that record meets the new row in it.
    pub fn add_row(&mut self, tx: TxId, table: usize, new: &Version) -> Place {
        let Some(record) = self.free_record(tx, table, new) else {
            return self.store.add_row(table, new.clone());
        };
        self.store.add_version(record, new.clone());
        record
    }

    /// The record that the last row with this primary key has left.
    fn free_record(&self, tx: TxId, table: usize, new: &Version) -> Option<Place> {
        let conduct = self.conduct(tx);
        // Who finds all rows in one state of the database cannot tell.
        if !conduct.clustered || conduct.looks_once || self.buffers(tx) || self.merges(tx) {
            return None;
        }
        let primary = self.keys[table].iter().position(|k| k.primary)?;
        let key = self.key_of(table, primary, new)?;
        let has_key = |v: &&Version| {
            let theirs = self.key_of(table, primary, v);
            theirs.is_some_and(|theirs| same_key(&key, &theirs, conduct.folds_case))
        };
        let left = |p: Place| self.newest(p, tx).filter(|v| v.dead).filter(has_key);
        let free = self.store.places(table).filter_map(|p| left(p).map(|v| (v.at, p)));
        free.max().map(|(_, place)| place)
    }

    /// A row goes, and whatever had its record before.
    pub fn remove_row(&mut self, tx: TxId, place: Place, old: Version) {
        self.store.delete(place, old.clone(), tx, self.statements, self.now);
        self.takes_the_place(tx, place, &old);
    }

    /// Where rows live by their primary key, a new row takes the record of one
    /// that was deleted or has got another key: whoever wrote it does not see
    /// the old row any more, though it went after the view was made.
    pub fn takes_the_place(&mut self, tx: TxId, place: Place, new: &Version) {
        let primary = self.keys[place.table].iter().position(|k| k.primary);
        let clustered = self.conduct(tx).clustered && !self.buffers(tx);
        let Some(primary) = primary.filter(|_| clustered) else { return };
        let key = self.key_of(place.table, primary, new);
        let others: Vec<Place> = self.store.places(place.table).filter(|p| *p != place).collect();
        for other in others {
            let has_key = |v: &Version| self.key_of(place.table, primary, v) == key;
            let Some(last) = self.newest(other, tx).filter(|v| v.by != tx) else { continue };
            if last.dead && has_key(last) {
                let old = last.clone();
                self.store.delete(other, old, tx, self.statements, self.now);
            } else if !last.dead && !has_key(last) {
                let versions = &self.store.chain(other).versions;
                if let Some(had) = versions.iter().rposition(|v| !v.dead && has_key(v)) {
                    self.store.hide(other, had, tx, self.statements, self.now);
                }
            }
        }
    }

    /// Whether versions of a row are in different places: in partitions, or of
    /// an index that a search by some columns may read; of any one when it is
    /// not known what is searched.
    pub fn moved(
        &self,
        place: Place,
        states: &[Option<VersionId>],
        searched: Option<&[&str]>,
    ) -> bool {
        let table = &self.subject.reading.schema.tables[place.table];
        // A condition on what it is computed from is one on a generated column,
        // and without a primary key rows may be in the order of any other.
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
        let versions = &self.store.chain(place).versions;
        let rows: Vec<&Row> =
            versions.iter().filter(|v| states.contains(&Some(v.id))).map(|v| &*v.row).collect();
        rows.windows(2).any(|two| {
            let differs = |c: &usize| !two[0][*c].same(&two[1][*c]);
            let column = |name: &String| table.columns.iter().position(|c| c.name == *name);
            // Who goes through all rows in their order meets one that goes on.
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
            Stmt::Update(update) => (&update.table, &update.join, &update.filter),
            Stmt::Delete(delete) => (&delete.table, &delete.join, &delete.filter),
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

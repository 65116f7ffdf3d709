//! Write conflicts per column: each write marks the columns that it changes, and
//! conflicts with the marks of other transactions on the same columns.
//!
//! Writes to different columns of a row do not conflict; COMMIT merges them
//! (`column_merge`).

use crate::constraints::Change;
use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::version_tables::{Fresh, Sets};
use crate::world::{End, Mark, Place, TxId, Version};
use isolde_catalog::RowStorage;
use isolde_model::breach::{Obstacle, RowChange};
use isolde_model::history::ErrorClass;
use isolde_sql::{Expr, Table};

impl ReferenceModel<'_> {
    /// What an UPDATE made of the rows that it found; and how many of them it
    /// left alone.
    pub fn write_rows(
        &mut self,
        (tx, step): (TxId, usize),
        table: usize,
        sets: Sets<'_>,
        found: Vec<Fresh>,
        errors: &mut ExpectedErrors,
    ) -> (Vec<Change>, u64) {
        let written = written_columns(&self.subject.reading.schema.tables[table], sets);
        let mut done = Vec::new();
        let mut unchanged = 0;
        for fresh in found {
            let Some(place) = self.world.find(table, fresh.source) else { continue };
            let Some(old) = self.world.newest(place, tx).cloned() else { continue };
            let new = self.world.version(fresh, tx);
            if self.world.concurrency(tx).counting.omits_unchanged() && old.row == new.row {
                continue;
            }
            if self.world.concurrency(tx).conflicts.noop_update_does_not_conflict
                && old.row == new.row
            {
                unchanged += 1;
                continue;
            }
            done.extend(self.write_row((tx, step), place, (old, new), &written, errors));
        }
        (done, unchanged)
    }

    /// One row gets new values in some columns, in its place or, where a key
    /// or an index is among them, as another row.
    pub fn write_row(
        &mut self,
        (tx, step): (TxId, usize),
        place: Place,
        (old, new): (Version, Version),
        written: &[usize],
        errors: &mut ExpectedErrors,
    ) -> Vec<Change> {
        self.check_row(tx, place.table, &new, errors);
        if self.moves(tx, place.table, written) {
            let gone = self.delete_row((tx, step), place, old, errors);
            let to = self.world.add_row(place.table, new.clone());
            return vec![gone, Change::new(to, None, Some(new))];
        }
        for column in written {
            let changes = !old.row[*column].same(&new.row[*column]);
            self.meet((tx, step), place, Some(*column), changes, errors);
            self.world.mark(tx, place, Some(*column), changes);
        }
        self.world.add_version(place, new.clone());
        vec![Change::new(place, Some(old), Some(new))]
    }

    pub fn delete_row(
        &mut self,
        (tx, step): (TxId, usize),
        place: Place,
        old: Version,
        errors: &mut ExpectedErrors,
    ) -> Change {
        self.meet((tx, step), place, None, true, errors);
        self.world.mark(tx, place, None, true);
        let (statement, at) = (self.world.statement(), self.world.now());
        self.world.add_version(place, Version { by: tx, statement, at, dead: true, ..old.clone() });
        Change::new(place, Some(old), None)
    }

    /// Whether a write changes an indexed column, which deletes the row and
    /// inserts another.
    fn moves(&self, tx: TxId, table: usize, written: &[usize]) -> bool {
        let of = &self.subject.reading.schema.tables[table];
        let indexed = |column: &usize| is_indexed(of, &of.columns[*column].name);
        self.world.concurrency(tx).storage == RowStorage::ReinsertsOnIndexedUpdate
            && written.iter().any(indexed)
    }

    /// Checks the write of a column, or of a whole row, against the marks of others.
    fn meet(
        &mut self,
        (tx, step): (TxId, usize),
        place: Place,
        column: Option<usize>,
        changes: bool,
        errors: &mut ExpectedErrors,
    ) {
        if self.world.concurrency(tx).merges_at_commit() {
            return;
        }
        let rules = self.world.concurrency(tx).rules;
        let snapshot = self.kept_snapshot(tx, step);
        let table = &self.subject.reading.schema.tables[place.table].name;
        let concerns = |m: &&Mark| {
            let since = match self.world.tx(m.by).end {
                End::Open => true,
                End::Committed(at) => at >= snapshot,
                End::RolledBack => false,
            };
            m.place == place && m.by != tx && since
        };
        let met: Vec<Mark> = self.world.marks().filter(concerns).copied().collect();
        for mark in met {
            let concurrent = |change: RowChange| {
                let (other, table) = (self.world.session(mark.by).to_string(), table.clone());
                Obstacle::ConcurrentChange { other, table, theirs: change, ours: change }
            };
            match (mark.column, column) {
                (None, None) if mark.certain => {
                    errors.conflict(rules.changed_row, concurrent(RowChange::Delete));
                }
                // If both are to stay, one of them must fail by its COMMIT.
                (None, _) | (_, None) => {
                    errors.permit(ErrorClass::WriteConflict, rules.changed_row);
                }
                (Some(theirs), Some(mine)) if theirs == mine && mark.certain => {
                    errors.conflict(rules.changed_row, concurrent(RowChange::Value));
                }
                (Some(theirs), Some(mine)) if theirs == mine => {
                    errors.permit(ErrorClass::WriteConflict, rules.changed_row);
                }
                (Some(_), Some(_)) if changes && mark.certain => {
                    self.use_rule(step, rules.held_row);
                }
                _ => {}
            }
        }
    }
}

/// The columns that an UPDATE writes: those that it sets, and with them all
/// others of a CHECK that one of them is in.
pub fn written_columns(table: &Table, sets: Sets<'_>) -> Vec<usize> {
    let mut names: Vec<String> = sets.iter().map(|(column, _)| column.clone()).collect();
    for check in &table.checks {
        let checked = columns_of(check);
        if checked.iter().any(|c| sets.iter().any(|(set, _)| set == c)) {
            names.extend(checked);
        }
    }
    let columns = table.columns.iter().enumerate();
    columns.filter(|(_, c)| names.contains(&c.name)).map(|(place, _)| place).collect()
}

fn is_indexed(table: &Table, column: &str) -> bool {
    let parts = table.indexes.iter().flat_map(|i| &i.parts);
    table.is_in_a_key(column)
        || table.foreign_keys.iter().any(|f| f.column == column)
        || parts.into_iter().any(|part| columns_of(&part.of).iter().any(|c| c == column))
}

fn columns_of(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    expr.visit(&mut |e| {
        if let Expr::Column { name, .. } = e {
            names.push(name.clone());
        }
    });
    names
}

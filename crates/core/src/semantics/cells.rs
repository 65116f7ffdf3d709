//! Writers that meet column by column, as soon as they write: what each has
//! done to a row is marked, and who writes looks at the marks of the others.
//!
//! Two transactions that write different columns of a row do not meet; what
//! each leaves is put together when they commit ([`super::merge`]).

use super::conclude::Trouble;
use super::foreign::Change;
use super::rules::Changed;
use super::store::{Place, TxId, Version};
use super::transaction::{End, Mark};
use super::version_tables::{Fresh, Sets};
use super::walk::Walk;
use crate::history::ErrorClass;
use crate::sql::{Expr, Table};

impl Walk<'_> {
    pub fn merges(&self, tx: TxId) -> bool {
        self.conduct(tx).changed == Changed::Merge
    }

    /// What an UPDATE made of the rows that it found; and how many of them it
    /// left alone.
    pub fn write_rows(
        &mut self,
        (tx, step): (TxId, usize),
        table: usize,
        sets: Sets<'_>,
        found: Vec<Fresh>,
        trouble: &mut Trouble,
    ) -> (Vec<Change>, u64) {
        let written = written_columns(&self.subject.reading.schema.tables[table], sets);
        let mut done = Vec::new();
        let mut unchanged = 0;
        for fresh in found {
            let Some(place) = self.store.find(table, fresh.source) else { continue };
            let Some(old) = self.newest(place, tx).cloned() else { continue };
            let new = self.version(fresh, tx);
            if self.conduct(tx).counts_changed_rows && old.row == new.row {
                continue;
            }
            if self.conduct(tx).equal_is_nothing && old.row == new.row {
                unchanged += 1;
                continue;
            }
            done.extend(self.write_row((tx, step), place, (old, new), &written, trouble));
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
        trouble: &mut Trouble,
    ) -> Vec<Change> {
        self.holds_rules_of_row(tx, place.table, &new, trouble);
        if self.moves(tx, place.table, written) {
            let gone = self.delete_row((tx, step), place, old, trouble);
            let to = self.store.add_row(place.table, new.clone());
            return vec![gone, Change { place: to, old: None, new: Some(new) }];
        }
        for column in written {
            let changes = !old.row[*column].same(&new.row[*column]);
            self.meet((tx, step), place, Some(*column), changes, trouble);
            self.mark(tx, place, Some(*column), changes);
        }
        self.store.add_version(place, new.clone());
        vec![Change { place, old: Some(old), new: Some(new) }]
    }

    pub fn delete_row(
        &mut self,
        (tx, step): (TxId, usize),
        place: Place,
        old: Version,
        trouble: &mut Trouble,
    ) -> Change {
        self.meet((tx, step), place, None, true, trouble);
        self.mark(tx, place, None, true);
        let (statement, at) = (self.statements, self.now);
        self.store.add_version(place, Version { by: tx, statement, at, dead: true, ..old.clone() });
        Change { place, old: Some(old), new: None }
    }

    /// The columns of an index: who writes one of them deletes the row and
    /// adds another.
    fn moves(&self, tx: TxId, table: usize, written: &[usize]) -> bool {
        let of = &self.subject.reading.schema.tables[table];
        let indexed = |column: &usize| is_indexed(of, &of.columns[*column].name);
        self.conduct(tx).moves_indexed && written.iter().any(indexed)
    }

    fn mark(&mut self, by: TxId, place: Place, column: Option<usize>, certain: bool) {
        self.marks.push(Mark { by, place, column, certain, statement: self.statements });
    }

    /// Whom the writer of a column, or of a whole row, meets.
    fn meet(
        &mut self,
        (tx, step): (TxId, usize),
        place: Place,
        column: Option<usize>,
        changes: bool,
        trouble: &mut Trouble,
    ) {
        if self.conduct(tx).merges_at_commit {
            return;
        }
        let rules = self.conduct(tx).rules;
        let snapshot = self.kept_snapshot(tx, step);
        let table = &self.subject.reading.schema.tables[place.table].name;
        let concerns = |m: &&Mark| {
            let since = match self.txs[m.by].end {
                End::Open => true,
                End::Committed(at) => at >= snapshot,
                End::RolledBack => false,
            };
            m.place == place && m.by != tx && since
        };
        let met: Vec<Mark> = self.marks.iter().filter(concerns).copied().collect();
        for mark in met {
            let who = self.txs[mark.by].session.clone();
            match (mark.column, column) {
                (None, None) if mark.certain => {
                    let why = format!("{who} has deleted a row of {table} that it deletes");
                    trouble.conflict(rules.changed_row, &why);
                }
                // If both are to stay, one of them must fail by its COMMIT.
                (None, _) | (_, None) => {
                    trouble.may(ErrorClass::WriteConflict, rules.changed_row);
                }
                (Some(theirs), Some(mine)) if theirs == mine && mark.certain => {
                    let why = format!("{who} has changed a value of {table} that it changes");
                    trouble.conflict(rules.changed_row, &why);
                }
                (Some(theirs), Some(mine)) if theirs == mine => {
                    trouble.may(ErrorClass::WriteConflict, rules.changed_row);
                }
                (Some(_), Some(_)) if changes && mark.certain => {
                    self.use_rule(step, rules.held_row);
                }
                _ => {}
            }
        }
    }

    /// A statement has failed: what it did before may still be in the way of
    /// others.
    pub fn leave_uncertain_marks(&mut self, tx: TxId) {
        let holds = self.conduct(tx).failed_holds && !self.txs[tx].autocommit;
        let statement = self.statements;
        let own = |m: &Mark| m.by == tx && m.statement == statement;
        self.marks.retain(|m| holds || !own(m));
        self.marks.iter_mut().filter(|m| own(m)).for_each(|m| m.certain = false);
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

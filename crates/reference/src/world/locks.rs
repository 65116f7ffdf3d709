//! Locks on rows and tables, and the columns that each transaction has written.

use super::{Place, TxId, World};
use std::collections::{BTreeMap, BTreeSet};

/// The mode of a row lock, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl Strength {
    pub fn conflicts(self, other: Strength) -> bool {
        use Strength::{KeyShare, NoKeyUpdate, Share, Update};
        match (self, other) {
            (Update, _) | (_, Update) => true,
            (NoKeyUpdate, NoKeyUpdate | Share) | (Share, NoKeyUpdate) => true,
            (KeyShare, _) | (_, KeyShare) | (Share, Share) => false,
        }
    }
}

/// A row lock, held until its transaction ends.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    pub by: TxId,
    pub place: Place,
    pub strength: Strength,
    pub statement: usize,
}

/// A lock on a whole table, held until its transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLock {
    pub by: TxId,
    pub table: usize,
    pub write: bool,
    pub statement: usize,
}

/// A column of a row that a transaction has written, for engines whose write
/// conflicts are per column.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub by: TxId,
    pub place: Place,
    /// None when it deleted the row.
    pub column: Option<usize>,
    /// False when it left the value unchanged, or when its statement failed:
    /// the engine may or may not have recorded such a write.
    pub certain: bool,
    pub statement: usize,
}

impl World {
    pub fn locks(&self) -> impl Iterator<Item = &Lock> {
        self.locks.iter()
    }

    /// Locks a row, unless concurrent writes are merged.
    pub fn lock(&mut self, place: Place, by: TxId, strength: Strength) {
        if self.merges(by) {
            return;
        }
        self.locks.push(Lock { by, place, strength, statement: self.statement });
    }

    /// The open transaction whose lock on a row conflicts with a lock that `me`
    /// requests.
    pub fn holder(&self, place: Place, me: TxId, strength: Strength) -> Option<TxId> {
        let holds = |l: &&Lock| {
            l.place == place
                && l.by != me
                && self.is_open(l.by)
                && !self.buffers(l.by)
                && l.strength.conflicts(strength)
        };
        self.locks.iter().find(holds).map(|l| l.by)
    }

    pub fn table_locks(&self) -> impl Iterator<Item = &TableLock> {
        self.table_locks.iter()
    }

    pub fn lock_table(&mut self, by: TxId, table: usize, write: bool) {
        self.table_locks.push(TableLock { by, table, write, statement: self.statement });
    }

    pub fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.marks.iter()
    }

    /// Records that a transaction has written a column, or deleted the row.
    pub fn mark(&mut self, by: TxId, place: Place, column: Option<usize>, certain: bool) {
        self.marks.push(Mark { by, place, column, certain, statement: self.statement });
    }

    /// After the current statement has failed: its writes may still conflict
    /// with those of others, where a failed transaction keeps its writes.
    pub(super) fn make_marks_uncertain(&mut self, tx: TxId) {
        let keeps =
            self.concurrency(tx).failed_transaction_keeps_writes() && !self.tx(tx).autocommit;
        let statement = self.statement;
        let own = |m: &Mark| m.by == tx && m.statement == statement;
        self.marks.retain(|m| keeps || !own(m));
        self.marks.iter_mut().filter(|m| own(m)).for_each(|m| m.certain = false);
    }

    /// Records tables that a step of a transaction scans: it may hold locks in them
    /// even if it finds no row.
    pub fn add_scanned(&mut self, tx: TxId, step: usize, tables: BTreeSet<usize>) {
        self.scanned.entry(tx).or_default().entry(step).or_default().extend(tables);
    }

    /// The tables that a transaction has scanned.
    pub fn scanned(&self, tx: TxId) -> BTreeSet<usize> {
        self.scanned.get(&tx).into_iter().flat_map(BTreeMap::values).flatten().copied().collect()
    }

    /// The steps of a transaction that have scanned a table.
    pub fn scans_of(&self, tx: TxId, table: usize) -> Vec<usize> {
        let steps = self.scanned.get(&tx).into_iter().flatten();
        steps.filter(|(_, tables)| tables.contains(&table)).map(|(step, _)| *step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Strength::{self, KeyShare, NoKeyUpdate, Share, Update};

    #[test]
    fn row_locks_conflict_as_in_the_table_of_the_postgresql_manual() {
        let all = [KeyShare, Share, NoKeyUpdate, Update];
        let table = [
            [false, false, false, true],
            [false, false, true, true],
            [false, true, true, true],
            [true, true, true, true],
        ];
        for (one, row) in all.iter().zip(table) {
            let conflicts = all.map(|other: Strength| one.conflicts(other));
            assert_eq!(conflicts, row, "{one:?}");
        }
    }
}

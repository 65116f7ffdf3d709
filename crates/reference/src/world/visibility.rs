//! Visibility: which version of a row a transaction reads.

use super::{FIRST_ROWS, Place, TxId, Version, World};
use crate::version_tables::{VersionId, View};
use isolde_catalog::{SnapshotAt, WriteConflictPolicy};

impl World {
    /// The snapshot of a step, which its transaction takes if it has none: the
    /// step sees what was committed before this moment. None for a dirty read,
    /// which sees the newest versions.
    pub fn take_snapshot(&mut self, tx: TxId, step: usize) -> Option<usize> {
        let started = self.started(step);
        let taken = self.concurrency(tx).snapshot.taken;
        let state = &mut self.transactions[tx];
        match taken {
            SnapshotAt::Dirty => None,
            _ if state.autocommit => Some(started),
            SnapshotAt::Statement => Some(started),
            SnapshotAt::FirstStatement | SnapshotAt::FirstRead => {
                Some(*state.snapshot.get_or_insert(started))
            }
            SnapshotAt::Begin => Some(state.began),
        }
    }

    /// The snapshot that a transaction has taken.
    pub fn snapshot_of(&self, tx: TxId) -> Option<usize> {
        let state = &self.transactions[tx];
        let at_begin =
            state.concurrency.as_ref().is_some_and(|c| c.snapshot.taken == SnapshotAt::Begin);
        if at_begin && !state.autocommit { Some(state.began) } else { state.snapshot }
    }

    /// The version of a row in a snapshot, with the transaction's own writes.
    pub fn visible(&self, place: Place, me: TxId, snapshot: usize) -> Option<&Version> {
        if self.hidden.contains(&(me, place)) {
            return None;
        }
        let counts = |tx| tx == me || self.committed_before(tx, snapshot);
        self.store.chain(place).last_of(counts).filter(|v| !v.dead)
    }

    /// The newest version that is committed, or the transaction's own; it may be
    /// a deleted one. Where writes read their snapshot only, that of the snapshot.
    pub fn newest(&self, place: Place, me: TxId) -> Option<&Version> {
        let mine = &self.transactions[me];
        let until = match mine.concurrency.as_ref().map(|c| c.conflicts.changed_row) {
            Some(WriteConflictPolicy::MergeColumns | WriteConflictPolicy::MergeAtCommit) => {
                self.snapshot_of(me).unwrap_or(usize::MAX)
            }
            Some(WriteConflictPolicy::FailCommit) => mine.began,
            _ => usize::MAX,
        };
        let counts = |tx: TxId| tx == me || self.committed_before(tx, until);
        self.store.chain(place).last_of(counts)
    }

    /// The versions of all rows in a snapshot.
    pub fn view(&self, me: TxId, snapshot: usize) -> View {
        (0..self.table_count()).map(|table| self.view_of(table, me, snapshot)).collect()
    }

    /// The versions of one table's rows in a snapshot.
    pub fn view_of(&self, table: usize, me: TxId, snapshot: usize) -> Vec<VersionId> {
        let places = self.places(table);
        places.filter_map(|p| self.visible(p, me, snapshot).map(|v| v.id)).collect()
    }

    /// The newest version of each row of a table, committed or not.
    pub fn dirty_view_of(&self, table: usize) -> Vec<VersionId> {
        let newest = |p: Place| self.chain(p).versions.last().filter(|v| !v.dead);
        self.places(table).filter_map(|p| newest(p).map(|v| v.id)).collect()
    }

    /// The committed version of each row that is not deleted.
    pub fn committed_rows(&self, table: usize) -> impl Iterator<Item = &Version> {
        self.places(table).filter_map(|p| self.newest(p, FIRST_ROWS).filter(|v| !v.dead))
    }

    /// The version of a row that an index contains: what the transaction wrote,
    /// or what is committed now.
    pub fn in_index(&self, place: Place, tx: TxId) -> Option<&Version> {
        let own = self.chain(place).last_of(|by| by == tx);
        let committed = self.newest(place, FIRST_ROWS);
        let gone = committed.is_some_and(|v| v.dead);
        own.or(committed).filter(|v| !v.dead && !gone)
    }
}

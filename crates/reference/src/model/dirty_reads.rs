//! Dirty reads: the newest versions when each was submitted, and the reads whose
//! rows are not known yet because other statements are blocked.

use crate::version_tables::{VersionId, View};
use crate::world::TxId;
use isolde_sql::Select;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

#[derive(Default)]
pub struct DirtyReads<'a> {
    /// The newest versions when each step of a dirty reader was submitted.
    submitted: BTreeMap<usize, View>,
    /// The tables that blocked statements may have been changing then.
    contended: BTreeMap<usize, Vec<usize>>,
    deferred: Vec<DeferredDirtyRead<'a>>,
    /// The changes that a blocked statement will make to each table, in its order.
    foreseen: BTreeMap<usize, Vec<ForeseenChange>>,
}

/// The version of a row before and after a change of a blocked statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeseenChange {
    pub before: Option<VersionId>,
    pub after: Option<VersionId>,
}

impl ForeseenChange {
    /// Applies the change to the rows in view.
    pub fn apply(self, view: &mut Vec<VersionId>) {
        view.retain(|id| Some(*id) != self.before);
        view.extend(self.after);
    }
}

/// A read whose result depends on statements that are still blocked.
pub struct DeferredDirtyRead<'a> {
    pub step: usize,
    pub tx: TxId,
    pub select: &'a Select,
    /// The versions that it sees of rows that no blocked statement was changing.
    pub view: View,
    /// Versions in the view that open transactions had written, by table: only
    /// their writers could change them again.
    pub held: BTreeSet<(usize, VersionId)>,
    /// The blocked steps that have not replied.
    pub waits: BTreeSet<usize>,
    /// The rows that they changed.
    pub changed: Vec<ChangedRow>,
}

/// The versions of one row that a read may have seen, that of its view first.
#[derive(Hash)]
pub struct ChangedRow {
    pub table: usize,
    pub states: Vec<Option<VersionId>>,
}

impl DeferredDirtyRead<'_> {
    /// Records versions that the read may have seen instead of `before`.
    pub fn may_show(
        &mut self,
        table: usize,
        before: Option<VersionId>,
        made: impl Iterator<Item = Option<VersionId>>,
    ) {
        // Versions are numbered table by table.
        let same =
            |c: &&mut ChangedRow| c.table == table && before.is_some() && c.states[0] == before;
        match self.changed.iter_mut().find(same) {
            Some(row) => row.states.extend(made),
            None => {
                let states = std::iter::once(before).chain(made).collect();
                self.changed.push(ChangedRow { table, states });
            }
        }
    }
}

impl<'a> DirtyReads<'a> {
    pub fn record_submission(&mut self, step: usize, newest: View, contended: Vec<usize>) {
        self.submitted.insert(step, newest);
        self.contended.insert(step, contended);
    }

    /// The newest versions of a table when the step was submitted.
    pub fn at_submission(&self, step: usize, table: usize) -> Option<&Vec<VersionId>> {
        self.submitted.get(&step).map(|view| &view[table])
    }

    /// Whether a blocked statement may have been changing the table when the
    /// step was submitted.
    pub fn is_contended(&self, step: usize, table: usize) -> bool {
        self.contended.get(&step).is_some_and(|tables| tables.contains(&table))
    }

    /// Replaces what blocked statements are foreseen to change.
    pub fn foresee(&mut self, changes: BTreeMap<usize, Vec<ForeseenChange>>) {
        self.foreseen = changes;
    }

    pub fn foreseen(&self, table: usize) -> &[ForeseenChange] {
        self.foreseen.get(&table).map_or(&[], Vec::as_slice)
    }

    pub fn defer(&mut self, read: DeferredDirtyRead<'a>) {
        self.deferred.push(read);
    }

    pub fn deferred_mut(&mut self) -> &mut [DeferredDirtyRead<'a>] {
        &mut self.deferred
    }

    pub fn take_deferred(&mut self) -> Vec<DeferredDirtyRead<'a>> {
        std::mem::take(&mut self.deferred)
    }

    /// Hashes all that later steps may depend on; `waiting` are the blocked steps.
    pub fn hash_state(&self, waiting: &[usize], hasher: &mut DefaultHasher) {
        for step in waiting {
            (step, self.submitted.get(step), self.contended.get(step)).hash(hasher);
        }
        for read in &self.deferred {
            (read.step, &read.view, &read.changed).hash(hasher);
        }
    }
}

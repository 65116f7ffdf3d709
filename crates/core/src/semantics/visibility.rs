//! Who sees which version of a row, and who holds it.

use super::Operation;
use super::account::Look;
use super::rules::{Changed, SnapshotAt};
use super::store::{Place, TxId, Version};
use super::transaction::{End, Lock, Strength};
use super::version_tables::View;
use super::walk::Walk;

impl Walk<'_> {
    /// What the statement sees is what was committed before this moment.
    /// None where a read sees whatever is newest.
    pub fn snapshot(&mut self, tx: TxId, step: usize) -> Option<usize> {
        let started = self.started.get(&step).copied().unwrap_or(self.now);
        let snapshot = self.conduct(tx).snapshot;
        let state = &mut self.txs[tx];
        let snapshot = match snapshot {
            SnapshotAt::Dirty => None,
            _ if state.autocommit => Some(started),
            SnapshotAt::Statement => Some(started),
            SnapshotAt::FirstStatement | SnapshotAt::FirstRead => {
                Some(*state.snapshot.get_or_insert(started))
            }
            SnapshotAt::Begin => Some(state.began),
        };
        self.looks.insert(step, Look { snapshot, at: self.now, by: tx });
        snapshot
    }

    /// The same for a statement that keeps to a snapshot.
    pub fn kept_snapshot(&mut self, tx: TxId, step: usize) -> usize {
        self.snapshot(tx, step).unwrap_or(self.now)
    }

    /// The snapshot that a transaction has taken.
    pub fn snapshot_of(&self, tx: TxId) -> Option<usize> {
        let state = &self.txs[tx];
        let at_begin = state.conduct.as_ref().is_some_and(|c| c.snapshot == SnapshotAt::Begin);
        if at_begin && !state.autocommit { Some(state.began) } else { state.snapshot }
    }

    pub fn is_open(&self, tx: TxId) -> bool {
        self.txs[tx].end == End::Open
    }

    pub fn committed_before(&self, tx: TxId, moment: usize) -> bool {
        matches!(self.txs[tx].end, End::Committed(at) if at < moment)
    }

    /// The version of a row in a snapshot, with the transaction's own writes.
    pub fn visible(&self, place: Place, me: TxId, snapshot: usize) -> Option<&Version> {
        if self.hidden.contains(&(me, place)) {
            return None;
        }
        let counts = |tx| tx == me || self.committed_before(tx, snapshot);
        self.store.chain(place).last_of(counts).filter(|v| !v.dead)
    }

    /// The newest version that is committed, or the transaction's own; perhaps
    /// a deleted one. Who works on a snapshot to the end knows nothing newer.
    pub fn newest(&self, place: Place, me: TxId) -> Option<&Version> {
        let mine = &self.txs[me];
        let until = match mine.conduct.as_ref().map(|c| c.changed) {
            Some(Changed::Merge) => self.snapshot_of(me).unwrap_or(usize::MAX),
            Some(Changed::FailsCommit) => mine.began,
            _ => usize::MAX,
        };
        let counts = |tx: TxId| tx == me || self.committed_before(tx, until);
        self.store.chain(place).last_of(counts)
    }

    pub fn view(&self, me: TxId, snapshot: usize) -> View {
        let of_table = |table: usize| {
            let places = self.store.places(table);
            places.filter_map(|p| self.visible(p, me, snapshot).map(|v| v.id)).collect()
        };
        (0..self.store.tables.len()).map(of_table).collect()
    }

    /// The transaction that keeps another from taking a row.
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

    /// Whether a step that waits has done nothing yet: it is sent anew.
    pub fn waits_undone(&self, step: usize) -> bool {
        let session = self.subject.history.steps[step].session.as_str();
        let conduct = self.tx_of(session).and_then(|tx| self.txs[tx].conduct.as_ref());
        conduct.is_some_and(|c| c.retries)
    }

    /// Whether another's statement waits that may have taken rows of these
    /// tables already: how far it has come is not known.
    pub fn may_be_taken(&self, tables: &[usize], me: TxId) -> bool {
        let takes = |step: &usize| {
            if self.waits_undone(*step) {
                return false;
            }
            let Operation::Statement(statement) = &self.subject.reading.operations[*step] else {
                return false;
            };
            let names = statement.tables();
            tables
                .iter()
                .any(|t| names.contains(&self.subject.reading.schema.tables[*t].name.as_str()))
        };
        let steps = &self.subject.history.steps;
        self.waiting.iter().any(|s| steps[*s].session != self.txs[me].session && takes(s))
    }

    pub fn lock(&mut self, place: Place, by: TxId, strength: Strength) {
        if self.merges(by) {
            return;
        }
        self.locks.push(Lock { by, place, strength, statement: self.statements });
    }
}

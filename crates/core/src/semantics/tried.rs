//! States of a walk that have been left without success: two ways that lead to
//! the same state go on alike, so the second need not be tried.

use super::Stop;
use super::store::{Chain, Place};
use super::transaction::{End, Lock, Mark};
use super::walk::Walk;
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Moments and statements, as far as what is still to come tells them apart.
struct Apart {
    moments: BTreeSet<usize>,
    /// Somebody is at work, to whom the order of all commits may matter.
    exactly: bool,
    savepoints: BTreeSet<usize>,
}

impl Apart {
    fn moment(&self, moment: usize) -> (usize, bool) {
        if self.exactly {
            return (moment, true);
        }
        (self.moments.range(..moment).count(), self.moments.contains(&moment))
    }

    fn statement(&self, statement: usize) -> usize {
        self.savepoints.range(..statement).count()
    }
}

impl Walk<'_> {
    /// Breaks off where all that can follow is known to fail. `left` is what
    /// has finished, too, and has not had its turn.
    pub fn leave_if_tried(&mut self, left: &[Vec<usize>]) -> Result<(), Stop> {
        let state = self.state(left);
        if self.choices.has_failed(state) { Err(Stop::Tried) } else { Ok(()) }
    }

    /// All that later steps may hang on, in one number. Versions count by what
    /// they are, not by their numbers.
    fn state(&self, left: &[Vec<usize>]) -> u64 {
        let open = self.txs.iter().filter(|t| t.end == End::Open);
        let mut moments: BTreeSet<usize> =
            open.flat_map(|t| [Some(t.began), t.snapshot]).flatten().collect();
        moments.extend(self.waiting.iter().filter_map(|step| self.started.get(step)));
        let marks = self.savepoints.values().flatten().map(|(_, before)| *before);
        let apart =
            Apart { moments, exactly: !self.waiting.is_empty(), savepoints: marks.collect() };
        let mut hasher = DefaultHasher::new();
        (self.now, left, &self.waiting).hash(&mut hasher);
        for tx in &self.txs {
            let end = match tx.end {
                End::Open => None,
                End::Committed(at) => Some(Some(apart.moment(at))),
                End::RolledBack => Some(None),
            };
            let snapshot = tx.snapshot.map(|s| apart.moment(s));
            (end, snapshot, tx.writer, tx.failed, tx.end == End::Open).hash(&mut hasher);
        }
        for points in self.savepoints.values() {
            points.iter().for_each(|(name, _)| name.hash(&mut hasher));
        }
        for step in &self.waiting {
            (step, self.dirty.get(step), self.beside.get(step)).hash(&mut hasher);
        }
        for read in &self.put_off {
            (read.step, &read.view, &read.changed).hash(&mut hasher);
        }
        for twice in &self.taken_twice {
            let places = (twice.old.table, twice.old.chain, twice.new.chain);
            (twice.by, places, apart.statement(twice.statement)).hash(&mut hasher);
        }
        self.searched.iter().collect::<BTreeSet<_>>().hash(&mut hasher);
        for lock in &self.table_locks {
            (lock.by, lock.table, lock.write).hash(&mut hasher);
        }
        for (table, chains) in self.store.tables.iter().enumerate() {
            let rows = chains.iter().enumerate().map(|(chain, versions)| {
                let place = Place { table, chain };
                let locks = self.locks.iter().filter(|l| l.place == place);
                let marks = self.marks.iter().filter(|m| m.place == place);
                of_row(versions, locks, marks, &apart)
            });
            rows.fold(0, u64::wrapping_add).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn of_row<'l>(
    chain: &Chain,
    locks: impl Iterator<Item = &'l Lock>,
    marks: impl Iterator<Item = &'l Mark>,
    apart: &Apart,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    for version in &chain.versions {
        format!("{:?}", version.row).hash(&mut hasher);
        let when = (apart.moment(version.at), apart.statement(version.statement));
        (version.by, when, version.dead).hash(&mut hasher);
    }
    let held: BTreeSet<_> =
        locks.map(|l| (l.by, l.strength, apart.statement(l.statement))).collect();
    held.hash(&mut hasher);
    let marked: BTreeSet<_> =
        marks.map(|m| (m.by, m.column, m.certain, apart.statement(m.statement))).collect();
    marked.hash(&mut hasher);
    hasher.finish()
}

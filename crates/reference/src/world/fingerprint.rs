//! A hash of the world that is equal for states from which every replay
//! continues alike.

use super::{Chain, End, Lock, Mark, Place, World};
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The moments and statements that later events can distinguish.
pub struct Distinct {
    moments: BTreeSet<usize>,
    /// A statement is blocked, to which the order of all commits may matter.
    exactly: bool,
    savepoints: BTreeSet<usize>,
}

impl Distinct {
    fn moment(&self, moment: usize) -> (usize, bool) {
        if self.exactly {
            return (moment, true);
        }
        (self.moments.range(..moment).count(), self.moments.contains(&moment))
    }

    pub fn statement(&self, statement: usize) -> usize {
        self.savepoints.range(..statement).count()
    }
}

impl World {
    pub fn distinct(&self) -> Distinct {
        let open = self.transactions.iter().filter(|t| t.end == End::Open);
        let mut moments: BTreeSet<usize> =
            open.flat_map(|t| [Some(t.began), t.snapshot]).flatten().collect();
        moments.extend(self.waiting.iter().filter_map(|step| self.started.get(step)));
        let savepoints = self.savepoints.values().flatten().map(|point| point.after);
        Distinct { moments, exactly: !self.waiting.is_empty(), savepoints: savepoints.collect() }
    }

    /// Hashes all that later steps may depend on. Versions count by their
    /// contents, not by their numbers.
    pub fn hash_state(&self, distinct: &Distinct, hasher: &mut DefaultHasher) {
        (self.now, &self.waiting).hash(hasher);
        for tx in &self.transactions {
            let end = match tx.end {
                End::Open => None,
                End::Committed(at) => Some(Some(distinct.moment(at))),
                End::RolledBack => Some(None),
            };
            let snapshot = tx.snapshot.map(|s| distinct.moment(s));
            (end, snapshot, tx.writer, tx.failed, tx.end == End::Open).hash(hasher);
        }
        for points in self.savepoints.values() {
            points.iter().for_each(|point| point.name.hash(hasher));
        }
        for lock in &self.table_locks {
            (lock.by, lock.table, lock.write).hash(hasher);
        }
        for (table, chains) in self.store.tables.iter().enumerate() {
            let rows = chains.iter().enumerate().map(|(chain, versions)| {
                let place = Place { table, chain };
                let locks = self.locks.iter().filter(|l| l.place == place);
                let marks = self.marks.iter().filter(|m| m.place == place);
                hash_row(versions, locks, marks, distinct)
            });
            rows.fold(0, u64::wrapping_add).hash(hasher);
        }
    }
}

fn hash_row<'l>(
    chain: &Chain,
    locks: impl Iterator<Item = &'l Lock>,
    marks: impl Iterator<Item = &'l Mark>,
    distinct: &Distinct,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    for version in &chain.versions {
        format!("{:?}", version.row).hash(&mut hasher);
        let when = (distinct.moment(version.at), distinct.statement(version.statement));
        (version.by, when, version.dead).hash(&mut hasher);
    }
    let held: BTreeSet<_> =
        locks.map(|l| (l.by, l.strength, distinct.statement(l.statement))).collect();
    held.hash(&mut hasher);
    let marked: BTreeSet<_> =
        marks.map(|m| (m.by, m.column, m.certain, distinct.statement(m.statement))).collect();
    marked.hash(&mut hasher);
    hasher.finish()
}

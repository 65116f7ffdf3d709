//! Locks on whole tables, where connections share a cache: a table has
//! readers or one writer, each until its transaction ends.

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::world::{TableLock, TxId};
use isolde_catalog::SnapshotAt;
use isolde_model::breach::Obstacle;

impl ReferenceModel<'_> {
    /// Locks the tables that the statement reads, and the one that it writes;
    /// holders of conflicting locks must have ended.
    pub fn lock_tables(
        &mut self,
        tx: TxId,
        step: usize,
        written: Option<&str>,
        errors: &mut ExpectedErrors,
    ) {
        let concurrency = self.world.concurrency(tx);
        let Some(rule) = concurrency.locking.table_locks else { return };
        let dirty = concurrency.snapshot.taken == SnapshotAt::Dirty;
        let names = self.operation(step).map(|s| s.tables()).unwrap_or_default();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            let write = written == Some(of.name.as_str());
            let read = names.contains(&of.name.as_str()) && !dirty;
            if !write && !read {
                continue;
            }
            let in_the_way = |l: &&TableLock| {
                l.table == table && l.by != tx && self.world.is_open(l.by) && (write || l.write)
            };
            if let Some(lock) = self.world.table_locks().find(in_the_way) {
                let holder = self.world.session(lock.by).to_string();
                let (table, writes) = (of.name.clone(), lock.write);
                errors.block(rule, Obstacle::TableLocked { holder, table, writes });
            }
            self.world.lock_table(tx, table, write);
        }
    }
}

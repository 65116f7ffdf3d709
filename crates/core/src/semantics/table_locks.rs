//! Locks on whole tables, where connections share a cache: a table has
//! readers or one writer, each until its transaction ends.

use super::conclude::Trouble;
use super::rules::SnapshotAt;
use super::store::TxId;
use super::walk::Walk;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLock {
    pub by: TxId,
    pub table: usize,
    pub write: bool,
    pub statement: usize,
}

impl Walk<'_> {
    /// Locks what the statement reads, and the table that it writes; whoever
    /// is in the way must have ended.
    pub fn lock_tables(
        &mut self,
        tx: TxId,
        step: usize,
        written: Option<&str>,
        trouble: &mut Trouble,
    ) {
        let conduct = self.conduct(tx);
        let Some(rule) = conduct.table_locks else { return };
        let dirty = conduct.snapshot == SnapshotAt::Dirty;
        let names = self.operation(step).map(|s| s.tables()).unwrap_or_default();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            let write = written == Some(of.name.as_str());
            let read = names.contains(&of.name.as_str()) && !dirty;
            if !write && !read {
                continue;
            }
            let in_the_way = |l: &&TableLock| {
                l.table == table && l.by != tx && self.is_open(l.by) && (write || l.write)
            };
            if let Some(lock) = self.table_locks.iter().find(in_the_way) {
                let does = if lock.write { "writes" } else { "reads" };
                let why = format!("{} {does} {}", self.txs[lock.by].session, of.name);
                trouble.held(rule, why);
            }
            let statement = self.statements;
            self.table_locks.push(TableLock { by: tx, table, write, statement });
        }
    }
}

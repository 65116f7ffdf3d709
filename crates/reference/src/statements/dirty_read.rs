//! Dirty reads concurrent with blocked statements: which rows such a statement had
//! changed by then is known only when it replies, and even then not how far it had
//! come.
//!
//! So the read is deferred. When the last of the blocked statements has replied,
//! each row that they changed was seen before or after the change: the read is
//! allowed if some combination explains it. A row that others changed in between
//! was not reached.

use crate::model::{ChangedRow, DeferredDirtyRead, ReferenceModel};
use crate::outcome::{Expected, ExpectedErrors};
use crate::stop::Stop;
use crate::version_tables::{VersionId, View};
use crate::world::{TxId, Version};
use isolde_catalog::SnapshotAt;
use isolde_model::breach::{Breach, RowDiff};
use isolde_model::history::EventKind;
use isolde_model::value::{Row, same_multiset};
use isolde_sql::{Control, Select, Stmt};
use std::collections::BTreeSet;

/// The number of sets of rows that are tried before a read counts as not modelled.
const MOST_SETS: usize = 256;

impl<'a> ReferenceModel<'a> {
    /// Defers a dirty read; false if no blocked statement may be changing the rows that
    /// it reads.
    pub fn defer_dirty_read(
        &mut self,
        tx: TxId,
        step: usize,
        select: &'a Select,
    ) -> Result<bool, Stop> {
        if self.world.concurrency(tx).snapshot.taken != SnapshotAt::Dirty {
            return Ok(false);
        }
        let session = self.world.session(tx);
        let steps = &self.subject.history.steps;
        let others = self.world.waiting().iter().copied().filter(|w| steps[*w].session != *session);
        let writes = |w: &usize| {
            !self.will_restart(*w)
                && !matches!(
                    self.operation(*w),
                    Some(Stmt::Select(_) | Stmt::Control(Control::Commit | Control::Rollback))
                )
        };
        let waits: BTreeSet<usize> = others.filter(writes).collect();
        if waits.is_empty() {
            return Ok(false);
        }
        if self.subject.reply(step).and_then(EventKind::rows).is_none() {
            // It failed, whatever it saw.
            let nothing = Expected::Rows(Vec::new());
            self.conclude(tx, step, nothing, ExpectedErrors::default(), None)?;
            return Ok(true);
        }
        if waits.iter().any(|w| self.operation(*w).is_none()) {
            let why = "a dirty read concurrent with a blocked statement that is not known";
            return Err(Stop::not_modelled(step, why));
        }
        self.snapshot(tx, step);
        let tables = 0..self.world.table_count();
        let view =
            tables.map(|table| self.dirty_view_of(table, step)).collect::<Result<View, Stop>>()?;
        self.record_view(tx, step, &view);
        let mut held = BTreeSet::new();
        for (table, chains) in self.world.tables().iter().enumerate() {
            let versions = chains.iter().flat_map(|c| &c.versions);
            let open = versions.filter(|v| self.world.is_open(v.by) && view[table].contains(&v.id));
            held.extend(open.map(|v| (table, v.id)));
        }
        self.use_rule(step, self.world.concurrency(tx).rules.read);
        let changed = Vec::new();
        self.dirty_reads.defer(DeferredDirtyRead { step, tx, select, view, held, waits, changed });
        Ok(true)
    }

    /// A statement has replied and its versions are stored: deferred reads may have
    /// seen them.
    pub fn record_visible_changes(&mut self, tx: TxId, step: usize) {
        for mut read in self.dirty_reads.take_deferred() {
            if !read.waits.remove(&step) {
                self.dirty_reads.defer(read);
                continue;
            }
            for table in 0..self.world.table_count() {
                for place in self.world.places(table) {
                    let versions = &self.world.chain(place).versions;
                    let mine = |v: &Version| v.by == tx && v.statement == self.world.statement();
                    let Some(first) = versions.iter().position(mine) else { continue };
                    let before = first.checked_sub(1).map(|b| &versions[b]).filter(|v| !v.dead);
                    let reached = before.is_none_or(|v| {
                        read.view[table].contains(&v.id)
                            && (v.by == tx || !read.held.contains(&(table, v.id)))
                    });
                    if reached {
                        let before = before.map(|v| v.id);
                        let made = versions[first..].iter().filter(|v| mine(v));
                        let mut made: Vec<_> = made.map(|v| (!v.dead).then_some(v.id)).collect();
                        // On its way to another place of an index it is nowhere.
                        let states: Vec<_> = made.iter().copied().chain([before]).collect();
                        if !states.contains(&None) && self.moved(place, &states, None) {
                            made.push(None);
                        }
                        read.may_show(table, before, made.into_iter());
                    }
                }
            }
            self.dirty_reads.defer(read);
        }
    }

    /// A row whose second key is taken, or that has no parent, has been there
    /// when that is found out: concurrent dirty reads may have seen it.
    pub fn record_visible_row(&mut self, step: usize, table: usize, row: VersionId) {
        for read in self.dirty_reads.deferred_mut().iter_mut().filter(|r| r.waits.contains(&step)) {
            read.may_show(table, None, std::iter::once(Some(row)));
        }
    }

    /// Judges the reads that depend on no blocked statement any more. `step` has
    /// replied; a read that still depends on it is not modelled.
    pub async fn judge_deferred_reads(&mut self, step: usize) -> Result<(), Stop> {
        for mut read in self.dirty_reads.take_deferred() {
            if read.waits.remove(&step) {
                let why = "a dirty read concurrent with a statement that is not modelled";
                self.trace.leave_unmodelled(read.step, why);
            } else if read.waits.is_empty() {
                self.judge_read(read).await?;
            } else {
                self.dirty_reads.defer(read);
            }
        }
        Ok(())
    }

    /// Reads that waited for statements without an answer.
    pub fn leave_deferred_reads(&mut self) {
        for read in self.dirty_reads.take_deferred() {
            let why = "a dirty read concurrent with a statement that never replied";
            self.trace.leave_unmodelled(read.step, why);
        }
    }

    async fn judge_read(&mut self, read: DeferredDirtyRead<'a>) -> Result<(), Stop> {
        let names = read.select.sources();
        let tables = &self.subject.reading.schema.tables;
        let is_read = |c: &&ChangedRow| names.contains(&tables[c.table].name.as_str());
        let rows: Vec<&ChangedRow> = read.changed.iter().filter(is_read).collect();
        let Some(seen) = self.subject.reply(read.step).and_then(EventKind::rows) else {
            return Ok(());
        };
        let all = rows.iter().try_fold(1usize, |n, row| n.checked_mul(row.states.len()));
        let all = all.filter(|all| *all <= MOST_SETS);
        let mut predicted: Option<Vec<Row>> = None;
        for materialised in [false, true] {
            for set in 0..all.unwrap_or(MOST_SETS) {
                let mut view = read.view.clone();
                let mut rest = set;
                for ChangedRow { table, states } in &rows {
                    let ids = &mut view[*table];
                    ids.retain(|id| Some(*id) != states[0]);
                    ids.extend(states[rest % states.len()]);
                    rest /= states.len();
                }
                let sql = match materialised {
                    false => self.tables.select(read.select, &view),
                    true => self.tables.select_materialised(read.select, &view),
                };
                let given = self.evaluate(sql, Some(read.step)).await?;
                if same_multiset(seen, &given) {
                    return Ok(());
                }
                predicted.get_or_insert(given);
            }
        }
        let (Some(_), Some(rows)) = (all, predicted) else {
            let why = "a dirty read concurrent with a statement that changed too many rows";
            self.trace.leave_unmodelled(read.step, why);
            return Ok(());
        };
        // A scan may find a row that is not yet in an index.
        let twice =
            |c: &ChangedRow| names.iter().filter(|n| **n == tables[c.table].name).count() > 1;
        if read.changed.iter().any(twice) {
            let why =
                "a table that is read twice concurrently with a blocked statement is not modelled";
            self.trace.leave_unmodelled(read.step, why);
            return Ok(());
        }
        let breach = Breach::Rows { diff: RowDiff::between(seen, &rows) };
        let rule = self.world.concurrency(read.tx).rules.read;
        Err(Stop::Outside { step: Some(read.step), rule, breach })
    }
}

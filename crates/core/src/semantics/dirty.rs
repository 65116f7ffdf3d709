//! Dirty reads beside statements that wait: which rows such a statement has
//! changed when somebody looks is known only when it answers, and even then
//! not how far it had come.
//!
//! So the read is put off. When the last of them has answered, each row that
//! it changed was seen before or after: the read is as it should be if some
//! of them before and the others after explain it. A row that others changed
//! in between was not reached.

use super::Stop;
use super::conclude::{Expected, Trouble, compared};
use super::rules::SnapshotAt;
use super::store::{TxId, Version, VersionId};
use super::version_tables::View;
use super::walk::Walk;
use crate::history::What;
use crate::sql::{Select, Stmt};
use crate::value::{Row, same_multiset};
use std::collections::BTreeSet;

/// Sets of rows that are tried before nothing is said.
const MOST_SETS: usize = 256;

/// A read whose rows are not known yet.
pub struct PutOff<'a> {
    pub step: usize,
    tx: TxId,
    select: &'a Select,
    /// What it sees of rows that nobody was changing.
    pub view: View,
    /// Versions in it that open transactions had written, by table: only they
    /// could change them again.
    held: BTreeSet<(usize, VersionId)>,
    /// The steps that waited, and have not answered.
    waits: BTreeSet<usize>,
    /// The rows that they changed.
    pub changed: Vec<Changed>,
}

/// What a read may have seen of one row, what is in its view first.
#[derive(Hash)]
pub struct Changed {
    table: usize,
    states: Vec<Option<VersionId>>,
}

impl PutOff<'_> {
    fn may_show(
        &mut self,
        table: usize,
        before: Option<VersionId>,
        made: impl Iterator<Item = Option<VersionId>>,
    ) {
        // Versions are numbered table by table.
        let same = |c: &&mut Changed| c.table == table && before.is_some() && c.states[0] == before;
        match self.changed.iter_mut().find(same) {
            Some(row) => row.states.extend(made),
            None => {
                let states = std::iter::once(before).chain(made).collect();
                self.changed.push(Changed { table, states });
            }
        }
    }
}

impl<'a> Walk<'a> {
    /// Puts a dirty read off; false when nobody waits who might be changing
    /// what it reads.
    pub fn put_off(&mut self, tx: TxId, step: usize, select: &'a Select) -> Result<bool, Stop> {
        if self.conduct(tx).snapshot != SnapshotAt::Dirty {
            return Ok(false);
        }
        let session = &self.txs[tx].session;
        let steps = &self.subject.history.steps;
        let others = self.waiting.iter().copied().filter(|w| steps[*w].session != *session);
        let writes = |w: &usize| {
            !self.waits_undone(*w)
                && !matches!(
                    self.operation(*w),
                    Some(Stmt::Select(_) | Stmt::Commit | Stmt::Rollback)
                )
        };
        let waits: BTreeSet<usize> = others.filter(writes).collect();
        if waits.is_empty() {
            return Ok(false);
        }
        if self.subject.reply(step).and_then(What::rows).is_none() {
            // It failed, whatever it saw.
            let nothing = Expected::Rows(Vec::new());
            self.conclude(tx, step, nothing, Trouble::default(), None)?;
            return Ok(true);
        }
        if waits.iter().any(|w| self.operation(*w).is_none()) {
            let why = "a dirty read beside a statement that waits and is not known";
            return Err(Stop::not_modelled(step, why));
        }
        self.snapshot(tx, step);
        let tables = 0..self.store.tables.len();
        let view: View = tables.map(|table| self.dirty_view_of(table, step)).collect();
        let mut held = BTreeSet::new();
        for (table, chains) in self.store.tables.iter().enumerate() {
            let versions = chains.iter().flat_map(|c| &c.versions);
            let open = versions.filter(|v| self.is_open(v.by) && view[table].contains(&v.id));
            held.extend(open.map(|v| (table, v.id)));
        }
        self.use_rule(step, self.conduct(tx).rules.read);
        let changed = Vec::new();
        self.put_off.push(PutOff { step, tx, select, view, held, waits, changed });
        Ok(true)
    }

    /// A statement has answered, and what it did is in the store: reads beside
    /// it may have seen that.
    pub fn may_have_been_seen(&mut self, tx: TxId, step: usize) {
        let mut put_off = std::mem::take(&mut self.put_off);
        for read in &mut put_off {
            if !read.waits.remove(&step) {
                continue;
            }
            for table in 0..self.store.tables.len() {
                for place in self.store.places(table) {
                    let versions = &self.store.chain(place).versions;
                    let mine = |v: &Version| v.by == tx && v.statement == self.statements;
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
        }
        self.put_off = put_off;
    }

    /// A row whose second key is taken, or that has no parent, has been there
    /// when that is found out: reads beside the statement may have seen it.
    pub fn may_have_been_added(&mut self, step: usize, table: usize, row: VersionId) {
        for read in self.put_off.iter_mut().filter(|r| r.waits.contains(&step)) {
            read.may_show(table, None, std::iter::once(Some(row)));
        }
    }

    /// Judges the reads that no longer hang on anybody. `step` has answered; a
    /// read that still waits for it is beyond the rules.
    pub async fn judge_put_off(&mut self, step: usize) -> Result<(), Stop> {
        let put_off = std::mem::take(&mut self.put_off);
        for mut read in put_off {
            if read.waits.remove(&step) {
                let why = "a dirty read beside a statement that is not modelled";
                self.unmodelled.insert(read.step, why.into());
            } else if read.waits.is_empty() {
                self.judge_read(read).await?;
            } else {
                self.put_off.push(read);
            }
        }
        Ok(())
    }

    /// Reads that waited for statements without an answer.
    pub fn leave_put_off(&mut self) {
        for read in std::mem::take(&mut self.put_off) {
            let why = "a dirty read beside a statement that never answered";
            self.unmodelled.insert(read.step, why.into());
        }
    }

    async fn judge_read(&mut self, read: PutOff<'a>) -> Result<(), Stop> {
        let names = read.select.sources();
        let tables = &self.subject.reading.schema.tables;
        let is_read = |c: &&Changed| names.contains(&tables[c.table].name.as_str());
        let rows: Vec<&Changed> = read.changed.iter().filter(is_read).collect();
        let Some(seen) = self.subject.reply(read.step).and_then(What::rows) else { return Ok(()) };
        let all = rows.iter().try_fold(1usize, |n, row| n.checked_mul(row.states.len()));
        let all = all.filter(|all| *all <= MOST_SETS);
        let mut predicted: Option<Vec<Row>> = None;
        for materialised in [false, true] {
            for set in 0..all.unwrap_or(MOST_SETS) {
                let mut view = read.view.clone();
                let mut rest = set;
                for Changed { table, states } in &rows {
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
            let why = "a dirty read beside a statement that changed too many rows";
            self.unmodelled.insert(read.step, why.into());
            return Ok(());
        };
        // By an index a row is not there yet that a scan has met.
        let twice = |c: &Changed| names.iter().filter(|n| **n == tables[c.table].name).count() > 1;
        if read.changed.iter().any(twice) {
            let why = "a table that is read twice beside a statement that waits is not modelled";
            self.unmodelled.insert(read.step, why.into());
            return Ok(());
        }
        let why = compared(seen, &rows);
        let rule = self.conduct(read.tx).rules.read;
        Err(Stop::Outside { step: Some(read.step), rule, why })
    }
}

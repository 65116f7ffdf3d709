//! What a blocked statement may have changed by now, for the dirty reads inside of writes.
//!
//! A plain dirty read is judged when the blocked statements have replied. A write cannot
//! wait for that: later statements depend on what it did. So the changes of a blocked
//! statement are computed from the rows as they are. The write may have read the rows
//! before any number of them, in the order of the primary key. A run that one of these
//! views explains is allowed; one that none explains is not modelled.

use super::write_snapshot::Assigned;
use crate::model::{ForeseenChange, ReferenceModel};
use crate::stop::Stop;
use crate::version_tables::{Fresh, Search, VersionId, View, Views};
use crate::world::{TxId, Version};
use isolde_catalog::SnapshotAt;
use isolde_model::value::{Row, compare_rows};
use isolde_sql::{Conflict, InsertSource, Stmt, Write};
use std::collections::BTreeMap;

/// More views than this are not tried.
const MOST_VIEWS: usize = 8;

impl ReferenceModel<'_> {
    /// Computes the changes of blocked statements, if a step makes dirty reads.
    pub async fn foresee_changes(&mut self, tx: TxId, step: usize) -> Result<(), Stop> {
        if self.serial || self.world.concurrency(tx).snapshot.taken != SnapshotAt::Dirty {
            return Ok(());
        }
        let mut changes: BTreeMap<usize, Vec<ForeseenChange>> = BTreeMap::new();
        let session = self.world.session(tx).to_string();
        for blocked in self.world.waiting().to_vec() {
            let other = &self.subject.history.steps[blocked].session;
            if blocked == step || *other == session || self.will_restart(blocked) {
                continue;
            }
            let Some(owner) = self.world.tx_of(other) else { continue };
            let Some(Stmt::Write(write)) = self.operation(blocked) else { continue };
            let Ok(table) = self.table(write.table(), blocked) else { continue };
            // The rows of two blocked statements may change in many orders.
            let foreseen = match changes.contains_key(&table) {
                true => Vec::new(),
                false => self.changes_of((owner, blocked), table, write).await.unwrap_or_default(),
            };
            changes.insert(table, foreseen);
        }
        self.dirty_reads.foresee(changes);
        Ok(())
    }

    /// The changes of one blocked statement; none if they depend on more than its table.
    async fn changes_of(
        &mut self,
        (owner, step): (TxId, usize),
        table: usize,
        write: &Write,
    ) -> Result<Vec<ForeseenChange>, Stop> {
        let statement = Stmt::Write(write.clone());
        if super::write_snapshot::reads_others(&statement) {
            return Ok(Vec::new());
        }
        let mut view: View = vec![Vec::new(); self.world.table_count()];
        view[table] = self.rows_within_reach(table, owner);
        let views = Views { outer: &view, inner: &view };
        let changes = match write {
            Write::Update(u) if u.join.is_none() && u.limit.is_none() => {
                let search = Search {
                    table: &u.table,
                    alias: u.alias.as_deref(),
                    join: None,
                    filter: u.filter.as_ref(),
                };
                let of = (search.name(), Assigned::Update);
                let sets = self.sets_in_order(&u.sets, (owner, step), of)?;
                let sql = self.tables.update(search, &sets, views);
                let fresh = self.fresh(table, sql, Some(step)).await?;
                self.in_key_order(table, fresh.iter().map(|f| f.source).collect())
                    .into_iter()
                    .filter_map(|source| {
                        let after = fresh.iter().find(|f: &&Fresh| f.source == source)?;
                        Some(ForeseenChange { before: Some(source), after: Some(after.id) })
                    })
                    .collect()
            }
            Write::Delete(d) if d.join.is_none() && d.limit.is_none() => {
                let search = Search {
                    table: &d.table,
                    alias: d.alias.as_deref(),
                    join: None,
                    filter: d.filter.as_ref(),
                };
                let sql = self.tables.found(search, views);
                let found = self.found(sql, step).await?;
                let change = |id| ForeseenChange { before: Some(id), after: None };
                self.in_key_order(table, found).into_iter().map(change).collect()
            }
            Write::Insert(i)
                if i.conflict == Conflict::Fail && matches!(i.source, InsertSource::Values(_)) =>
            {
                let sql = self.tables.incoming(i, &view);
                let fresh = self.fresh(table, sql, Some(step)).await?;
                let change = |f: &Fresh| ForeseenChange { before: None, after: Some(f.id) };
                fresh.iter().map(change).collect()
            }
            _ => Vec::new(),
        };
        Ok(changes)
    }

    /// The newest versions of the rows that no other open transaction has written.
    fn rows_within_reach(&self, table: usize, owner: TxId) -> Vec<VersionId> {
        let free = |v: &&Version| !v.dead && (v.by == owner || !self.world.is_open(v.by));
        let places = self.world.places(table);
        places
            .filter_map(|p| self.world.chain(p).versions.last().filter(free))
            .map(|v| v.id)
            .collect()
    }

    fn in_key_order(&self, table: usize, mut ids: Vec<VersionId>) -> Vec<VersionId> {
        let primary = self.keys[table].iter().position(|key| key.primary);
        let key = |id: &VersionId| -> Row {
            let place = self.world.find(table, *id);
            let versions = place.map(|p| &self.world.chain(p).versions);
            let version = versions.and_then(|versions| versions.iter().find(|v| v.id == *id));
            version.and_then(|v| self.key_of(table, primary?, v)).unwrap_or_default()
        };
        ids.sort_by(|a, b| compare_rows(&key(a), &key(b)));
        ids
    }

    /// Chooses what of the changes of a blocked statement a dirty read inside of a write has
    /// seen. An error once all choices are tried.
    pub fn choose_foreseen(&mut self, table: usize, step: usize) -> Result<Vec<VersionId>, Stop> {
        let mut view = self.dirty_view_of(table, step)?;
        let changes: Vec<ForeseenChange> = self.dirty_reads.foreseen(table).to_vec();
        let views = (changes.len() + 1).min(MOST_VIEWS);
        let chosen = self.search.choose(views + 1);
        if chosen == views {
            let why = "a dirty read concurrent with a blocked statement is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        changes.into_iter().take(chosen).for_each(|change| change.apply(&mut view));
        Ok(view)
    }
}

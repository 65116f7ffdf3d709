//! UPDATE and DELETE: the rows that they find, the transactions that they
//! conflict with, and the versions that they write.

use super::write_snapshot::{Assigned, Reads, reads_others};
use crate::constraints::Change;
use crate::model::ReferenceModel;
use crate::outcome::{Expected, ExpectedErrors};
use crate::stop::Stop;
use crate::version_tables::{Fresh, Search, VersionId, View, Views, whole};
use crate::world::{Place, Store, Strength, TxId, Version};
use isolde_catalog::{RowCounts, Rule, WriteConflictPolicy};
use isolde_model::breach::{Breach, Obstacle, RowRole};
use isolde_model::history::ErrorClass;
use isolde_sql::{Delete, Expr, Stmt, Update, Write};

/// The newest version of a row, compared with the version that a statement found.
pub(super) enum Target {
    Same,
    /// The row was deleted.
    Gone,
    Changed(VersionId),
    /// The statement cannot act on the old version that it found: it would have
    /// waited and read the row again.
    Passed,
}

/// An UPDATE whose first search is done: the view that it searched and what it
/// sets.
pub(super) struct RunningUpdate<'s> {
    pub tx: TxId,
    pub step: usize,
    pub table: usize,
    pub search: Search<'s>,
    pub update: &'s Update,
    pub sets: Vec<(String, Expr)>,
    pub view: View,
    /// The view of the queries inside of it.
    pub inner: View,
}

impl ReferenceModel<'_> {
    pub(super) fn target(&self, place: Place, found: VersionId, tx: TxId) -> Target {
        match self.world.newest(place, tx) {
            Some(v) if v.dead => Target::Gone,
            Some(v) if v.id == found => Target::Same,
            Some(_) if self.world.concurrency(tx).reads_current() => Target::Passed,
            // With one writer at a time, no other transaction changes a row that this
            // one has found.
            Some(_) if self.world.concurrency(tx).has_single_writer() => Target::Same,
            Some(v) => Target::Changed(v.id),
            None => Target::Gone,
        }
    }

    /// Locks a row; a conflicting lock holder must have ended before the statement
    /// continued.
    pub fn take(
        &mut self,
        place: Place,
        tx: TxId,
        strength: Strength,
        errors: &mut ExpectedErrors,
    ) {
        if self.world.buffers(tx) {
            return;
        }
        if let Some(holder) = self.world.holder(place, tx, strength) {
            let table = &self.subject.reading.schema.tables[place.table].name;
            let holder = self.world.session(holder).to_string();
            let (table, role) = (Some(table.clone()), RowRole::Needed);
            let obstacle = Obstacle::RowLocked { holder, table, role };
            let rule = self.world.concurrency(tx).rules.held_row;
            if self.world.concurrency(tx).conflicts.fails_instead_of_waiting {
                errors.conflict(rule, obstacle);
            } else {
                errors.block(rule, obstacle);
            }
        }
        self.check_snapshot(place, tx, errors);
        self.world.lock(place, tx, strength);
    }

    pub async fn update(&mut self, tx: TxId, step: usize, update: &Update) -> Result<(), Stop> {
        let table = self.table(&update.table, step)?;
        let search = Search {
            table: &update.table,
            alias: update.alias.as_deref(),
            join: update.join.as_ref(),
            filter: update.filter.as_ref(),
        };
        let how = Reads {
            table: &update.table,
            update: true,
            may_read_consistently: update.join.is_none(),
            search: Some(search),
            scans_all: update.limit.is_none(),
            reads_others: reads_others(&Stmt::Write(Write::Update(update.clone()))),
        };
        let (mut view, mut errors) = self.before_write(tx, step, how).await?;
        let inner = self.inner_of_write(tx, step, &view)?;
        if let Some(most) = &update.limit {
            let views = Views { outer: &view, inner: &inner };
            view[table] = self.first_matches(step, search, (&update.order, most), views).await?;
        }
        let assigned = if update.join.is_some() { Assigned::Join } else { Assigned::Update };
        let sets = self.sets_in_order(&update.sets, (tx, step), (search.name(), assigned))?;
        let sql = self.tables.update(search, &sets, Views { outer: &view, inner: &inner });
        let found = distinct_sources(self.fresh(table, sql, Some(step)).await?);
        if update.join.is_none() && update.limit.is_none() {
            let (sources, made) = found.iter().map(|f| (f.source, f.row.clone())).unzip();
            self.record_evaluation((step, table), (&view, &inner), sources, made);
        }
        let before = self.world.save_rows();
        let written = if self.world.merges(tx) {
            self.write_rows((tx, step), table, &sets, found, &mut errors)
        } else {
            let running = RunningUpdate { tx, step, table, search, update, sets, view, inner };
            let targets = self.update_targets(&running, found, &mut errors).await?;
            self.write_targets(&running, targets, &mut errors)
        };
        self.written(tx, step, written, errors, before).await
    }

    /// The rows that an UPDATE writes, each with its new version: those that it
    /// found, without those that have changed and are not written for that reason.
    async fn update_targets(
        &mut self,
        running: &RunningUpdate<'_>,
        found: Vec<Fresh>,
        errors: &mut ExpectedErrors,
    ) -> Result<Vec<(Place, Fresh)>, Stop> {
        let RunningUpdate { tx, step, .. } = *running;
        let mut targets = Vec::new();
        let only_target = found.len() == 1;
        let alone = self.locks_only_changes(tx);
        for fresh in found {
            let Some(place) = self.world.find(running.table, fresh.source) else { continue };
            match self.target(place, fresh.source, tx) {
                Target::Same => targets.push((place, fresh)),
                // A row that the statement leaves as it is, is not acted upon.
                Target::Passed if alone && self.leaves_unchanged(place, &fresh) => {}
                Target::Passed => return Err(self.passed(tx, step)),
                Target::Gone => {
                    self.target_changed(tx, step, errors);
                }
                Target::Changed(newest) => {
                    if !self.target_changed(tx, step, errors) {
                        continue;
                    }
                    self.permit_partition_move(place, tx, errors);
                    let Some(again) = self.update_newest(running, place, &fresh, newest).await?
                    else {
                        continue;
                    };
                    // For a statement with one target it is enough that it continues
                    // with the newest version.
                    if only_target || again.row != fresh.row {
                        self.use_rule(step, self.world.concurrency(tx).rules.changed_row);
                    }
                    targets.push((place, again));
                }
            }
        }
        Ok(targets)
    }

    /// What an UPDATE makes of the newest version of a row that has changed since
    /// it was found. None when that version does not match any more.
    async fn update_newest(
        &mut self,
        running: &RunningUpdate<'_>,
        place: Place,
        found: &Fresh,
        newest: VersionId,
    ) -> Result<Option<Fresh>, Stop> {
        let RunningUpdate { tx, step, table, search, .. } = *running;
        let versions = (found.source, newest);
        if !self.matches_newest(step, (table, search), versions, &running.view).await? {
            // It was locked for the second test, and stays so.
            self.world.lock(place, tx, Strength::NoKeyUpdate);
            self.use_rule(step, self.world.concurrency(tx).rules.changed_row);
            return Ok(None);
        }
        let narrow = ReferenceModel::narrowed(&running.view, table, vec![newest]);
        let views = Views { outer: &narrow, inner: &running.inner };
        let sql = self.tables.update(search.all(), &running.sets, views);
        Ok(self.fresh(table, sql, Some(step)).await?.pop())
    }

    /// Locks the targets of an UPDATE and adds their new versions. Returns the
    /// changes, and how many rows count although they did not change.
    pub(super) fn write_targets(
        &mut self,
        running: &RunningUpdate<'_>,
        targets: Vec<(Place, Fresh)>,
        errors: &mut ExpectedErrors,
    ) -> (Vec<Change>, u64) {
        let RunningUpdate { tx, step, table, update, .. } = *running;
        let alone = self.locks_only_changes(tx);
        let concurrency = self.world.concurrency(tx);
        let omits_unchanged = concurrency.counting.omits_unchanged();
        let noop_is_free = concurrency.conflicts.noop_update_does_not_conflict;
        let mut done = Vec::new();
        let mut unchanged = 0;
        let mut writes_equal: Option<bool> = None;
        for (place, fresh) in targets {
            let new = self.world.version(fresh, tx);
            let Some(old) = self.world.newest(place, tx).cloned() else { continue };
            let is_equal = old.row == new.row;
            if alone && is_equal {
                continue;
            }
            if noop_is_free && is_equal {
                unchanged += 1;
                continue;
            }
            self.take(place, tx, self.strength(tx, table, &old, &new), errors);
            if omits_unchanged && is_equal {
                // It does not count, and as a rule it is not written either.
                if let Some(rule) = self.may_write_equal(tx, place, update)
                    && *writes_equal.get_or_insert_with(|| self.search.choose(2) == 1)
                {
                    self.use_rule(step, rule);
                    self.world.add_version(place, new);
                }
                continue;
            }
            self.check_row(tx, table, &new, errors);
            self.world.add_version(place, new.clone());
            self.supersede_records(tx, place, &new);
            done.push(Change::new(place, Some(old), Some(new)));
        }
        (done, unchanged)
    }

    /// The rule by which an UPDATE may write a row that it does not change. Only where
    /// the write has an effect: the newest version is not in the view.
    fn may_write_equal(&self, tx: TxId, place: Place, update: &Update) -> Option<&'static Rule> {
        let rule = self.world.concurrency(tx).conflicts.noop_update_may_write?;
        let (snapshot, newest) = (self.world.snapshot_of(tx)?, self.world.newest(place, tx)?);
        let unseen = newest.by != tx && !self.world.committed_before(newest.by, snapshot);
        let mut read: Vec<&str> = Vec::new();
        update.visit(&mut |e| {
            if let Expr::Column { name, .. } = e {
                read.push(name);
            }
        });
        let reads_all = update.sets.iter().all(|(column, _)| read.contains(&column.as_str()));
        (unseen && !reads_all).then_some(rule)
    }

    /// Checks the constraints on the changes of an UPDATE, and concludes it.
    async fn written(
        &mut self,
        tx: TxId,
        step: usize,
        (done, unchanged): (Vec<Change>, u64),
        mut errors: ExpectedErrors,
        before: Store,
    ) -> Result<(), Stop> {
        for change in &done {
            self.check_keys(tx, step, change, &mut errors);
        }
        let count = done.iter().filter(|c| c.new.is_some()).count() as u64 + unchanged;
        let expected = match done.first().map(|change| change.place.table) {
            Some(table) => self.expected_of_write((tx, step), table, &done, count).await?,
            None if self.returns_rows(step) => Expected::Rows(Vec::new()),
            None => Expected::Count(count),
        };
        self.check_foreign_keys(tx, step, done, &mut errors).await?;
        self.conclude(tx, step, expected, errors, Some(before))
    }

    pub async fn delete(&mut self, tx: TxId, step: usize, delete: &Delete) -> Result<(), Stop> {
        let table = self.table(&delete.table, step)?;
        let search = Search {
            table: &delete.table,
            alias: delete.alias.as_deref(),
            join: delete.join.as_ref(),
            filter: delete.filter.as_ref(),
        };
        let how = Reads {
            table: &delete.table,
            update: false,
            may_read_consistently: false,
            search: Some(search),
            scans_all: delete.limit.is_none(),
            reads_others: false,
        };
        let (mut view, mut errors) = self.before_write(tx, step, how).await?;
        let inner = self.inner_of_write(tx, step, &view)?;
        if let Some(most) = &delete.limit {
            let views = Views { outer: &view, inner: &inner };
            view[table] = self.first_matches(step, search, (&delete.order, most), views).await?;
        }
        let sql = self.tables.found(search, Views { outer: &view, inner: &inner });
        let miscounts = self.world.concurrency(tx).counting == RowCounts::Dolt;
        let partners = match miscounts && delete.join.is_some() {
            true => Some(self.evaluate(sql.clone(), Some(step)).await?.len() as u64),
            false => None,
        };
        let keyless = !self.keys[table].iter().any(|key| key.primary);
        let counts_kinds = miscounts && keyless && delete.join.is_none() && delete.filter.is_none();
        let found = self.found(sql, step).await?;
        if delete.join.is_none() && delete.limit.is_none() {
            self.record_evaluation((step, table), (&view, &inner), found.clone(), Vec::new());
        }
        let before = self.world.save_rows();
        let done =
            self.delete_targets((tx, step), (table, search), found, &view, &mut errors).await?;
        let all = if counts_kinds { distinct_deleted(&done) } else { done.len() };
        let count = partners.unwrap_or(all as u64);
        let expected = self.expected_of_write((tx, step), table, &done, count).await?;
        self.check_foreign_keys(tx, step, done, &mut errors).await?;
        self.conclude(tx, step, expected, errors, Some(before))
    }

    /// Deletes the rows that a DELETE found, without those that have changed and do
    /// not match any more.
    async fn delete_targets(
        &mut self,
        (tx, step): (TxId, usize),
        (table, search): (usize, Search<'_>),
        found: Vec<VersionId>,
        view: &View,
        errors: &mut ExpectedErrors,
    ) -> Result<Vec<Change>, Stop> {
        let mut done = Vec::new();
        for id in found {
            let Some(place) = self.world.find(table, id) else { continue };
            match self.target(place, id, tx) {
                Target::Same => {}
                Target::Passed => return Err(self.passed(tx, step)),
                Target::Gone => {
                    self.target_changed(tx, step, errors);
                    continue;
                }
                Target::Changed(newest) => {
                    if !self.target_changed(tx, step, errors) {
                        continue;
                    }
                    self.permit_partition_move(place, tx, errors);
                    if !self.matches_newest(step, (table, search), (id, newest), view).await? {
                        self.world.lock(place, tx, Strength::Update);
                        self.use_rule(step, self.world.concurrency(tx).rules.changed_row);
                        continue;
                    }
                }
            }
            let Some(old) = self.world.newest(place, tx).cloned() else { continue };
            if self.world.merges(tx) {
                done.push(self.delete_row((tx, step), place, old, errors));
                continue;
            }
            self.take(place, tx, Strength::Update, errors);
            self.remove_row(tx, place, old.clone());
            done.push(Change::new(place, Some(old), None));
        }
        Ok(done)
    }

    /// Checks the foreign keys of all changes: when the statement ends, or row by
    /// row, in which case a later row cannot repair an earlier one.
    pub async fn check_foreign_keys(
        &mut self,
        tx: TxId,
        step: usize,
        done: Vec<Change>,
        errors: &mut ExpectedErrors,
    ) -> Result<(), Stop> {
        if self.world.concurrency(tx).checks_foreign_keys_by_row() {
            for change in done {
                self.foreign_keys(tx, step, vec![change], errors).await?;
            }
            return Ok(());
        }
        self.foreign_keys(tx, step, done, errors).await
    }

    /// Handles a target that was changed after the snapshot; true when the statement
    /// reads it again. Whether the rule is cited depends on what it then finds.
    pub(super) fn target_changed(
        &mut self,
        tx: TxId,
        step: usize,
        errors: &mut ExpectedErrors,
    ) -> bool {
        let concurrency = self.world.concurrency(tx);
        let (rules, changed) = (concurrency.rules, concurrency.conflicts.changed_row);
        if changed == WriteConflictPolicy::Abort {
            let obstacle = Obstacle::RowChanged { by: None, table: None, role: RowRole::Written };
            errors.conflict(rules.changed_row, obstacle);
            return false;
        }
        if changed != WriteConflictPolicy::Recheck {
            self.use_rule(step, rules.changed_row);
        }
        true
    }

    /// Whether the new version of a row equals the version that was found.
    fn leaves_unchanged(&self, place: Place, fresh: &Fresh) -> bool {
        let mut versions = self.world.chain(place).versions.iter();
        versions.any(|v| v.id == fresh.source && !v.dead && *v.row == fresh.row)
    }

    pub(super) fn passed(&self, tx: TxId, step: usize) -> Stop {
        let breach = Breach::StaleVersion { returned: false };
        Stop::Outside {
            step: Some(step),
            rule: self.world.concurrency(tx).rules.changed_row,
            breach,
        }
    }

    /// Permits the error for a row that has moved to another partition, where a
    /// statement cannot follow it.
    pub fn permit_partition_move(&self, place: Place, tx: TxId, errors: &mut ExpectedErrors) {
        if self.subject.reading.schema.tables[place.table].partitioned_by.is_some() {
            errors.permit(ErrorClass::Serialization, self.world.concurrency(tx).rules.changed_row);
        }
    }

    /// The second test of a condition: on the newest version of the row, joined with
    /// the same versions of the other table as at first.
    async fn matches_newest(
        &mut self,
        step: usize,
        (table, search): (usize, Search<'_>),
        (found, newest): (VersionId, VersionId),
        view: &View,
    ) -> Result<bool, Stop> {
        let narrow = ReferenceModel::narrowed(view, table, vec![newest]);
        if search.join.is_none() {
            let sql = self.tables.found(search.alone(), Views { outer: &narrow, inner: view });
            return Ok(!self.found(sql, step).await?.is_empty());
        }
        let first = ReferenceModel::narrowed(view, table, vec![found]);
        let sql = self.tables.found_pairs(search, Views { outer: &first, inner: view });
        let pairs = self.evaluate(sql, Some(step)).await?;
        let sql = self.tables.found_pairs(search, Views { outer: &narrow, inner: view });
        let still = self.evaluate(sql, Some(step)).await?;
        let partner = |row: &isolde_model::value::Row| row.get(1).and_then(whole);
        let fits = pairs.iter().filter(|p| still.iter().any(|s| partner(s) == partner(p))).count();
        // Which of several partners it was joined with is not documented.
        Ok(match fits {
            0 => false,
            n if n == pairs.len() => true,
            _ => self.search.choose(2) == 0,
        })
    }
}

/// The number of deleted rows, where equal rows count as one.
fn distinct_deleted(done: &[Change]) -> usize {
    let deleted = || done.iter().filter_map(|change| change.old.as_ref());
    let twice = |(n, v): &(usize, &Version)| deleted().take(*n).any(|o| o.row == v.row);
    deleted().enumerate().filter(|v| !twice(v)).count()
}

/// A row with several partners in a join is changed once.
fn distinct_sources(found: Vec<Fresh>) -> Vec<Fresh> {
    let mut seen: Vec<VersionId> = Vec::new();
    found
        .into_iter()
        .filter(|fresh| {
            let new = !seen.contains(&fresh.source);
            seen.push(fresh.source);
            new
        })
        .collect()
}

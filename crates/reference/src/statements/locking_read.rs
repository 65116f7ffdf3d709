//! Reads that lock: FOR UPDATE and FOR SHARE, and plain ones where all reads do.

use super::current_read::{Fits, Scan};
use super::limit::{self, LockingLimit};
use crate::model::ReferenceModel;
use crate::outcome::{Expected, ExpectedErrors};
use crate::stop::Stop;
use crate::version_tables::{Search, VersionId, View, Views, whole};
use crate::world::{Place, Strength, TxId, Version};
use isolde_catalog::{Rule, WriteConflictPolicy, WriteSubqueries};
use isolde_model::breach::{Breach, Obstacle, RowRole};
use isolde_model::history::{ErrorClass, EventKind};
use isolde_model::value::{Row, compare_rows};
use isolde_sql::{Expr, LockPatience, LockStrength, Locking, Select};
use isolde_sql::{Source, sources_below};
use std::cmp::Ordering;

/// One locking read: what it reads, and how it locks.
struct LockingRead<'s> {
    tx: TxId,
    step: usize,
    select: &'s Select,
    patience: LockPatience,
    strength: Strength,
    /// The tables in FROM and in joins; a table that is read twice is there twice.
    sources: Vec<usize>,
    /// The number of rows after which it stops.
    limit: Option<LockingLimit>,
    /// It reads the newest committed rows, not those of a snapshot.
    is_current: bool,
    view: View,
    /// The view of the queries inside of it.
    inner: View,
}

/// A row that a locking read finds: one version per source makes one row of the
/// result.
struct FoundRow {
    row: Row,
    versions: Vec<VersionId>,
    places: Vec<Place>,
}

/// The rows that SKIP LOCKED may have skipped. Which it skipped depends on what
/// other transactions have scanned; only that the returned rows are among those
/// that were there is certain.
struct UncertainSkips<'a> {
    returned: &'a [Row],
    /// The returned rows without those that were found so far.
    unmatched: Vec<Row>,
    found: Vec<Row>,
}

impl UncertainSkips<'_> {
    /// Accounts for one found row; false when it was not returned.
    fn take_returned(&mut self, row: &Row) -> bool {
        take_one(&mut self.unmatched, row)
    }

    /// Whether it is certain that this row was not skipped. Of equal rows it is not
    /// known which were skipped.
    fn is_certain(&self, row: &Row) -> bool {
        count_like(self.returned, row) == count_like(&self.found, row)
    }
}

impl<'a> ReferenceModel<'a> {
    fn locked_row(&self, holder: TxId) -> Obstacle {
        let holder = self.world.session(holder).to_string();
        Obstacle::RowLocked { holder, table: None, role: RowRole::Locked }
    }

    /// A query that locks all rows that it reads, even those that do not show in its
    /// result.
    pub async fn locking_query(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
    ) -> Result<(), Stop> {
        let rules = self.world.concurrency(tx).rules;
        let all: Vec<usize> = (0..self.world.table_count()).collect();
        let fits = self.fitting_select((tx, step), select, false).await?;
        let view = self.current_view(tx, step, &all, Scan::Waits, fits.as_ref())?;
        self.record_view(tx, step, &view);
        let rows = match self.evaluate_select(step, select, &view).await {
            Ok(rows) => rows,
            Err(stop) => return self.accept_same_error(tx, step, Err(stop)),
        };
        // Whether it had to wait depends on the index that it read.
        let mut errors = ExpectedErrors::default();
        self.permit_snapshot_conflicts(tx, &mut errors);
        self.use_rule(step, rules.read);
        self.conclude(tx, step, Expected::Rows(rows), errors, None)
    }

    /// A locking read: like a write, it waits for each locked row and reads a row
    /// again that has changed.
    pub async fn locking_read(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
        locking: &Locking,
    ) -> Result<(), Stop> {
        let patience = locking.patience;
        if self.serial && patience == LockPatience::SkipLocked {
            // What it skips depends on concurrent transactions: no serial order has
            // to explain it.
            return Ok(());
        }
        let limit = self.locking_limit(step, select)?;
        let view = self.locking_view((tx, step), select).await?;
        let mut errors = self.locking_read_errors(tx);
        let sources = self.sources(select, step)?;
        let is_current = self.locks_current(tx);
        // It may have read the table twice at one moment; a run that this does not explain is not
        // modelled.
        if is_current
            && has_duplicates(&sources)
            && self.has_waited(step)
            && self.search.choose(2) == 1
        {
            let why = "a table that is read twice while others commit is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        if self.world.buffers(tx) {
            self.commit_buffer.add_searched(tx, &sources);
        }
        let strength = lock_strength(locking.strength);
        let patient = matches!(patience, LockPatience::Wait | LockPatience::Seconds(_));
        if let Some(search) = only_search(select).filter(|_| patient && scans_all(select)) {
            self.check_uncommitted((tx, step), search, strength, &mut errors).await?;
        }
        self.record_view(tx, step, &view);
        let inner = self.inner_view(tx, step, select, &view)?;
        let read = LockingRead {
            tx,
            step,
            select,
            patience,
            strength,
            sources,
            limit,
            is_current,
            view,
            inner,
        };
        let found = self.evaluate_with_sources(&read, &read.view).await?;
        if let Some(limit) = read.limit {
            self.check_limit(&read, limit, &found)?;
        }
        let rows = self.lock_found_rows(&read, found, &mut errors).await?;
        let concurrency = self.world.concurrency(tx);
        let (rule, skips) = (concurrency.rules.write, concurrency.locking.skip_locked);
        self.use_rule(step, rule);
        if let Some(rule) = skips.filter(|_| patience == LockPatience::SkipLocked) {
            self.use_rule(step, rule);
        }
        self.conclude(tx, step, Expected::Rows(rows), errors, None)
    }

    /// The rule by which NOWAIT fails.
    fn no_wait_rule(&self, tx: TxId) -> &'static Rule {
        let concurrency = self.world.concurrency(tx);
        concurrency.locking.no_wait.unwrap_or(concurrency.rules.held_row)
    }

    /// Whether locking reads of a transaction read the newest committed rows, not
    /// those of a snapshot.
    fn locks_current(&self, tx: TxId) -> bool {
        self.world.concurrency(tx).conflicts.changed_row == WriteConflictPolicy::ReadCurrent
    }

    pub fn has_waited(&self, step: usize) -> bool {
        !self.serial && self.subject.history.outcome(step).waited
    }

    /// The rows that a locking read finds.
    async fn locking_view(
        &mut self,
        (tx, step): (TxId, usize),
        select: &Select,
    ) -> Result<View, Stop> {
        if self.locks_current(tx) {
            let all: Vec<usize> = (0..self.world.table_count()).collect();
            let fits = self.fitting_select((tx, step), select, true).await?;
            return self.current_view(tx, step, &all, Scan::Waits, fits.as_ref());
        }
        let snapshot = self.kept_snapshot(tx, step);
        Ok(self.world.view(tx, snapshot))
    }

    /// The errors of a locking read that do not depend on the rows it finds.
    fn locking_read_errors(&self, tx: TxId) -> ExpectedErrors {
        let rules = self.world.concurrency(tx).rules;
        let mut errors = ExpectedErrors::default();
        self.permit_snapshot_conflicts(tx, &mut errors);
        if self.world.tx(tx).read_only && self.locks_current(tx) {
            errors.permit(ErrorClass::ReadOnly, rules.write);
        } else if self.world.tx(tx).read_only {
            errors.require(ErrorClass::ReadOnly, rules.write, Obstacle::ReadOnly);
        }
        errors
    }

    /// The rows of a locking read over some versions. Each begins with the versions
    /// that it was made of.
    async fn evaluate_with_sources(
        &mut self,
        read: &LockingRead<'_>,
        view: &View,
    ) -> Result<Vec<Row>, Stop> {
        let views = Views { outer: view, inner: &read.inner };
        let sql = self.tables.select_with_sources(read.select, views);
        self.evaluate(sql, Some(read.step)).await
    }

    /// LIMIT without an order: of equal rows any may be returned and locked, but no other
    /// transaction may have locked or changed one of them.
    fn check_limit(
        &mut self,
        read: &LockingRead<'_>,
        limit: LockingLimit,
        found: &[Row],
    ) -> Result<(), Stop> {
        let unknown = || Stop::not_modelled(read.step, limit::UNKNOWN);
        if !ReferenceModel::limit_is_decided(limit, found, read.sources.len()) {
            return Err(unknown());
        }
        if !limit.leaves_locks_open(found) {
            return Ok(());
        }
        for cells in found {
            let found = self.locate(read, cells.clone())?;
            let held = |p: &Place| self.world.holder(*p, read.tx, read.strength).is_some();
            let changed = |(place, id): (&Place, &VersionId)| {
                self.world.newest(*place, read.tx).is_none_or(|v| v.dead || v.id != *id)
            };
            if read.is_current
                || found.places.iter().any(held)
                || found.places.iter().zip(&found.versions).any(changed)
            {
                return Err(unknown());
            }
        }
        self.world.add_scanned(read.tx, read.step, read.sources.iter().copied().collect());
        Ok(())
    }

    /// Locks the rows that a locking read finds, and returns its result.
    async fn lock_found_rows(
        &mut self,
        read: &LockingRead<'_>,
        found: Vec<Row>,
        errors: &mut ExpectedErrors,
    ) -> Result<Vec<Row>, Stop> {
        let mut rows: Vec<Row> = Vec::new();
        let mut skips = self.uncertain_skips(read, &found, errors);
        let locks_open = read.limit.is_some_and(|limit| limit.leaves_locks_open(&found));
        for cells in found {
            if read.limit.is_some_and(|limit| rows.len() >= limit.most) {
                break;
            }
            let found = self.locate(read, cells)?;
            if self.skips_locked(read, &found.places, errors) {
                continue;
            }
            if skips.as_mut().is_some_and(|skips| !skips.take_returned(&found.row)) {
                let text = "skips rows that another transaction may have locked";
                self.trace.note(read.step, text.into());
                self.permit_serialization_failure(read, &found, errors);
                continue;
            }
            let Some(newest) = self.reread(read, &found, errors).await? else { continue };
            rows.extend(newest);
            let is_certain = skips.as_ref().is_none_or(|skips| skips.is_certain(&found.row));
            for place in found.places {
                self.check_snapshot(place, read.tx, errors);
                // A shared lock may be on an index alone, where it blocks no statement.
                if is_certain
                    && !locks_open
                    && (!read.is_current || read.strength == Strength::Update)
                {
                    self.world.lock(place, read.tx, read.strength);
                }
            }
        }
        Ok(rows)
    }

    /// Permits what locks of other transactions may cause that the model does not
    /// know for certain: an error of NOWAIT, or rows that SKIP LOCKED skips, which
    /// are returned.
    fn uncertain_skips(
        &self,
        read: &LockingRead<'_>,
        found: &[Row],
        errors: &mut ExpectedErrors,
    ) -> Option<UncertainSkips<'a>> {
        let tx = read.tx;
        // Other transactions may have locked everything that they scanned, not only
        // what they found; and a lock holder of that time may have ended since.
        let scanned = |other: TxId| {
            let scanned = self.world.scanned(other);
            read.sources.iter().any(|table| scanned.contains(table))
        };
        let uncertain = !self.world.buffers(tx) && self.may_be_locked(&read.sources, tx)
            || self.world.others(tx).any(scanned)
            || read.is_current && (self.others_open(tx) || self.has_waited(read.step));
        if uncertain && read.patience == LockPatience::NoWait {
            errors.permit(ErrorClass::LockTimeout, self.no_wait_rule(tx));
        }
        if !uncertain || read.patience != LockPatience::SkipLocked {
            return None;
        }
        let reply = self.subject.reply(read.step);
        let returned = reply.and_then(EventKind::rows).unwrap_or_default();
        let found = found.iter().map(|cells| cells[read.sources.len()..].to_vec()).collect();
        Some(UncertainSkips { returned, unmatched: returned.to_vec(), found })
    }

    /// A row that may have been skipped may also have been found changed, which is an
    /// error where the transaction keeps its snapshot.
    fn permit_serialization_failure(
        &self,
        read: &LockingRead<'_>,
        found: &FoundRow,
        errors: &mut ExpectedErrors,
    ) {
        let concurrency = self.world.concurrency(read.tx);
        let keeps_snapshot = concurrency.conflicts.changed_row == WriteConflictPolicy::Abort;
        let newest = |p: &Place| self.world.newest(*p, read.tx).filter(|v| !v.dead).map(|v| v.id);
        let changed = found.places.iter().zip(&found.versions).any(|(p, v)| newest(p) != Some(*v));
        if keeps_snapshot && changed {
            errors.permit(ErrorClass::Serialization, concurrency.rules.changed_row);
        }
    }

    /// Splits a row into its versions, which are located, and its result.
    fn locate(&self, read: &LockingRead<'_>, mut cells: Row) -> Result<FoundRow, Stop> {
        let row = cells.split_off(read.sources.len());
        let versions: Vec<VersionId> = cells.iter().filter_map(whole).collect();
        let sources = read.sources.iter().zip(&versions);
        let places: Option<Vec<Place>> = sources.map(|(t, id)| self.world.find(*t, *id)).collect();
        match places {
            Some(places) => Ok(FoundRow { row, versions, places }),
            None => Err(Stop::not_modelled(read.step, "a row of no known version")),
        }
    }

    /// Whether the read skips a row because another transaction has locked it.
    /// Unless it does, such a lock holder blocks it or, with NOWAIT, makes it fail.
    fn skips_locked(
        &mut self,
        read: &LockingRead<'_>,
        places: &[Place],
        errors: &mut ExpectedErrors,
    ) -> bool {
        let tx = read.tx;
        if self.locks_only_changes(tx) || self.world.buffers(tx) {
            return false;
        }
        let holder = places.iter().find_map(|p| self.world.holder(*p, tx, read.strength));
        let Some(holder) = holder else { return false };
        let rule = self.world.concurrency(tx).rules.held_row;
        match read.patience {
            // A shared lock may be on an index alone, which is not locked.
            _ if read.is_current && read.strength != Strength::Update => {}
            LockPatience::SkipLocked => {
                let holder = self.world.session(holder);
                let text = format!("skips rows that {holder} has locked");
                self.trace.note(read.step, text);
                return true;
            }
            LockPatience::NoWait => {
                let rule = self.no_wait_rule(tx);
                errors.require(ErrorClass::LockTimeout, rule, self.locked_row(holder));
            }
            LockPatience::Wait | LockPatience::Seconds(_) => {
                errors.block(rule, self.locked_row(holder));
            }
        }
        false
    }

    /// What the newest versions of a found row add to the result. None when the
    /// row is not locked: it was deleted, or its change is an error.
    async fn reread(
        &mut self,
        read: &LockingRead<'_>,
        found: &FoundRow,
        errors: &mut ExpectedErrors,
    ) -> Result<Option<Vec<Row>>, Stop> {
        let tx = read.tx;
        let newest = |p: &Place| self.world.newest(*p, tx).filter(|v| !v.dead).map(|v| v.id);
        let newest: Vec<Option<VersionId>> = found.places.iter().map(newest).collect();
        if newest.iter().zip(&found.versions).all(|(n, v)| *n == Some(*v)) {
            return Ok(Some(vec![found.row.clone()]));
        }
        // A lock on the key does not conflict with a change of other columns, committed or not:
        // the row is locked and returned as the snapshot has it.
        let locks_key = read.strength == Strength::KeyShare && !read.is_current;
        if locks_key && self.keeps_keys(found) && self.search.choose(2) == 0 {
            return Ok(Some(vec![found.row.clone()]));
        }
        let rule = self.world.concurrency(tx).rules.changed_row;
        if read.is_current {
            let breach = Breach::StaleVersion { returned: true };
            return Err(Stop::Outside { step: Some(read.step), rule, breach });
        }
        if self.world.concurrency(tx).conflicts.changed_row == WriteConflictPolicy::Abort {
            let obstacle = Obstacle::RowChanged { by: None, table: None, role: RowRole::Locked };
            errors.require(ErrorClass::Serialization, rule, obstacle);
            return Ok(None);
        }
        found.places.iter().for_each(|p| self.permit_partition_move(*p, tx, errors));
        let Some(newest) = newest.into_iter().collect::<Option<Vec<VersionId>>>() else {
            return Ok(None);
        };
        let versions: Vec<(usize, VersionId)> =
            read.sources.iter().copied().zip(newest.iter().copied()).collect();
        let sql = self.tables.select_of_versions(read.select, &versions, &read.inner);
        let again = self.evaluate(sql, Some(read.step)).await?;
        let result = |mut cells: Row| cells.split_off(read.sources.len());
        let again: Vec<Row> = again.into_iter().map(result).collect();
        if again != [found.row.clone()] {
            self.use_rule(read.step, rule);
        }
        Ok(Some(again))
    }

    /// Whether no change since the versions that were found has deleted a row or changed a key.
    fn keeps_keys(&self, found: &FoundRow) -> bool {
        found.places.iter().zip(&found.versions).all(|(place, id)| {
            let versions = &self.world.chain(*place).versions;
            let Some(at) = versions.iter().position(|v| v.id == *id) else { return false };
            let keys = 0..self.keys[place.table].len();
            let key_of = |key: usize, version: &Version| self.key_of(place.table, key, version);
            versions[at + 1..].iter().all(|later| {
                let same = |key: usize| key_of(key, later) == key_of(key, &versions[at]);
                !later.dead && keys.clone().all(same)
            })
        })
    }

    /// The versions that the condition of a query of one table matches, of rows that
    /// changed while the query ran.
    async fn fitting_select(
        &mut self,
        of: (TxId, usize),
        select: &Select,
        acts: bool,
    ) -> Result<Option<Fits>, Stop> {
        let Some(search) = only_search(select) else { return Ok(None) };
        self.fitting(of, search, Scan::Waits, acts).await
    }

    /// The view of the queries inside of a locking read. Where writes read the newest
    /// committed rows, only the statement itself does, unless all reads lock.
    fn inner_view(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
        outer: &View,
    ) -> Result<View, Stop> {
        let concurrency = self.world.concurrency(tx);
        let all_lock = concurrency.locking.plain_reads_lock && !self.world.tx(tx).autocommit;
        if !concurrency.reads_current() || all_lock {
            return Ok(outer.clone());
        }
        let mut below: Vec<&str> = Vec::new();
        select.own_expressions().for_each(|e| below.extend(sources_below(e)));
        let moment = match below.is_empty() {
            true => self.world.started(step),
            false => self.inner_moment(tx, step),
        };
        let mut view = outer.clone();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            if below.contains(&of.name.as_str()) {
                view[table] = self.inner_view_of(table, (tx, step), moment)?;
            }
        }
        // A query that the optimizer has merged into the outer one reads what that
        // reads.
        let open = self.world.concurrency(tx).current_reads.subqueries
            == WriteSubqueries::PlainRead
            && view != *outer;
        Ok(if open && self.search.choose(2) == 1 { outer.clone() } else { view })
    }

    /// The tables in FROM and in the joins of a plain query.
    pub fn sources(&self, select: &Select, step: usize) -> Result<Vec<usize>, Stop> {
        let plain = select.ctes.is_empty()
            && select.set_operation.is_none()
            && select.group_by.is_empty()
            && !select.distinct;
        let place = |s: &isolde_sql::Source| {
            let name = s.table()?;
            self.subject.reading.schema.tables.iter().position(|t| t.name == name)
        };
        let tables: Option<Vec<usize>> = select.from_and_joined().map(place).collect();
        let Some(tables) = tables.filter(|_| plain) else {
            return Err(Stop::not_modelled(step, "a locking read of more than plain tables"));
        };
        Ok(tables)
    }
}

/// The condition of a query that reads one table once.
fn only_search(select: &Select) -> Option<Search<'_>> {
    let sources = select.sources();
    let only = select.from.as_ref().filter(|_| sources.len() == 1 && select.ctes.is_empty());
    let Some(Source::Table { name, alias }) = only else { return None };
    Some(Search {
        table: name,
        alias: alias.as_deref(),
        join: None,
        filter: select.filter.as_ref(),
    })
}

/// Whether a query must read all rows that its condition matches. LIMIT, and an
/// aggregate that is at the end of an index, may be answered with fewer.
fn scans_all(select: &Select) -> bool {
    let mut aggregates = false;
    select.visit(&mut |e| aggregates |= matches!(e, Expr::Aggregate { .. }));
    select.limit.is_none() && !aggregates
}

fn lock_strength(strength: LockStrength) -> Strength {
    match strength {
        LockStrength::Update => Strength::Update,
        LockStrength::NoKeyUpdate => Strength::NoKeyUpdate,
        LockStrength::Share => Strength::Share,
        LockStrength::KeyShare => Strength::KeyShare,
    }
}

fn has_duplicates(tables: &[usize]) -> bool {
    tables.iter().enumerate().any(|(n, table)| tables[..n].contains(table))
}

fn count_like(rows: &[Row], like: &Row) -> usize {
    rows.iter().filter(|row| compare_rows(row, like) == Ordering::Equal).count()
}

/// Removes one equal row; false when there is none.
fn take_one(rows: &mut Vec<Row>, like: &Row) -> bool {
    let place = rows.iter().position(|row| compare_rows(row, like) == Ordering::Equal);
    place.map(|place| rows.swap_remove(place)).is_some()
}

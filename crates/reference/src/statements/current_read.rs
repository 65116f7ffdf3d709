//! Current reads: the rows found by a statement that reads the newest committed
//! versions, while other transactions commit.
//!
//! A statement that was not blocked has read one state of the database. A blocked
//! one has scanned rows while other transactions ended. If such a transaction has
//! changed a row, the scan may have read the row before or after the change,
//! depending on its position. The model makes this a choice, and the observed
//! counts and rows decide it.

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::stop::Stop;
use crate::version_tables::{Search, VersionId, View, Views};
use crate::world::{End, Place, Strength, TxId};
use isolde_catalog::{SnapshotAt, Waits};
use isolde_model::breach::{Obstacle, RowRole};
use isolde_sql::sources_below;
use isolde_sql::{InsertSource, Stmt, Write};
use std::collections::BTreeSet;

/// How a scan treats rows that other transactions have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It waits for each lock, and reads the row afterwards.
    Waits,
    /// It tests the last committed version first, and skips the row without waiting
    /// if that does not match.
    SemiConsistent,
}

/// The versions that the condition of a statement on one table matches. It does not
/// matter which of the other versions the statement has read.
pub struct Fits {
    pub table: usize,
    /// The matching versions of rows that have several possible states.
    pub found: BTreeSet<VersionId>,
    /// The statement acts on the newest version of each row that it finds.
    pub acts: bool,
}

impl Fits {
    /// Of the possible states of a row, those that make a difference to the statement.
    fn distinct(&self, states: Vec<Option<VersionId>>) -> Vec<Option<VersionId>> {
        let fits = |state: &Option<VersionId>| state.is_some_and(|id| self.found.contains(&id));
        let passed_by = states.iter().any(|state| !fits(state));
        let mut distinct: Vec<_> = if self.acts {
            states.first().copied().filter(fits).into_iter().collect()
        } else {
            states.iter().copied().filter(fits).collect()
        };
        if passed_by || distinct.is_empty() {
            distinct.push(None);
        }
        distinct
    }
}

impl ReferenceModel<'_> {
    /// The view of a statement that reads the tables `current` by current reads, and
    /// the other tables by plain reads.
    pub fn current_view(
        &mut self,
        tx: TxId,
        step: usize,
        current: &[usize],
        scan: Scan,
        fits: Option<&Fits>,
    ) -> Result<View, Stop> {
        if self.world.concurrency(tx).single_scan_snapshot() {
            return Ok(self.view_at_once(tx, step));
        }
        let tables = self.world.table_count();
        let read = self.tables_read(step);
        let consistent: Vec<usize> =
            (0..tables).filter(|t| !current.contains(t) && read.contains(t)).collect();
        let moment = match consistent.is_empty() {
            true => self.world.started(step),
            false => self.inner_moment(tx, step),
        };
        let mut view = View::with_capacity(tables);
        for table in 0..tables {
            if consistent.contains(&table) {
                view.push(self.inner_view_of(table, (tx, step), moment)?);
                continue;
            }
            let mut ids = Vec::new();
            for place in self.world.places(table) {
                let mut states = self.states_of(place, tx, step, scan);
                if !read.contains(&table) {
                    states.truncate(1);
                } else if let Some(fits) = fits.filter(|f| f.table == table && states.len() > 1) {
                    states = fits.distinct(states);
                }
                ids.extend(states[self.search.choose(states.len())]);
            }
            view.push(ids);
        }
        Ok(view)
    }

    /// All rows at one moment while the statement ran.
    fn view_at_once(&mut self, tx: TxId, step: usize) -> View {
        let read = self.tables_read(step);
        let mut views: Vec<View> = Vec::new();
        for moment in self.moments(step) {
            let view = self.world.view(tx, moment);
            let same = |other: &View| read.iter().all(|table| other[*table] == view[*table]);
            if !views.iter().any(same) {
                views.push(view);
            }
        }
        let chosen = self.search.choose(views.len());
        views.swap_remove(chosen)
    }

    /// The moments at which the committed rows differ while the statement runs, the
    /// last one first.
    pub fn moments(&self, step: usize) -> Vec<usize> {
        let started = self.world.started(step);
        let commits = self.world.transactions().filter_map(|(_, t)| match t.end {
            End::Committed(at) if at >= started => Some(at),
            _ => None,
        });
        let mut moments: Vec<usize> = commits.chain([started, self.world.now() + 1]).collect();
        moments.sort_unstable_by(|a, b| b.cmp(a));
        moments
    }

    /// Which of the possible states of the rows of a table match a condition. None if
    /// every row has only one, or if the condition depends on more than the row.
    pub async fn fitting(
        &mut self,
        (tx, step): (TxId, usize),
        search: Search<'_>,
        scan: Scan,
        acts: bool,
    ) -> Result<Option<Fits>, Stop> {
        if !decides_by_row(search) {
            return Ok(None);
        }
        let table = self.table(search.table, step)?;
        let states = self.world.places(table).map(|p| self.states_of(p, tx, step, scan));
        let open: Vec<VersionId> = states.filter(|s| s.len() > 1).flatten().flatten().collect();
        if open.is_empty() {
            return Ok(None);
        }
        let found = self.found_among(open, (table, search), step).await?;
        Ok(Some(Fits { table, found: found.into_iter().collect(), acts }))
    }

    /// Those of some versions that match a condition.
    pub async fn found_among(
        &mut self,
        versions: Vec<VersionId>,
        (table, search): (usize, Search<'_>),
        step: usize,
    ) -> Result<Vec<VersionId>, Stop> {
        if versions.is_empty() {
            return Ok(versions);
        }
        let mut view = vec![Vec::new(); self.world.table_count()];
        view[table] = versions;
        let sql = self.tables.found(search, Views { outer: &view, inner: &view });
        self.found(sql, step).await
    }

    /// A scan that waits for locked rows cannot have passed uncommitted rows of
    /// other transactions that match its condition.
    pub async fn check_uncommitted(
        &mut self,
        (tx, step): (TxId, usize),
        search: Search<'_>,
        strength: Strength,
        errors: &mut ExpectedErrors,
    ) -> Result<(), Stop> {
        let failed = self.subject.reply(step).is_some_and(|reply| reply.error().is_some());
        if failed
            || self.world.concurrency(tx).locking.waits != Waits::Scans
            || !decides_by_row(search)
        {
            return Ok(());
        }
        let table = self.table(search.table, step)?;
        let started = self.world.started(step);
        let uncommitted = |place: Place| {
            let versions = &self.world.chain(place).versions;
            let last =
                versions.last().filter(|v| !v.dead && v.by != tx && self.world.is_open(v.by))?;
            // A shared lock may be on an index alone. There only new rows are certain
            // to be locked.
            let is_new = || versions.iter().all(|v| v.by == last.by);
            let meets = last.at < started && (strength == Strength::Update || is_new());
            meets.then_some((last.id, last.by))
        };
        let open: Vec<(VersionId, TxId)> =
            self.world.places(table).filter_map(uncommitted).collect();
        let ids = open.iter().map(|(id, _)| *id).collect();
        let found = self.found_among(ids, (table, search), step).await?;
        if let Some((_, by)) = open.iter().find(|(id, _)| found.contains(id)) {
            let holder = self.world.session(*by).to_string();
            let (table, role) = (Some(search.table.to_string()), RowRole::Searched);
            let obstacle = Obstacle::RowLocked { holder, table, role };
            errors.block(self.world.concurrency(tx).rules.held_row, obstacle);
        }
        Ok(())
    }

    /// The tables that a statement reads.
    fn tables_read(&self, step: usize) -> Vec<usize> {
        let names = match self.operation(step) {
            Some(Stmt::Write(Write::Insert(insert))) => {
                let mut names = Vec::new();
                insert.visit(&mut |e| names.extend(sources_below(e)));
                if let InsertSource::Select(select) = &insert.source {
                    names.extend(select.sources());
                }
                names
            }
            Some(statement) => statement.tables(),
            None => Vec::new(),
        };
        let tables = self.subject.reading.schema.tables.iter().enumerate();
        tables.filter(|(_, t)| names.contains(&t.name.as_str())).map(|(n, _)| n).collect()
    }

    /// The possible states of a row while the statement ran, the last one first.
    fn states_of(&self, place: Place, tx: TxId, step: usize, scan: Scan) -> Vec<Option<VersionId>> {
        let started = self.world.started(step);
        let state = |moment: usize| {
            let counts = |t: TxId| t == tx || self.world.committed_before(t, moment);
            self.world.chain(place).last_of(counts).filter(|v| !v.dead)
        };
        let last = state(self.world.now() + 1).map(|v| v.id);
        let mut states = vec![last];
        let searched = self.searched_columns(place.table, step);
        let moved = |states: &[_]| self.moved(place, states, searched.as_deref());
        let held_at_start = self.world.chain(place).versions.iter().any(|v| {
            let open_then = match self.world.tx(v.by).end {
                End::Committed(at) => at >= started,
                End::Open => true,
                End::RolledBack => false,
            };
            v.by != tx && v.at < started && open_then && !self.world.buffers(v.by)
        });
        if held_at_start && scan == Scan::Waits {
            // While the scan was blocked at another row, this one may have moved
            // behind it.
            if last.is_some() && moved(&self.states_since(place, started)) {
                states.push(None);
            }
            return states;
        }
        for moment in self.moments(step) {
            let then = state(moment).map(|v| v.id);
            if !states.contains(&then) {
                states.push(then);
            }
        }
        // The scan may miss a row that moves.
        if states.len() > 1 && !states.contains(&None) && moved(&states) {
            states.push(None);
        }
        states
    }

    /// The version of a row at a moment, and all versions since.
    fn states_since(&self, place: Place, moment: usize) -> Vec<Option<VersionId>> {
        let versions = &self.world.chain(place).versions;
        let first = versions.iter().rposition(|v| v.at < moment).unwrap_or(0);
        versions[first..].iter().filter(|v| !v.dead).map(|v| Some(v.id)).collect()
    }

    /// The moment at which the plain reads inside of a statement take their snapshot:
    /// the first of them takes it, and that may be before or after a lock wait of the
    /// statement itself.
    pub fn inner_moment(&mut self, tx: TxId, step: usize) -> usize {
        let fresh = match self.world.concurrency(tx).snapshot.taken {
            SnapshotAt::Statement => true,
            SnapshotAt::FirstRead => {
                self.world.tx(tx).autocommit || self.world.tx(tx).snapshot.is_none()
            }
            SnapshotAt::FirstStatement | SnapshotAt::Begin | SnapshotAt::Dirty => false,
        };
        let waited = !self.serial && self.subject.history.outcome(step).waited;
        let mut moments = self.moments(step);
        moments.reverse();
        moments.dedup();
        if moments.len() > 2 {
            // Before the first commit nothing differs from the start.
            moments.remove(1);
        }
        let open = if fresh && waited { moments.len() } else { 1 };
        moments[self.search.choose(open)]
    }

    /// The versions of one table that a plain read inside of a statement sees, at the
    /// moment that [`Self::inner_moment`] has chosen.
    pub fn inner_view_of(
        &mut self,
        table: usize,
        (tx, step): (TxId, usize),
        moment: usize,
    ) -> Result<Vec<VersionId>, Stop> {
        let sent = self.world.started(step);
        self.world.start(step, moment);
        let view = self.plain_view_of(table, tx, step);
        self.world.start(step, sent);
        view
    }

    /// The versions of one table that a plain read sees.
    pub fn plain_view_of(
        &mut self,
        table: usize,
        tx: TxId,
        step: usize,
    ) -> Result<Vec<VersionId>, Stop> {
        let Some(snapshot) = self.snapshot(tx, step) else {
            let waited = self.subject.history.outcome(step).waited;
            let contended = || self.dirty_reads.is_contended(step, table);
            if self.may_be_locked(&[table], tx) || waited && contended() {
                return self.choose_foreseen(table, step);
            }
            return self.dirty_view_of(table, step);
        };
        Ok(self.world.view_of(table, tx, snapshot))
    }

    /// The versions of one table that a dirty read sees while no statement is running.
    pub fn dirty_view_of(&mut self, table: usize, step: usize) -> Result<Vec<VersionId>, Stop> {
        let now = self.world.dirty_view_of(table);
        // A statement that was blocked may have read before or after the wait.
        let before = self.dirty_reads.at_submission(step, table).cloned();
        let Some(before) = before.filter(|before| *before != now && !self.serial) else {
            return Ok(now);
        };
        // Each of several queries reads at a moment of its own, and one that is nested may read
        // once for each row of the query around it.
        let several = self.operation(step).is_some_and(|s| reads_in_subqueries(s) > 1);
        match self.search.choose(if several { 3 } else { 2 }) {
            0 => Ok(now),
            1 => Ok(before),
            _ => {
                let why = "dirty reads of several queries in a blocked statement are not modelled";
                Err(Stop::not_modelled(step, why))
            }
        }
    }
}

/// How many tables the subqueries of a statement name.
fn reads_in_subqueries(statement: &Stmt) -> usize {
    let mut reads = 0;
    statement.visit(&mut |e| reads += e.subquery().map_or(0, |select| select.sources().len()));
    reads
}

/// Whether a condition depends only on the row itself.
pub fn decides_by_row(search: Search<'_>) -> bool {
    search.join.is_none() && search.filter.map(sources_below).unwrap_or_default().is_empty()
}

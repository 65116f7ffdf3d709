//! Current reads: what a statement finds that looks at the newest committed
//! rows, and looks while others commit.
//!
//! A statement that did not wait saw one state. One that waited went through
//! the rows while others ended: a row that they changed meanwhile may have
//! been seen before or after, by where the scan was. Which it was is a choice,
//! and the observed counts and rows decide.

use super::Stop;
use super::conclude::Trouble;
use super::rules::{SnapshotAt, Waits};
use super::store::{Place, TxId, VersionId};
use super::transaction::{End, Strength};
use super::version_tables::{Search, View, Views};
use super::walk::Walk;
use crate::sql::select::sources_below;
use crate::sql::{InsertSource, Stmt};
use std::collections::BTreeSet;

/// What a scan makes of rows that others hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It waits for each, and sees what is left.
    Waits,
    /// It looks at the last committed version first, and may pass by.
    SemiConsistent,
}

/// What a statement that reads one table by a condition makes of its rows:
/// states that it passes by are all the same to it.
pub struct Fits {
    pub table: usize,
    /// The versions that it would find, of those that are open.
    pub found: BTreeSet<VersionId>,
    /// Having found a row it acts on what that is now.
    pub acts: bool,
}

impl Fits {
    /// The states that differ for the statement, of those that are open.
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

impl Walk<'_> {
    /// The rows that a current read of some tables finds; of the others what
    /// a plain read would see.
    pub fn current_view(
        &mut self,
        tx: TxId,
        step: usize,
        current: &[usize],
        scan: Scan,
        fits: Option<&Fits>,
    ) -> Result<View, Stop> {
        if self.conduct(tx).looks_once {
            return Ok(self.view_at_once(tx, step));
        }
        let tables = self.store.tables.len();
        let read = self.tables_read(step);
        let consistent: Vec<usize> =
            (0..tables).filter(|t| !current.contains(t) && read.contains(t)).collect();
        let late = !consistent.is_empty() && self.looks_late(tx, step);
        let mut view = View::with_capacity(tables);
        for table in 0..tables {
            if consistent.contains(&table) {
                view.push(self.inner_view_of(table, (tx, step), late)?);
                continue;
            }
            let mut ids = Vec::new();
            for place in self.store.places(table) {
                let mut states = self.states_of(place, tx, step, scan);
                if !read.contains(&table) {
                    states.truncate(1);
                } else if let Some(fits) = fits.filter(|f| f.table == table && states.len() > 1) {
                    states = fits.distinct(states);
                }
                ids.extend(states[self.choices.choose(states.len())]);
            }
            view.push(ids);
        }
        Ok(view)
    }

    /// All rows as they were at one moment while the statement ran.
    fn view_at_once(&mut self, tx: TxId, step: usize) -> View {
        let read = self.tables_read(step);
        let mut views: Vec<View> = Vec::new();
        for moment in self.moments(step) {
            let view = self.view(tx, moment);
            let same = |other: &View| read.iter().all(|table| other[*table] == view[*table]);
            if !views.iter().any(same) {
                views.push(view);
            }
        }
        let chosen = self.choices.choose(views.len());
        views.swap_remove(chosen)
    }

    /// When what is committed was another, the last first.
    fn moments(&self, step: usize) -> Vec<usize> {
        let started = self.started.get(&step).copied().unwrap_or(self.now);
        let commits = self.txs.iter().filter_map(|t| match t.end {
            End::Committed(at) if at >= started => Some(at),
            _ => None,
        });
        let mut moments: Vec<usize> = commits.chain([started, self.now + 1]).collect();
        moments.sort_unstable_by(|a, b| b.cmp(a));
        moments
    }

    /// Which of the open states of a table's rows a condition finds. None when
    /// nothing is open, or when more than the row decides.
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
        let states = self.store.places(table).map(|p| self.states_of(p, tx, step, scan));
        let open: Vec<VersionId> = states.filter(|s| s.len() > 1).flatten().flatten().collect();
        if open.is_empty() {
            return Ok(None);
        }
        let found = self.found_among(open, (table, search), step).await?;
        Ok(Some(Fits { table, found: found.into_iter().collect(), acts }))
    }

    /// Those of some versions that a condition finds.
    pub async fn found_among(
        &mut self,
        versions: Vec<VersionId>,
        (table, search): (usize, Search<'_>),
        step: usize,
    ) -> Result<Vec<VersionId>, Stop> {
        if versions.is_empty() {
            return Ok(versions);
        }
        let mut view = vec![Vec::new(); self.store.tables.len()];
        view[table] = versions;
        let sql = self.tables.found(search, Views { outer: &view, inner: &view });
        self.found(sql, step).await
    }

    /// A scan that waits meets what others have put where it looks, though
    /// they have not committed it: it cannot have gone through beside them.
    pub async fn meets_uncommitted(
        &mut self,
        (tx, step): (TxId, usize),
        search: Search<'_>,
        strength: Strength,
        trouble: &mut Trouble,
    ) -> Result<(), Stop> {
        let failed = self.subject.reply(step).is_some_and(|reply| reply.error().is_some());
        if failed || self.conduct(tx).waits != Waits::Scans || !decides_by_row(search) {
            return Ok(());
        }
        let table = self.table(search.table, step)?;
        let started = self.started.get(&step).copied().unwrap_or(self.now);
        let uncommitted = |place: Place| {
            let versions = &self.store.chain(place).versions;
            let last = versions.last().filter(|v| !v.dead && v.by != tx && self.is_open(v.by))?;
            // A shared lock may be on an index alone, where all that is certain
            // to be locked is a new row.
            let is_new = || versions.iter().all(|v| v.by == last.by);
            let meets = last.at < started && (strength == Strength::Update || is_new());
            meets.then_some((last.id, last.by))
        };
        let open: Vec<(VersionId, TxId)> =
            self.store.places(table).filter_map(uncommitted).collect();
        let ids = open.iter().map(|(id, _)| *id).collect();
        let found = self.found_among(ids, (table, search), step).await?;
        if let Some((_, by)) = open.iter().find(|(id, _)| found.contains(id)) {
            let why = format!(
                "{} has written a row of {} that it looks for",
                self.txs[*by].session, search.table
            );
            trouble.held(self.conduct(tx).rules.held_row, why);
        }
        Ok(())
    }

    /// The tables whose rows a statement looks at.
    fn tables_read(&self, step: usize) -> Vec<usize> {
        let names = match self.operation(step) {
            Some(Stmt::Insert(insert)) => {
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

    /// The states of a row while the statement ran, the last one first.
    fn states_of(&self, place: Place, tx: TxId, step: usize, scan: Scan) -> Vec<Option<VersionId>> {
        let started = self.started.get(&step).copied().unwrap_or(self.now);
        let state = |moment: usize| {
            let counts = |t: TxId| t == tx || self.committed_before(t, moment);
            self.store.chain(place).last_of(counts).filter(|v| !v.dead)
        };
        let last = state(self.now + 1).map(|v| v.id);
        let mut states = vec![last];
        let searched = self.searched_columns(place.table, step);
        let moved = |states: &[_]| self.moved(place, states, searched.as_deref());
        let held_at_start = self.store.chain(place).versions.iter().any(|v| {
            let open_then = match self.txs[v.by].end {
                End::Committed(at) => at >= started,
                End::Open => true,
                End::RolledBack => false,
            };
            v.by != tx && v.at < started && open_then && !self.buffers(v.by)
        });
        if held_at_start && scan == Scan::Waits {
            // While the scan waited for another row, this one may have gone
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
        // A row that changes its place may be missed on the way.
        if states.len() > 1 && !states.contains(&None) && moved(&states) {
            states.push(None);
        }
        states
    }

    /// What a row was at a moment, and all that it has been since.
    fn states_since(&self, place: Place, moment: usize) -> Vec<Option<VersionId>> {
        let versions = &self.store.chain(place).versions;
        let first = versions.iter().rposition(|v| v.at < moment).unwrap_or(0);
        versions[first..].iter().filter(|v| !v.dead).map(|v| Some(v.id)).collect()
    }

    /// Whether the first plain read inside of a statement came when that had
    /// waited: only then was the view made.
    pub fn looks_late(&mut self, tx: TxId, step: usize) -> bool {
        let fresh = match self.conduct(tx).snapshot {
            SnapshotAt::Statement => true,
            SnapshotAt::FirstRead => self.txs[tx].autocommit || self.txs[tx].snapshot.is_none(),
            SnapshotAt::FirstStatement | SnapshotAt::Begin | SnapshotAt::Dirty => false,
        };
        let waited = !self.serial && self.subject.history.outcome(step).waited;
        fresh && waited && self.choices.choose(2) == 1
    }

    /// What a plain read inside of a statement sees of one table.
    pub fn inner_view_of(
        &mut self,
        table: usize,
        (tx, step): (TxId, usize),
        late: bool,
    ) -> Result<Vec<VersionId>, Stop> {
        if !late {
            return self.plain_view_of(table, tx, step);
        }
        let sent = self.started.insert(step, self.now);
        let view = self.plain_view_of(table, tx, step);
        self.started.insert(step, sent.unwrap_or(self.now));
        view
    }

    /// What a plain read of one table sees.
    pub fn plain_view_of(
        &mut self,
        table: usize,
        tx: TxId,
        step: usize,
    ) -> Result<Vec<VersionId>, Stop> {
        let Some(snapshot) = self.snapshot(tx, step) else {
            let waited = self.subject.history.outcome(step).waited;
            let beside = || self.beside.get(&step).is_some_and(|tables| tables.contains(&table));
            if self.may_be_taken(&[table], tx) || waited && beside() {
                let why = "a dirty read beside a statement that waits is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            return Ok(self.dirty_view_of(table, step));
        };
        let places = self.store.places(table);
        Ok(places.filter_map(|p| self.visible(p, tx, snapshot).map(|v| v.id)).collect())
    }

    /// What a dirty read of one table sees while nobody is at work.
    pub fn dirty_view_of(&mut self, table: usize, step: usize) -> Vec<VersionId> {
        let now = self.newest_of_all(table);
        // A statement that waited may have looked before or after.
        let before = self.dirty.get(&step).map(|view| view[table].clone());
        match before.filter(|before| *before != now && !self.serial) {
            Some(before) if self.choices.choose(2) == 1 => before,
            _ => now,
        }
    }

    /// The newest version of each row, committed or not.
    pub fn newest_of_all(&self, table: usize) -> Vec<VersionId> {
        let newest = |p: Place| self.store.chain(p).versions.last().filter(|v| !v.dead);
        self.store.places(table).filter_map(|p| newest(p).map(|v| v.id)).collect()
    }
}

/// Whether a row alone decides if a condition finds it.
pub fn decides_by_row(search: Search<'_>) -> bool {
    search.join.is_none() && search.filter.map(sources_below).unwrap_or_default().is_empty()
}

//! The reads of a write: its view, the view of its subqueries, and the values that
//! it assigns.

use super::current_read::{Scan, decides_by_row};
use crate::model::Look;
use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::stop::Stop;
use crate::version_tables::{Search, View};
use crate::world::{Place, Strength, TxId, Version};
use isolde_catalog::{AssignmentOrder, ScanPolicy, SnapshotAt, SnapshotCheck, WriteSubqueries};
use isolde_model::breach::{Obstacle, RowRole};
use isolde_model::history::ErrorClass;
use isolde_sql::{Expr, InsertSource, Stmt, Write, sources_below};

/// The kind of statement that assigns columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    Update,
    Join,
    Upsert,
}

/// How a write reads its own table and others.
pub struct Reads<'s> {
    pub table: &'s str,
    pub update: bool,
    /// At levels where this is possible, its subqueries are consistent reads without
    /// locks.
    pub may_read_consistently: bool,
    /// The condition on its own table; none if it does not search it.
    pub search: Option<Search<'s>>,
    /// Without LIMIT it examines all rows that match.
    pub scans_all: bool,
    pub reads_others: bool,
}

impl ReferenceModel<'_> {
    /// The first steps of every write. Returns its view and the errors to expect.
    pub async fn before_write(
        &mut self,
        tx: TxId,
        step: usize,
        how: Reads<'_>,
    ) -> Result<(View, ExpectedErrors), Stop> {
        let rules = self.world.concurrency(tx).rules;
        let mut errors = ExpectedErrors::default();
        self.lock_tables(tx, step, Some(how.table), &mut errors);
        let scan = self.scan((tx, step), &how).await?;
        if let Some(search) = how.search.filter(|_| scan == Scan::Waits && how.scans_all) {
            self.check_uncommitted((tx, step), search, Strength::Update, &mut errors).await?;
        }
        // New rows are not found: what matters for them is whether their keys are free.
        let finds_rows = how.search.is_some() || how.reads_others;
        let view = self.view_of_write(tx, step, how, scan).await?;
        self.record_view(tx, step, &view);
        if self.world.tx(tx).read_only {
            errors.require(ErrorClass::ReadOnly, rules.write, Obstacle::ReadOnly);
        }
        self.check_single_writer(tx, step, &mut errors);
        // A statement that is rejected before it runs takes no lock.
        let error = self.subject.reply(step).and_then(|reply| reply.error());
        if error.is_none_or(|error| error.class != ErrorClass::Rejected) {
            self.world.tx_mut(tx).writer = true;
        }
        self.use_rule(step, if finds_rows { rules.write } else { rules.unique });
        self.permit_snapshot_conflicts(tx, &mut errors);
        self.permit_conflicts(tx, &mut errors);
        Ok((view, errors))
    }

    /// Permits the error of current reads under a snapshot: the transaction fails when
    /// it scans a version that is not in the snapshot, even if that does not match.
    pub fn permit_snapshot_conflicts(&self, tx: TxId, errors: &mut ExpectedErrors) {
        let concurrency = self.world.concurrency(tx);
        if concurrency.current_reads.snapshot_check != SnapshotCheck::Off
            && self.world.overlaps_others(tx)
        {
            errors.permit(ErrorClass::WriteConflict, &isolde_catalog::engines::innodb::M2);
        }
    }

    /// The view of the queries inside of a write.
    pub fn inner_of_write(&mut self, tx: TxId, step: usize, view: &View) -> Result<View, Stop> {
        if self.world.concurrency(tx).current_reads.subqueries != WriteSubqueries::PlainRead {
            return Ok(view.clone());
        }
        let plain = (0..view.len()).map(|table| self.plain_view_of(table, tx, step));
        let plain = plain.collect::<Result<View, Stop>>()?;
        let certain = matches!(self.operation(step), Some(Stmt::Write(Write::Insert(i))) if matches!(i.source, InsertSource::Values(_)));
        let selects = matches!(self.operation(step), Some(Stmt::Write(Write::Insert(i))) if matches!(i.source, InsertSource::Select(_)));
        if certain {
            return Ok(plain);
        }
        // Whether a query is evaluated before the write is the optimizer's choice.
        let open = plain != *view && !selects && self.operation(step).is_some_and(reads_others);
        Ok(if open && self.search.choose(2) == 1 { plain } else { view.clone() })
    }

    /// The view of a write: its snapshot, or the newest committed rows of its own table
    /// and of those that it locks while it reads.
    async fn view_of_write(
        &mut self,
        tx: TxId,
        step: usize,
        how: Reads<'_>,
        scan: Scan,
    ) -> Result<View, Stop> {
        let concurrency = self.world.concurrency(tx);
        if !concurrency.reads_current() {
            let snapshot = self.kept_snapshot(tx, step);
            return Ok(self.world.view(tx, snapshot));
        }
        let consistent = concurrency.current_reads.subqueries == WriteSubqueries::ConsistentRead
            && how.may_read_consistently;
        let table = self.table(how.table, step)?;
        let mut current = Vec::new();
        if !consistent {
            current.extend(0..self.world.table_count());
        } else if how.search.is_some() {
            current.push(table);
        }
        if consistent && how.reads_others {
            self.use_rule(step, &isolde_catalog::engines::innodb::I9);
        }
        if scan == Scan::SemiConsistent && self.holds_changes_of_others(table, tx) {
            self.use_rule(step, self.world.concurrency(tx).rules.changed_row);
        }
        let fits = match how.search {
            Some(search) => self.fitting((tx, step), search, scan, true).await?,
            None => None,
        };
        self.current_view(tx, step, &current, scan, fits.as_ref())
    }

    /// How a write treats rows that other transactions have locked.
    async fn scan(&mut self, (tx, step): (TxId, usize), how: &Reads<'_>) -> Result<Scan, Stop> {
        let concurrency = self.world.concurrency(tx);
        if concurrency.single_scan_snapshot() {
            return Ok(Scan::SemiConsistent);
        }
        if !(concurrency.current_reads.scan == ScanPolicy::SemiConsistentUpdates && how.update) {
            return Ok(Scan::Waits);
        }
        let searched = how.search.filter(|search| decides_by_row(*search));
        let Some(search) = searched.filter(|_| !self.serial && self.blocked_immediately(step))
        else {
            return Ok(Scan::SemiConsistent);
        };
        // A semi-consistent read waits only for rows whose last committed version
        // matches. An UPDATE that is blocked although none does finds its rows in
        // another way, by a key or by an index.
        let table = self.table(search.table, step)?;
        let started = self.world.started(step);
        let committed = self.world.view(tx, started).swap_remove(table);
        let found = self.found_among(committed, (table, search), step).await?;
        Ok(if found.is_empty() { Scan::Waits } else { Scan::SemiConsistent })
    }

    /// Whether other open transactions have written rows of a table.
    fn holds_changes_of_others(&self, table: usize, tx: TxId) -> bool {
        let of_others = |v: &Version| v.by != tx && self.world.is_open(v.by);
        self.world.places(table).any(|p| self.world.chain(p).versions.iter().any(of_others))
    }

    /// Requires the error of a current read under a snapshot, if the newest version of
    /// a row is not in the snapshot.
    pub fn check_snapshot(&self, place: Place, tx: TxId, errors: &mut ExpectedErrors) {
        let concurrency = self.world.concurrency(tx);
        let since = match concurrency.snapshot.taken {
            SnapshotAt::Begin => Some(self.world.tx(tx).began),
            _ => self.world.tx(tx).snapshot,
        };
        let Some(since) =
            since.filter(|_| concurrency.current_reads.snapshot_check == SnapshotCheck::EveryRow)
        else {
            return;
        };
        let newest = self.world.newest(place, tx);
        if newest.is_some_and(|v| v.by != tx && !self.world.committed_before(v.by, since)) {
            // A write or a locking read does not always execute the plain read inside
            // of it: for a condition that no row can satisfy, it takes no snapshot.
            let of_view = |(_, look): &(usize, Look)| look.by == tx && look.snapshot == Some(since);
            let maker = self.trace.looks().filter(of_view).map(|(step, _)| step).min();
            let plain = |step: usize| match self.operation(step) {
                Some(Stmt::Select(select)) => select.locking.is_none(),
                _ => false,
            };
            if maker.is_none_or(plain) {
                let role = RowRole::LockedInView;
                let obstacle = Obstacle::RowChanged { by: None, table: None, role };
                errors.require(ErrorClass::WriteConflict, concurrency.rules.changed_row, obstacle);
            } else {
                errors.permit(ErrorClass::WriteConflict, concurrency.rules.changed_row);
            }
        }
    }

    /// The assigned values as expressions over the old row. Where the engine assigns
    /// from left to right, later expressions see the values of earlier ones.
    pub fn sets_in_order(
        &mut self,
        sets: &[(String, Expr)],
        (tx, step): (TxId, usize),
        (target, assigned): (&str, Assigned),
    ) -> Result<Vec<(String, Expr)>, Stop> {
        let in_order = match self.world.concurrency(tx).assignments {
            AssignmentOrder::Simultaneous => false,
            AssignmentOrder::LeftToRightInUpserts => assigned == Assigned::Upsert,
            AssignmentOrder::LeftToRight => true,
        };
        if !in_order {
            return Ok(sets.to_vec());
        }
        let mut done: Vec<(String, Expr)> = Vec::new();
        let mut replaced_any = false;
        for (column, value) in sets {
            let mut value = value.clone();
            if !replace_below(&mut value, target, &done) {
                let why = "a subquery that reads a column which is assigned before is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            let replaced = replace_columns(&mut value, &done);
            if replaced && assigned == Assigned::Join {
                let why = "the order of assignments in a join is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            replaced_any |= replaced;
            done.push((column.clone(), value));
        }
        // A condition with a subquery may be executed as a join, in which the order of
        // assignments is not defined.
        let as_join = replaced_any
            && match self.operation(step) {
                Some(Stmt::Write(Write::Update(update))) => {
                    update.filter.as_ref().is_some_and(|filter| !sources_below(filter).is_empty())
                }
                _ => false,
            };
        Ok(if as_join && self.search.choose(2) == 1 { sets.to_vec() } else { done })
    }
}

/// Whether a statement contains a subquery.
pub fn reads_others(statement: &Stmt) -> bool {
    let mut found = false;
    statement.visit(&mut |e| found |= e.subquery().is_some());
    found
}

/// Replaces columns of the written table in the subqueries of a value by the values assigned
/// to them. False if that cannot be done: a name may be that of a column of the subquery.
fn replace_below(value: &mut Expr, target: &str, set: &[(String, Expr)]) -> bool {
    let mut possible = true;
    value.visit_mut(&mut |e| {
        let Some(select) = e.subquery_mut() else { return };
        let mut hidden = select.from_and_joined().any(|s| s.visible_name() == Some(target))
            || select.parts().next().is_some();
        // A query inside of it may have a table of that name.
        select.visit(&mut |inner| hidden |= inner.subquery().is_some());
        select.visit_mut(&mut |inner| {
            let Expr::Column { qualifier, name } = inner else { return };
            let Some((_, new)) = set.iter().find(|(column, _)| column == name) else { return };
            match qualifier.as_deref() {
                Some(of) if of != target => {}
                Some(_) if !hidden && matches!(new, Expr::Literal(_)) => *inner = new.clone(),
                _ => possible = false,
            }
        });
    });
    possible
}

/// Replaces columns by the values assigned to them; true if there was one.
fn replace_columns(value: &mut Expr, set: &[(String, Expr)]) -> bool {
    if let Expr::Column { name, .. } = value {
        let Some((_, new)) = set.iter().find(|(column, _)| column == name) else { return false };
        *value = new.clone();
        return true;
    }
    value.children_mut().into_iter().fold(false, |any, e| replace_columns(e, set) | any)
}

//! What a write reads: its view, what its queries see, and what it sets.

use super::Stop;
use super::account::Look;
use super::conclude::Trouble;
use super::current::{Scan, decides_by_row};
use super::rules::{Assigns, Changed, SnapshotAt};
use super::store::{Place, TxId, Version};
use super::transaction::Strength;
use super::version_tables::{Search, View};
use super::walk::Walk;
use crate::history::ErrorClass;
use crate::sql::{Expr, InsertSource, Stmt};

/// What assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    Update,
    Join,
    Upsert,
}

/// How a write reads.
pub struct Reads<'s> {
    pub table: &'s str,
    pub update: bool,
    /// Where the level has it, what it selects takes no locks.
    pub may_read_consistently: bool,
    /// What it looks for in its own table; none when that is not searched.
    pub search: Option<Search<'s>>,
    pub reads_others: bool,
}

impl Walk<'_> {
    /// What every write starts with: its view and what may be in its way.
    pub async fn before_write(
        &mut self,
        tx: TxId,
        step: usize,
        how: Reads<'_>,
    ) -> Result<(View, Trouble), Stop> {
        let rules = self.conduct(tx).rules;
        let mut trouble = Trouble::default();
        self.lock_tables(tx, step, Some(how.table), &mut trouble);
        let scan = self.scan((tx, step), &how).await?;
        if let Some(search) = how.search.filter(|_| scan == Scan::Waits) {
            self.meets_uncommitted((tx, step), search, Strength::Update, &mut trouble).await?;
        }
        let view = self.view_of_write(tx, step, how, scan).await?;
        if self.txs[tx].read_only {
            trouble.must(ErrorClass::ReadOnly, rules.write, "its transaction is read only");
        }
        self.needs_database(tx, step, &mut trouble);
        self.txs[tx].writer = true;
        self.use_rule(step, rules.write);
        self.may_meet_changes(tx, &mut trouble);
        self.may_refuse(tx, &mut trouble);
        if self.conduct(tx).refuses && self.conduct(tx).poisons {
            // Its own keys may be in its way.
            trouble.may(ErrorClass::Constraint, rules.unique);
        }
        Ok((view, trouble))
    }

    /// With current reads under a snapshot, whatever is scanned and is not in
    /// the snapshot is the end of the transaction, be it asked for or not.
    pub fn may_meet_changes(&self, tx: TxId, trouble: &mut Trouble) {
        let conduct = self.conduct(tx);
        if conduct.waits_may_abort && self.met_others(tx) {
            trouble.may(ErrorClass::WriteConflict, &super::rules::innodb::M2);
        }
    }

    /// What the queries inside of a write see.
    pub fn inner_of_write(&mut self, tx: TxId, step: usize, view: &View) -> Result<View, Stop> {
        if !self.conduct(tx).plain_subqueries {
            return Ok(view.clone());
        }
        let plain = (0..view.len()).map(|table| self.plain_view_of(table, tx, step));
        let plain = plain.collect::<Result<View, Stop>>()?;
        let certain = matches!(self.operation(step), Some(Stmt::Insert(i)) if matches!(i.source, InsertSource::Values(_)));
        let selects = matches!(self.operation(step), Some(Stmt::Insert(i)) if matches!(i.source, InsertSource::Select(_)));
        if certain {
            return Ok(plain);
        }
        // Whether a query is computed beforehand is the optimizer's choice.
        let open = plain != *view && !selects && self.operation(step).is_some_and(reads_others);
        Ok(if open && self.choices.choose(2) == 1 { plain } else { view.clone() })
    }

    /// What a write sees: its snapshot, or what is current of its own table
    /// and of those that it locks while it reads.
    async fn view_of_write(
        &mut self,
        tx: TxId,
        step: usize,
        how: Reads<'_>,
        scan: Scan,
    ) -> Result<View, Stop> {
        let conduct = self.conduct(tx);
        if conduct.changed != Changed::Current {
            let snapshot = self.kept_snapshot(tx, step);
            return Ok(self.view(tx, snapshot));
        }
        let consistent = conduct.consistent_reads_in_writes && how.may_read_consistently;
        let table = self.table(how.table, step)?;
        let mut current = Vec::new();
        if !consistent {
            current.extend(0..self.store.tables.len());
        } else if how.search.is_some() {
            current.push(table);
        }
        if consistent && how.reads_others {
            self.use_rule(step, &super::rules::innodb::I9);
        }
        if scan == Scan::SemiConsistent && self.holds_changes_of_others(table, tx) {
            self.use_rule(step, self.conduct(tx).rules.changed_row);
        }
        let fits = match how.search {
            Some(search) => self.fitting((tx, step), search, scan, true).await?,
            None => None,
        };
        self.current_view(tx, step, &current, scan, fits.as_ref())
    }

    /// What a write makes of rows that others hold.
    async fn scan(&mut self, (tx, step): (TxId, usize), how: &Reads<'_>) -> Result<Scan, Stop> {
        let conduct = self.conduct(tx);
        if conduct.looks_once {
            return Ok(Scan::SemiConsistent);
        }
        if !(conduct.semi_consistent && how.update) {
            return Ok(Scan::Waits);
        }
        let searched = how.search.filter(|search| decides_by_row(*search));
        let Some(search) = searched.filter(|_| !self.serial && self.waits_at_once(step)) else {
            return Ok(Scan::SemiConsistent);
        };
        // A semi-consistent read waits only for rows whose last committed version
        // matches. Whoever waits where none does looks them up in another way, by
        // a key or by an index.
        let table = self.table(search.table, step)?;
        let started = self.started.get(&step).copied().unwrap_or(self.now);
        let committed = self.view(tx, started).swap_remove(table);
        let found = self.found_among(committed, (table, search), step).await?;
        Ok(if found.is_empty() { Scan::Waits } else { Scan::SemiConsistent })
    }

    /// Whether others, who are still open, have written rows of a table.
    fn holds_changes_of_others(&self, table: usize, tx: TxId) -> bool {
        let of_others = |v: &Version| v.by != tx && self.is_open(v.by);
        self.store.places(table).any(|p| self.store.chain(p).versions.iter().any(of_others))
    }

    /// A current read under a snapshot fails on what the snapshot lacks.
    pub fn not_in_snapshot(&self, place: Place, tx: TxId, trouble: &mut Trouble) {
        let conduct = self.conduct(tx);
        let since = match conduct.snapshot {
            SnapshotAt::Begin => Some(self.txs[tx].began),
            _ => self.txs[tx].snapshot,
        };
        let Some(since) = since.filter(|_| conduct.snapshot_writes) else { return };
        let newest = self.newest(place, tx);
        if newest.is_some_and(|v| v.by != tx && !self.committed_before(v.by, since)) {
            // What is read inside of a write or a locking read need not be read at all: a
            // condition that nothing can satisfy makes no view.
            let of_view =
                |(_, look): &(&usize, &Look)| look.by == tx && look.snapshot == Some(since);
            let maker = self.looks.iter().filter(of_view).map(|(step, _)| *step).min();
            let plain = |step: usize| match self.operation(step) {
                Some(Stmt::Select(select)) => select.locking.is_none(),
                _ => false,
            };
            if maker.is_none_or(plain) {
                let why = "a row that it locks was changed after its view";
                trouble.must(ErrorClass::WriteConflict, conduct.rules.changed_row, why);
            } else {
                trouble.may(ErrorClass::WriteConflict, conduct.rules.changed_row);
            }
        }
    }

    /// What is set, as expressions over the old row: where the engine assigns
    /// from left to right, later ones see what earlier ones set.
    pub fn sets_in_order(
        &self,
        sets: &[(String, Expr)],
        (tx, step): (TxId, usize),
        assigned: Assigned,
    ) -> Result<Vec<(String, Expr)>, Stop> {
        let in_order = match self.conduct(tx).assigns {
            Assigns::AtOnce => false,
            Assigns::UpsertsInOrder => assigned == Assigned::Upsert,
            Assigns::InOrder => true,
        };
        if !in_order {
            return Ok(sets.to_vec());
        }
        let mut done: Vec<(String, Expr)> = Vec::new();
        for (column, value) in sets {
            let mut value = value.clone();
            let replaced = replace_columns(&mut value, &done);
            if replaced && assigned == Assigned::Join {
                let why = "the order of assignments in a join is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            done.push((column.clone(), value));
        }
        Ok(done)
    }
}

/// Whether a write has a query in it.
pub fn reads_others(statement: &Stmt) -> bool {
    let mut found = false;
    statement.visit(&mut |e| found |= e.subquery().is_some());
    found
}

/// Puts what was set in the place of columns; true when there was one.
fn replace_columns(value: &mut Expr, set: &[(String, Expr)]) -> bool {
    if let Expr::Column { name, .. } = value {
        let Some((_, new)) = set.iter().find(|(column, _)| column == name) else { return false };
        *value = new.clone();
        return true;
    }
    value.children_mut().into_iter().fold(false, |any, e| replace_columns(e, set) | any)
}

//! Reads that lock: FOR UPDATE and FOR SHARE, and plain ones where all reads do.

use super::Stop;
use super::conclude::{Expected, Trouble};
use super::current::{Fits, Scan};
use super::rules::Changed;
use super::store::{Place, TxId, VersionId};
use super::transaction::Strength;
use super::version_tables::{Search, View, Views, whole};
use super::walk::Walk;
use crate::history::{ErrorClass, What};
use crate::sql::select::{Source, sources_below};
use crate::sql::{Expr, LockPatience, LockStrength, Locking, Select};
use crate::value::{Row, compare_rows};
use std::cmp::Ordering;

impl Walk<'_> {
    /// A query that locks all it reads, whatever it makes of it.
    pub async fn locking_query(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
    ) -> Result<(), Stop> {
        let rules = self.conduct(tx).rules;
        let all: Vec<usize> = (0..self.store.tables.len()).collect();
        let fits = self.fitting_select((tx, step), select, false).await?;
        let view = self.current_view(tx, step, &all, Scan::Waits, fits.as_ref())?;
        let sql = self.tables.select(select, &view);
        let rows = match self.evaluate(sql, Some(step)).await {
            Ok(rows) => rows,
            Err(stop) => return self.or_refused_alike(tx, step, Err(stop)),
        };
        // Whether it had to wait depends on the index that it read.
        let mut trouble = Trouble::default();
        self.may_meet_changes(tx, &mut trouble);
        let rows = self.or_materialised(step, select, &view, rows).await?;
        self.use_rule(step, rules.read);
        self.conclude(tx, step, Expected::Rows(rows), trouble, None)
    }

    /// A locking read: as a write, each row is waited for, and looked at again
    /// when it has changed.
    pub async fn locking_read(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
        locking: &Locking,
    ) -> Result<(), Stop> {
        if self.serial && locking.patience == LockPatience::SkipLocked {
            // What it leaves out depends on who else is at work: no serial
            // order has to explain it.
            return Ok(());
        }
        let rules = self.conduct(tx).rules;
        let changed = self.conduct(tx).changed;
        let is_current = changed == Changed::Current;
        let view = if is_current {
            let all: Vec<usize> = (0..self.store.tables.len()).collect();
            let fits = self.fitting_select((tx, step), select, true).await?;
            self.current_view(tx, step, &all, Scan::Waits, fits.as_ref())?
        } else {
            let snapshot = self.kept_snapshot(tx, step);
            self.view(tx, snapshot)
        };
        let mut trouble = Trouble::default();
        self.may_meet_changes(tx, &mut trouble);
        if self.txs[tx].read_only && is_current {
            trouble.may(ErrorClass::ReadOnly, rules.write);
        } else if self.txs[tx].read_only {
            trouble.must(ErrorClass::ReadOnly, rules.write, "its transaction is read only");
        }
        let sources = self.sources(select, step)?;
        let twice = sources.iter().enumerate().any(|(n, t)| sources[..n].contains(t));
        if is_current && twice && !self.serial && self.subject.history.outcome(step).waited {
            let why = "a table that is read twice while others commit is not modelled";
            return Err(Stop::not_modelled(step, why));
        }
        if self.buffers(tx) {
            self.searched.extend(sources.iter().map(|table| (tx, *table)));
        }
        let strength = match locking.strength {
            LockStrength::Update => Strength::Update,
            LockStrength::NoKeyUpdate => Strength::NoKeyUpdate,
            LockStrength::Share => Strength::Share,
            LockStrength::KeyShare => Strength::KeyShare,
        };
        let patient = matches!(locking.patience, LockPatience::Wait | LockPatience::Seconds(_));
        if let Some(search) = only_search(select).filter(|_| patient && scans_all(select)) {
            self.meets_uncommitted((tx, step), search, strength, &mut trouble).await?;
        }
        let inner = self.inner_view(tx, step, select, &view)?;
        let views = Views { outer: &view, inner: &inner };
        let sql = self.tables.select_with_sources(select, views);
        let found = self.evaluate(sql, Some(step)).await?;
        let mut rows: Vec<Row> = Vec::new();
        // Whatever others scanned may be locked, not only what they found; and whoever held
        // something while it waited may have ended since.
        let waited = !self.serial && self.subject.history.outcome(step).waited;
        let unclear = !self.buffers(tx) && self.may_be_taken(&sources, tx)
            || is_current && (self.others_open(tx) || waited);
        if unclear && locking.patience == LockPatience::NoWait {
            trouble.may(ErrorClass::LockTimeout, rules.held_row);
        }
        // Which rows were skipped is up to what others scanned: those that were
        // seen must be among those that were there.
        let open_to_skip = unclear && locking.patience == LockPatience::SkipLocked;
        let seen = self.subject.reply(step).and_then(What::rows).unwrap_or_default();
        let mut unseen = seen.to_vec();
        let all: Vec<Row> = found.iter().map(|cells| cells[sources.len()..].to_vec()).collect();
        for mut cells in found {
            let row = cells.split_off(sources.len());
            let versions: Vec<VersionId> = cells.iter().filter_map(whole).collect();
            let places: Vec<Option<Place>> =
                sources.iter().zip(&versions).map(|(t, id)| self.store.find(*t, *id)).collect();
            let Some(places) = places.into_iter().collect::<Option<Vec<Place>>>() else {
                return Err(Stop::not_modelled(step, "a row of no known version"));
            };
            let alone = self.conduct(tx).alone_is_optimistic && self.txs[tx].autocommit;
            let waits = !alone && !self.buffers(tx);
            let holder =
                places.iter().filter(|_| waits).find_map(|p| self.holder(*p, tx, strength));
            if let Some(holder) = holder {
                match locking.patience {
                    // A shared lock may be on an index alone, which nobody holds.
                    _ if is_current && strength != Strength::Update => {}
                    LockPatience::SkipLocked => continue,
                    LockPatience::NoWait => {
                        let why = format!("{} holds a row", self.txs[holder].session);
                        trouble.must(ErrorClass::LockTimeout, rules.held_row, why);
                    }
                    LockPatience::Wait | LockPatience::Seconds(_) => {
                        let why = format!("{} holds a row that it locks", self.txs[holder].session);
                        trouble.held(rules.held_row, why);
                    }
                }
            }
            if open_to_skip && !take_one(&mut unseen, &row) {
                continue;
            }
            // Of rows that look alike it is not known which were skipped.
            let known = !open_to_skip || count_like(seen, &row) == count_like(&all, &row);
            let newest: Vec<Option<VersionId>> = places
                .iter()
                .map(|p| self.newest(*p, tx).filter(|v| !v.dead).map(|v| v.id))
                .collect();
            let same = newest.iter().zip(&versions).all(|(n, v)| *n == Some(*v));
            if same {
                rows.push(row);
            } else if is_current {
                let why = "it returns a version that was not the newest".into();
                return Err(Stop::Outside { step: Some(step), rule: rules.changed_row, why });
            } else if changed == Changed::Abort {
                let why = "a row that it locks was changed after its snapshot";
                trouble.must(ErrorClass::Serialization, rules.changed_row, why);
                continue;
            } else {
                places.iter().for_each(|p| self.moved_apart(*p, tx, &mut trouble));
                let Some(newest) = newest.into_iter().collect::<Option<Vec<VersionId>>>() else {
                    continue;
                };
                if sources.iter().enumerate().any(|(n, t)| sources[..n].contains(t)) {
                    let why = "a second look at one table that was read twice is not modelled";
                    return Err(Stop::not_modelled(step, why));
                }
                let mut narrow = view.clone();
                for (table, id) in sources.iter().zip(&newest) {
                    narrow[*table] = vec![*id];
                }
                let views = Views { outer: &narrow, inner: &inner };
                let sql = self.tables.select_with_sources(select, views);
                let again = self.evaluate(sql, Some(step)).await?;
                let again: Vec<Row> =
                    again.into_iter().map(|mut cells| cells.split_off(sources.len())).collect();
                if again != [row] {
                    self.use_rule(step, rules.changed_row);
                }
                rows.extend(again);
            }
            for place in places {
                self.not_in_snapshot(place, tx, &mut trouble);
                // A shared lock may be on an index alone, where it is in nobody's way.
                if known && (!is_current || strength == Strength::Update) {
                    self.lock(place, tx, strength);
                }
            }
        }
        self.use_rule(step, rules.write);
        self.conclude(tx, step, Expected::Rows(rows), trouble, None)
    }

    /// The rows that a query of one table finds, where some are open.
    async fn fitting_select(
        &mut self,
        of: (TxId, usize),
        select: &Select,
        acts: bool,
    ) -> Result<Option<Fits>, Stop> {
        let Some(search) = only_search(select) else { return Ok(None) };
        self.fitting(of, search, Scan::Waits, acts).await
    }

    /// What the queries inside of a locking read see: where writes look at
    /// what is current, only the statement itself does, unless all reads lock.
    fn inner_view(
        &mut self,
        tx: TxId,
        step: usize,
        select: &Select,
        outer: &View,
    ) -> Result<View, Stop> {
        let conduct = self.conduct(tx);
        let all_lock = conduct.reads_lock && !self.txs[tx].autocommit;
        if conduct.changed != Changed::Current || all_lock {
            return Ok(outer.clone());
        }
        let mut below: Vec<&str> = Vec::new();
        select.own_expressions().for_each(|e| below.extend(sources_below(e)));
        let late = !below.is_empty() && self.looks_late(tx, step);
        let mut view = outer.clone();
        for (table, of) in self.subject.reading.schema.tables.iter().enumerate() {
            if below.contains(&of.name.as_str()) {
                view[table] = self.inner_view_of(table, (tx, step), late)?;
            }
        }
        // A query that was made a part of the outer one reads what that reads.
        let open = self.conduct(tx).plain_subqueries && view != *outer;
        Ok(if open && self.choices.choose(2) == 1 { outer.clone() } else { view })
    }

    /// The tables of a plain query, each of them once.
    pub fn sources(&self, select: &Select, step: usize) -> Result<Vec<usize>, Stop> {
        let plain = select.ctes.is_empty()
            && select.set_operation.is_none()
            && select.group_by.is_empty()
            && !select.distinct;
        let place = |s: &crate::sql::Source| {
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

/// What a query of one table looks for in it.
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

/// Whether a query has to look at all the rows that its condition finds: LIMIT
/// and the ends of an index may be answered with less.
fn scans_all(select: &Select) -> bool {
    let mut aggregates = false;
    select.visit(&mut |e| aggregates |= matches!(e, Expr::Aggregate { .. }));
    select.limit.is_none() && !aggregates
}

fn count_like(rows: &[Row], like: &Row) -> usize {
    rows.iter().filter(|row| compare_rows(row, like) == Ordering::Equal).count()
}

/// Takes one row like this away; false when there is none.
fn take_one(rows: &mut Vec<Row>, like: &Row) -> bool {
    let place = rows.iter().position(|row| compare_rows(row, like) == Ordering::Equal);
    place.map(|place| rows.swap_remove(place)).is_some()
}

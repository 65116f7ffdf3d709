//! INSERT, row by row: keys that are taken, and what becomes of them.

use super::write_snapshot::{Assigned, Reads};
use crate::commit::written_columns;
use crate::constraints::Change;
use crate::constraints::Clash;
use crate::model::DuplicateKey;
use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::stop::Stop;
use crate::version_tables::{Put, Sets, View};
use crate::world::{Place, Strength, TxId, Version, same_key};
use isolde_catalog::{RowCounts, RowStorage, UpsertKey, Waits, WriteConflictPolicy};
use isolde_model::Value;
use isolde_model::breach::{KeyOwner, Obstacle, RowRole};
use isolde_model::history::ErrorClass;
use isolde_sql::{Conflict, Expr, Insert, InsertSource, Type};

/// The INSERT whose rows are inserted.
#[derive(Clone, Copy)]
pub(super) struct InsertStep<'s> {
    pub tx: TxId,
    pub step: usize,
    pub table: usize,
    pub insert: &'s Insert,
    /// What its subqueries read.
    pub inner: &'s View,
}

/// What an upsert does to the row that has the key.
struct Upsert<'s> {
    sets: Sets<'s>,
    /// The condition under which it does it.
    filter: Option<&'s Expr>,
}

impl ReferenceModel<'_> {
    pub async fn insert(&mut self, tx: TxId, step: usize, insert: &Insert) -> Result<(), Stop> {
        let table = self.table(&insert.table, step)?;
        let how = Reads {
            table: &insert.table,
            update: false,
            may_read_consistently: matches!(insert.source, InsertSource::Select(_)),
            search: None,
            scans_all: true,
            reads_others: matches!(insert.source, InsertSource::Select(_)),
        };
        let (view, mut errors) = self.before_write(tx, step, how).await?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let sql = self.tables.incoming(insert, &inner);
        let incoming = self.fresh(table, sql, Some(step)).await?;
        let numbered = |name: &str| {
            let of = self.subject.reading.schema.table(name);
            of.is_none_or(|of| of.columns.iter().any(|c| c.numbered.is_some()))
        };
        if insert.conflict == Conflict::Fail && !numbered(&insert.table) {
            let made = incoming.iter().map(|fresh| fresh.row.clone()).collect();
            self.record_evaluation((step, table), (&inner, &inner), Vec::new(), made);
        }
        let incoming: Vec<Version> =
            incoming.into_iter().map(|fresh| self.world.version(fresh, tx)).collect();
        let acts = insert.conflict != Conflict::Fail;
        let incoming = match acts && self.world.concurrency(tx).constraints.checked_in_indexes {
            true => self.first_with_each_key((tx, step), table, incoming)?,
            false => incoming,
        };
        let before = self.world.save_rows();
        let mut done = Vec::new();
        let mut count = 0;
        for new in incoming {
            let at = InsertStep { tx, step, table, insert, inner: &inner };
            count += self.insert_row(at, new, &mut done, &mut errors).await?;
        }
        let expected = self.expected_of_write((tx, step), table, &done, count).await?;
        self.check_foreign_keys(tx, step, done, &mut errors).await?;
        self.conclude(tx, step, expected, errors, Some(before))
    }

    /// Inserts one row; returns how many rows it counts for.
    pub(super) async fn insert_row(
        &mut self,
        at: InsertStep<'_>,
        mut new: Version,
        done: &mut Vec<Change>,
        errors: &mut ExpectedErrors,
    ) -> Result<u64, Stop> {
        let InsertStep { tx, step, table, insert, .. } = at;
        let concurrency = self.world.concurrency(tx);
        let rules = concurrency.rules;
        let covers_all = concurrency.constraints.ignore_covers_all_errors;
        let resolves_first = concurrency.constraints.conflicts_resolved_before_checks;
        if insert.conflict == Conflict::Ignore && self.ignores_constraints() {
            if covers_all {
                new = self.without_nulls(tx, step, table, new).await?;
            }
            if self.ignores_row(at, &new, covers_all, errors) {
                return Ok(0);
            }
        } else if !resolves_first {
            self.check_row(tx, table, &new, errors);
        }
        let ignores = insert.conflict == Conflict::Ignore;
        if ignores && self.locks_only_changes(tx) && self.key_is_committed(tx, table, &new) {
            // It locks nothing, so it does not wait for a transaction that removes the key.
            return Ok(0);
        }
        let arbiter = match &insert.conflict {
            Conflict::Update { key, .. } => self.arbiter(table, key),
            Conflict::DoNothing { key } if !key.is_empty() => {
                let named = self.arbiter(table, key);
                if named.is_none() {
                    let why = "the key that ON CONFLICT names is not known";
                    return Err(Stop::not_modelled(step, why));
                }
                named
            }
            _ => None,
        };
        let taken = self.taken_keys(at, arbiter, &new, errors);
        let before = done.len();
        let mut replaced = 0;
        let mut duplicates = Vec::new();
        match &insert.conflict {
            Conflict::Ignore | Conflict::DoNothing { .. }
                if taken.is_empty() && self.was_taken(at, &new) && self.search.choose(2) == 1 =>
            {
                self.use_upsert_rule(tx, step);
                return Ok(0);
            }
            _ if taken.is_empty() => {}
            Conflict::Fail if self.world.buffers(tx) && !self.has_taken(tx, &taken) => {
                duplicates = taken;
            }
            Conflict::Fail => {
                let obstacle = Obstacle::KeyTaken { owner: KeyOwner::Visible };
                errors.require(ErrorClass::Constraint, rules.unique, obstacle);
                return Ok(0);
            }
            Conflict::DoNothing { .. }
                if arbiter.is_some() && !taken.iter().any(|(key, _)| Some(*key) == arbiter) =>
            {
                let obstacle = Obstacle::KeyTaken { owner: KeyOwner::Visible };
                errors.require(ErrorClass::Constraint, rules.unique, obstacle);
                return Ok(0);
            }
            Conflict::Ignore | Conflict::DoNothing { .. } => {
                self.see_conflicts(tx, step, &taken, errors);
                self.use_upsert_rule(tx, step);
                return Ok(0);
            }
            Conflict::Replace => match self.replace_rows(at, taken, &new, done, errors) {
                Some(count) => replaced = count,
                None => return Ok(1),
            },
            Conflict::Update { sets, filter, .. } => {
                let upsert = Upsert { sets, filter: filter.as_ref() };
                return self.upsert_row(at, (taken, arbiter), upsert, &new, done, errors).await;
            }
        }
        if resolves_first {
            self.check_row(tx, table, &new, errors);
        }
        if self.world.concurrency(tx).counting == RowCounts::Dolt {
            replaced = replaced.min(1);
        }
        let place = self.add_row(tx, table, &new);
        if !self.world.buffers(tx) {
            self.world.lock(place, tx, Strength::Update);
        }
        self.take_duplicate_keys(tx, &duplicates, place);
        self.supersede_records(tx, place, &new);
        let in_place = self.world.concurrency(tx).storage == RowStorage::ClusteredIndex;
        let replaced_rows =
            done[before..].iter().filter_map(|c| c.old.clone().filter(|_| in_place));
        let replaced_rows = replaced_rows.collect();
        done.push(Change { replaced: replaced_rows, ..Change::new(place, None, Some(new)) });
        Ok(1 + replaced)
    }

    /// Whether IGNORE skips a row that violates NOT NULL or CHECK or, where it
    /// covers all errors, has no parent.
    fn ignores_row(
        &mut self,
        at: InsertStep<'_>,
        new: &Version,
        covers_all: bool,
        errors: &mut ExpectedErrors,
    ) -> bool {
        let InsertStep { tx, step, table, .. } = at;
        let mut broken = ExpectedErrors::default();
        self.check_row(tx, table, new, &mut broken);
        let orphan = covers_all && !self.has_parents(tx, table, new);
        if !broken.is_certain() && !orphan {
            return false;
        }
        self.record_visible_row(step, table, new.id);
        if covers_all {
            // MariaDB 10.11 fails on a CHECK all the same, 11.8 does not.
            errors.permit(ErrorClass::Constraint, self.world.concurrency(tx).rules.constraint);
        }
        true
    }

    /// The keys of a new row that are taken, each with the row that has it. Lock
    /// holders and rows outside the snapshot that have a key are obstacles.
    fn taken_keys(
        &mut self,
        at: InsertStep<'_>,
        arbiter: Option<usize>,
        new: &Version,
        errors: &mut ExpectedErrors,
    ) -> Vec<(usize, Place)> {
        let InsertStep { tx, step, table, insert, .. } = at;
        let rules = self.world.concurrency(tx).rules;
        let clashes = self.visible_clashes(tx, step, table, None, new);
        // The first key that is taken decides, unless its row goes.
        let decided = matches!(insert.conflict, Conflict::Ignore | Conflict::Update { .. })
            && clashes.iter().any(|(_, c)| matches!(c, Clash::Taken(_)));
        for (_, clash) in clashes.iter().filter(|_| !decided) {
            if let Clash::Held(by) = clash {
                let holder = self.world.session(*by).to_string();
                errors.block(rules.unique, Obstacle::KeyLocked { holder });
            }
        }
        let acts = insert.conflict != Conflict::Fail;
        let concerns = |key: usize| acts && arbiter.is_none_or(|arbiter| arbiter == key);
        let sees = |key: &usize| {
            let seen = |c: &Clash| matches!(c, Clash::Taken(_) | Clash::Gone(_));
            concerns(*key) && clashes.iter().any(|(k, c)| k == key && seen(c))
        };
        if clashes.iter().any(|(k, c)| matches!(c, Clash::Unseen) && !sees(k)) {
            let rule = if acts { rules.upsert } else { rules.unique };
            let obstacle = Obstacle::KeyTaken { owner: KeyOwner::Invisible };
            errors.require(ErrorClass::Constraint, rule, obstacle);
        }
        let taken: Vec<(usize, Place)> = clashes
            .into_iter()
            .filter_map(|(key, clash)| match clash {
                Clash::Taken(place) => Some((key, place)),
                Clash::Gone(place) if concerns(key) => Some((key, place)),
                Clash::Held(_) | Clash::Unseen | Clash::Gone(_) => None,
            })
            .collect();
        let by_row = self.world.concurrency(tx).checks_foreign_keys_by_row();
        if by_row && !taken.is_empty() && !self.has_parents(tx, table, new) {
            // The index of the foreign key may come before that of the key.
            errors.permit(ErrorClass::Constraint, rules.foreign);
        }
        let by_primary = |(key, _): &(usize, Place)| self.keys[table][*key].primary;
        if !taken.is_empty() && !taken.iter().any(by_primary) {
            self.record_visible_row(step, table, new.id);
        }
        taken
    }

    /// Whether a committed row had a key of the new row when the statement may have
    /// looked: rows are checked one after the other, and one that was checked before
    /// a lock wait is not checked again. A statement that locks what it finds keeps
    /// the key taken.
    fn was_taken(&self, at: InsertStep<'_>, new: &Version) -> bool {
        let InsertStep { tx, step, table, .. } = at;
        if self.world.concurrency(tx).locking.waits != Waits::Rows || !self.has_waited(step) {
            return false;
        }
        let has = |v: &Version| {
            (0..self.keys[table].len()).any(|key| {
                let (ours, theirs) = (self.key_of(table, key, new), self.key_of(table, key, v));
                ours.zip(theirs)
                    .is_some_and(|(a, b)| same_key(&a, &b, self.case_insensitive_keys(tx)))
            })
        };
        let moments = self.moments(step);
        self.world.places(table).any(|place| {
            moments.iter().any(|moment| self.world.visible(place, tx, *moment).is_some_and(has))
        })
    }

    /// REPLACE: deletes the rows that have a key of the new row, and returns how
    /// many of them count. None when the new row equals one of them, which may
    /// then stay as it is.
    fn replace_rows(
        &mut self,
        at: InsertStep<'_>,
        taken: Vec<(usize, Place)>,
        new: &Version,
        done: &mut Vec<Change>,
        errors: &mut ExpectedErrors,
    ) -> Option<u64> {
        let InsertStep { tx, step, .. } = at;
        let concurrency = self.world.concurrency(tx);
        let (rules, counts_changed) = (concurrency.rules, concurrency.counting.omits_unchanged());
        let merges = self.world.merges(tx);
        self.use_rule(step, if merges { rules.upsert } else { rules.unique });
        let mut replaced = 0;
        let mut gone: Vec<Place> = taken.into_iter().map(|(_, place)| place).collect();
        gone.dedup();
        for place in gone {
            let old = self.world.newest(place, tx).filter(|v| !v.dead).cloned();
            let Some(old) = old else { continue };
            let same = counts_changed && old.row == new.row;
            if merges {
                replaced += if same { self.search.choose(2) as u64 } else { counts_changed.into() };
                done.push(self.delete_row((tx, step), place, old, errors));
                continue;
            }
            self.take(place, tx, Strength::Update, errors);
            if same && self.search.choose(2) == 0 {
                return None;
            }
            replaced += u64::from(counts_changed);
            self.remove_row(tx, place, old.clone());
            done.push(Change::new(place, Some(old), None));
        }
        Some(replaced)
    }

    /// ON CONFLICT DO UPDATE and ON DUPLICATE KEY UPDATE: changes the row that has
    /// the key; returns how many rows that counts for.
    async fn upsert_row(
        &mut self,
        at: InsertStep<'_>,
        (taken, arbiter): (Vec<(usize, Place)>, Option<usize>),
        Upsert { sets, filter }: Upsert<'_>,
        new: &Version,
        done: &mut Vec<Change>,
        errors: &mut ExpectedErrors,
    ) -> Result<u64, Stop> {
        let InsertStep { tx, step, table, insert, inner } = at;
        let concurrency = self.world.concurrency(tx);
        let (rules, counts_changed) = (concurrency.rules, concurrency.counting.omits_unchanged());
        let hit = match concurrency.constraints.upsert_key {
            UpsertKey::Any => taken.get(self.search.choose(taken.len())),
            UpsertKey::Named => taken.iter().find(|(k, _)| Some(*k) == arbiter),
        };
        let Some((_, place)) = hit.copied() else {
            let obstacle = Obstacle::KeyTaken { owner: KeyOwner::Visible };
            errors.require(ErrorClass::Constraint, rules.unique, obstacle);
            return Ok(0);
        };
        self.use_upsert_rule(tx, step);
        if self.writes_rows_once(tx) && self.is_own_write(place, tx) {
            let obstacle = Obstacle::KeyTaken { owner: KeyOwner::SameStatement };
            errors.require(ErrorClass::Other, rules.upsert, obstacle);
            return Ok(0);
        }
        self.sees_conflict(tx, step, place, errors);
        let Some(old) = self.world.newest(place, tx).cloned() else { return Ok(0) };
        let sets = self.sets_in_order(sets, (tx, step), (&insert.table, Assigned::Upsert))?;
        if let Some(filter) = filter {
            let sql = self.tables.upsert_matches(&insert.table, filter, (old.id, new.id), inner);
            if self.evaluate(sql, Some(step)).await?.is_empty() {
                // The row is locked, and stays as it is.
                self.take(place, tx, Strength::Update, errors);
                return Ok(0);
            }
        }
        let sql = self.tables.upserted(&insert.table, &sets, (old.id, new.id), inner);
        let Some(fresh) = self.fresh(table, sql, Some(step)).await?.pop() else {
            return Ok(0);
        };
        let changed = self.world.version(fresh, tx);
        let count = if counts_changed { 2 } else { 1 };
        if self.world.merges(tx) && !(counts_changed && old.row == changed.row) {
            let written = written_columns(&self.subject.reading.schema.tables[table], &sets);
            let changes = self.write_row((tx, step), place, (old, changed), &written, errors);
            changes.iter().for_each(|c| self.check_keys(tx, step, c, errors));
            done.extend(changes);
            return Ok(count);
        }
        if !self.locks_only_changes(tx) || old.row != changed.row {
            self.take(place, tx, self.strength(tx, table, &old, &changed), errors);
        }
        if counts_changed && old.row == changed.row {
            // Whether a row that stays as it is counts has been seen both ways.
            return Ok(self.search.choose(2) as u64);
        }
        self.check_row(tx, table, &changed, errors);
        self.world.add_version(place, changed.clone());
        let change = Change::new(place, Some(old), Some(changed));
        self.check_keys(tx, step, &change, errors);
        done.push(change);
        Ok(count)
    }

    /// Whether a statement is autocommitted and locks nothing but the rows that it
    /// changes.
    pub fn locks_only_changes(&self, tx: TxId) -> bool {
        self.world.concurrency(tx).locking.autocommit_locks_only_changes
            && self.world.tx(tx).autocommit
    }

    /// What IGNORE puts in the place of a NULL that must not be: the value that
    /// the column's type has for nothing.
    async fn without_nulls(
        &mut self,
        tx: TxId,
        step: usize,
        table: usize,
        mut new: Version,
    ) -> Result<Version, Stop> {
        let columns = &self.subject.reading.schema.tables[table].columns;
        for (place, column) in columns.iter().enumerate() {
            if !column.not_null || new.row[place] != Value::Null || column.generated.is_some() {
                continue;
            }
            let nothing = match column.of_type {
                _ if column.numbered.is_some() => None,
                Type::Int | Type::BigInt | Type::Decimal | Type::Float | Type::Bool => Some("0"),
                Type::Text(_) | Type::Blob => Some("''"),
                Type::Date | Type::Other(_) => None,
            };
            let Some(nothing) = nothing else {
                let why = "what IGNORE puts in the place of a NULL is not modelled";
                return Err(Stop::not_modelled(step, why));
            };
            self.use_rule(step, self.world.concurrency(tx).rules.constraint);
            let put = Put::Literal(nothing);
            let sql = self.tables.with_column(table, new.id, &column.name, &put);
            let Some(fresh) = self.fresh(table, sql, Some(step)).await?.pop() else { break };
            new = self.world.version(fresh, tx);
        }
        Ok(new)
    }

    /// Cites the rule of upserts. With row locks and kept snapshots, that rule is about
    /// upserts that fail, and does not explain one that succeeds.
    fn use_upsert_rule(&mut self, tx: TxId, step: usize) {
        let concurrency = self.world.concurrency(tx);
        if concurrency.has_single_writer()
            || concurrency.conflicts.changed_row != WriteConflictPolicy::Abort
        {
            self.use_rule(step, concurrency.rules.upsert);
        }
    }

    /// Whether a row of the snapshot suffices to write nothing, where no statement
    /// waits.
    fn ignores_visible_row(&mut self, tx: TxId, step: usize, place: Place) -> bool {
        if !self.world.concurrency(tx).conflicts.fails_instead_of_waiting {
            return false;
        }
        let snapshot = self.kept_snapshot(tx, step);
        self.world.visible(place, tx, snapshot).is_some()
    }

    /// Looks at the rows that have the keys of a row that is not inserted. The first
    /// that the statement finds decides, and the order in which it looks is not known.
    fn see_conflicts(
        &mut self,
        tx: TxId,
        step: usize,
        taken: &[(usize, Place)],
        errors: &mut ExpectedErrors,
    ) {
        let (mut failing, mut passing) = (Vec::new(), Vec::new());
        let mut ignores = false;
        for (_, place) in taken {
            if self.ignores_visible_row(tx, step, *place) {
                ignores = true;
                continue;
            }
            let mut of_row = ExpectedErrors::default();
            self.sees_conflict(tx, step, *place, &mut of_row);
            let list = if of_row.is_certain() { &mut failing } else { &mut passing };
            list.push(*place);
        }
        if !failing.is_empty() && (ignores || !passing.is_empty()) {
            errors.permit(ErrorClass::Serialization, self.world.concurrency(tx).rules.upsert);
            failing.clear();
        }
        for place in failing.into_iter().chain(passing) {
            self.sees_conflict(tx, step, place, errors);
        }
    }

    /// A transaction that keeps a snapshot cannot act on a row outside of it.
    fn sees_conflict(&mut self, tx: TxId, step: usize, place: Place, errors: &mut ExpectedErrors) {
        let concurrency = self.world.concurrency(tx);
        // With one writer it is the whole database that may not have changed.
        if concurrency.conflicts.changed_row != WriteConflictPolicy::Abort
            || concurrency.has_single_writer()
        {
            return;
        }
        let snapshot = self.kept_snapshot(tx, step);
        let seen = self.world.visible(place, tx, snapshot).map(|v| v.id);
        let newest = self.world.newest(place, tx).map(|v| (v.id, v.at));
        if seen != newest.map(|(id, _)| id) {
            let rule = self.world.concurrency(tx).rules.upsert;
            let started = self.world.started(step);
            if newest.is_some_and(|(_, at)| at > started) {
                // It may have looked before the change, and waited for another row.
                errors.permit(ErrorClass::Serialization, rule);
                return;
            }
            let obstacle = Obstacle::RowChanged { by: None, table: None, role: RowRole::KeyOwner };
            errors.require(ErrorClass::Serialization, rule, obstacle);
        }
    }

    /// Whether a row that is committed has one of the keys.
    fn key_is_committed(&self, tx: TxId, table: usize, new: &Version) -> bool {
        (0..self.keys[table].len()).any(|key| {
            let Some(cells) = self.key_of(table, key, new) else { return false };
            let has = |v: &Version| {
                let theirs = self.key_of(table, key, v).filter(|_| !v.dead);
                theirs
                    .is_some_and(|theirs| same_key(&cells, &theirs, self.case_insensitive_keys(tx)))
            };
            self.world.places(table).any(|p| self.world.newest(p, tx).is_some_and(has))
        })
    }

    /// Whether the transaction itself has written a row with one of the keys.
    fn has_taken(&self, tx: TxId, taken: &[(usize, Place)]) -> bool {
        taken.iter().any(|(_, place)| self.world.newest(*place, tx).is_some_and(|v| v.by == tx))
    }

    /// An INSERT that does not look before the COMMIT whether its key is free.
    /// The row that has its primary key is not seen any more.
    fn take_duplicate_keys(&mut self, tx: TxId, taken: &[(usize, Place)], new: Place) {
        for (key, old) in taken.iter().copied() {
            let statement = self.world.statement();
            self.commit_buffer.add_duplicate(DuplicateKey { by: tx, old, new, statement });
            let was = self.world.newest(old, tx).filter(|v| !v.dead).cloned();
            if let Some(was) = was.filter(|_| self.keys[old.table][key].primary) {
                self.world.delete(old, was, tx);
            }
        }
    }
}

//! Foreign keys: what a child needs, and what becomes of children.

use super::Stop;
use super::conclude::Trouble;
use super::rules::Changed;
use super::store::{Place, TxId, Version, same_key};
use super::transaction::{FIRST_ROWS, Strength};
use super::version_tables::Put;
use super::walk::Walk;
use crate::Value;
use crate::history::ErrorClass;
use crate::sql::{ForeignKey, OnDelete};
use std::collections::VecDeque;

/// What a statement did to one row.
pub struct Change {
    pub place: Place,
    pub old: Option<Version>,
    pub new: Option<Version>,
}

/// What a foreign key does to the children of a row that lost its key.
enum Action {
    Refuse,
    Delete,
    SetNull,
    Follow,
}

impl Walk<'_> {
    /// Checks and actions of foreign keys, when the statement ends.
    pub async fn foreign_keys(
        &mut self,
        tx: TxId,
        step: usize,
        changes: Vec<Change>,
        trouble: &mut Trouble,
    ) -> Result<(), Stop> {
        let mut queue: VecDeque<Change> = changes.into();
        let mut referring: Vec<(Place, usize, usize, Value)> = Vec::new();
        let mut bereft: Vec<((usize, usize), Value)> = Vec::new();
        while let Some(change) = queue.pop_front() {
            for (foreign, column) in self.foreign_columns(change.place.table) {
                if let Some(new) = &change.new
                    && change.old.as_ref().is_none_or(|old| !old.row[column].same(&new.row[column]))
                {
                    let value = new.row[column].clone();
                    referring.push((change.place, foreign, column, value));
                }
            }
            let more = self.on_children(tx, step, &change, trouble, &mut bereft).await?;
            queue.extend(more);
        }
        for (place, foreign, column, value) in referring {
            // A row that did not live to see the end of the statement needs no
            // parent, where it is checked then.
            let now = self.newest(place, tx).filter(|v| !v.dead);
            let still = now.is_some_and(|v| v.row[column].same(&value));
            if !still && !self.conduct(tx).foreign_keys_by_row {
                continue;
            }
            self.has_parent(tx, step, (place.table, foreign), &value, trouble);
        }
        for (child, key) in bereft {
            self.nobody_refers(tx, step, child, &key, trouble);
        }
        Ok(())
    }

    /// The foreign keys of a table, each with its column.
    pub fn foreign_columns(&self, table: usize) -> Vec<(usize, usize)> {
        let of = &self.subject.reading.schema.tables[table];
        let column = |f: &ForeignKey| of.columns.iter().position(|c| c.name == f.column);
        let places = of.foreign_keys.iter().enumerate();
        places.filter_map(|(n, f)| column(f).map(|c| (n, c))).collect()
    }

    /// The foreign keys that refer to a table: whose they are, by number and
    /// by name, their column and the one that they refer to.
    pub fn references_to(&self, parent: usize) -> Vec<(usize, &str, usize, usize)> {
        let tables = self.subject.reading.schema.tables.iter().enumerate();
        let of_table = |(child, table): (usize, &'_ crate::sql::Table)| {
            let columns = self.foreign_columns(child);
            let refers = |(n, column): (usize, usize)| {
                let (to, key) = self.parent_of(&table.foreign_keys[n])?;
                (to == parent).then_some((column, key))
            };
            columns
                .into_iter()
                .filter_map(refers)
                .map(|(column, key)| (child, column, key))
                .collect::<Vec<_>>()
        };
        let found: Vec<(usize, usize, usize)> = tables.flat_map(of_table).collect();
        let name = |child: usize| self.subject.reading.schema.tables[child].name.as_str();
        found.into_iter().map(|(child, column, key)| (child, name(child), column, key)).collect()
    }

    /// The table and column that a foreign key refers to.
    pub fn parent_of(&self, foreign: &ForeignKey) -> Option<(usize, usize)> {
        let tables = &self.subject.reading.schema.tables;
        let parent = tables.iter().position(|t| t.name == foreign.parent)?;
        let columns = &tables[parent].columns;
        Some((parent, columns.iter().position(|c| c.name == foreign.parent_column)?))
    }

    /// The row that a child refers to is there, and stays.
    fn has_parent(
        &mut self,
        tx: TxId,
        step: usize,
        (child, key): (usize, usize),
        value: &Value,
        trouble: &mut Trouble,
    ) {
        let rules = self.conduct(tx).rules;
        let foreign = &self.subject.reading.schema.tables[child].foreign_keys[key];
        let Some((parent, key)) = self.parent_of(foreign) else { return };
        if *value == Value::Null {
            return;
        }
        let is_parent = |v: &Version| {
            !v.dead && same_key(&[v.row[key].clone()], std::slice::from_ref(value), false)
        };
        let places: Vec<Place> = self.store.places(parent).collect();
        let keeps_snapshot = self.conduct(tx).changed == Changed::Abort;
        let snapshot = if keeps_snapshot { self.kept_snapshot(tx, step) } else { self.now };
        let indexes = self.conduct(tx).checks_indexes;
        let now = |p: Place| match indexes {
            true => self.in_index(p, tx),
            false => self.newest(p, tx),
        };
        let there = places.iter().copied().find(|p| now(*p).is_some_and(is_parent));
        let seen = |p: &Place| self.visible(*p, tx, snapshot).is_some_and(is_parent);
        match there {
            Some(place) => {
                if keeps_snapshot && !places.iter().any(seen) {
                    let why = "its snapshot does not show the row that it refers to";
                    trouble.must(ErrorClass::Constraint, rules.foreign, why);
                }
                if keeps_snapshot && self.lost_a_key(place, tx, snapshot) {
                    let why = "a key of the row that it refers to has changed since its snapshot";
                    trouble.must(ErrorClass::Serialization, rules.changed_row, why);
                }
                let waits = !self.conduct(tx).refuses && !self.buffers(tx);
                let holder = self.holder(place, tx, Strength::KeyShare);
                if let Some(holder) = holder.filter(|_| waits) {
                    let who = &self.txs[holder].session;
                    let why = format!("{who} is changing the row that it refers to");
                    trouble.held(rules.foreign, why);
                }
                self.lock(place, tx, Strength::KeyShare);
            }
            None => {
                let why = format!("no row of {} has the key it refers to", foreign.parent);
                trouble.must(ErrorClass::Constraint, rules.foreign, why);
                if keeps_snapshot && places.iter().any(seen) {
                    let why = "the row that it refers to is gone since its snapshot";
                    trouble.must(ErrorClass::Serialization, rules.changed_row, why);
                }
            }
        }
        self.use_rule(step, rules.foreign);
    }

    /// Whether somebody else has committed another value in any key of a row since a snapshot.
    /// Who refers to the row locks the version that the snapshot shows, which such a change
    /// has replaced, whichever key it was.
    fn lost_a_key(&self, place: Place, tx: TxId, snapshot: usize) -> bool {
        let versions = &self.store.chain(place).versions;
        let committed: Vec<&Version> =
            versions.iter().filter(|v| self.committed_before(v.by, usize::MAX)).collect();
        self.conduct(tx).key_locks
            && committed.windows(2).any(|two| {
                two[1].by != tx
                    && !self.committed_before(two[1].by, snapshot)
                    && self.strength(tx, place.table, two[0], two[1]) == Strength::Update
            })
    }

    /// Whether a row that is about to be added has all the rows it refers to.
    pub fn has_parents(&self, tx: TxId, table: usize, new: &Version) -> bool {
        let foreign_keys = &self.subject.reading.schema.tables[table].foreign_keys;
        self.foreign_columns(table).into_iter().all(|(key, column)| {
            let value = &new.row[column];
            let Some((parent, of)) = self.parent_of(&foreign_keys[key]) else { return true };
            let is_parent = |v: &Version| !v.dead && v.row[of].same(value);
            *value == Value::Null
                || self.store.places(parent).any(|p| self.newest(p, tx).is_some_and(is_parent))
        })
    }

    /// What becomes of the children of a row that is deleted or loses its key.
    async fn on_children(
        &mut self,
        tx: TxId,
        step: usize,
        change: &Change,
        trouble: &mut Trouble,
        bereft: &mut Vec<((usize, usize), Value)>,
    ) -> Result<Vec<Change>, Stop> {
        let subject = self.subject;
        let mut more = Vec::new();
        let Some(old) = &change.old else { return Ok(more) };
        let tables = subject.reading.schema.tables.iter().enumerate();
        let foreign_keys = tables.flat_map(|(child, table)| {
            table.foreign_keys.iter().enumerate().map(move |(n, foreign)| (child, n, foreign))
        });
        for (child, number, foreign) in foreign_keys {
            let Some((parent, key)) = self.parent_of(foreign) else { continue };
            if parent != change.place.table {
                continue;
            }
            let lost = old.row[key].clone();
            let action = match &change.new {
                Some(new) if new.row[key].same(&lost) => continue,
                Some(_) if foreign.update_cascades => Action::Follow,
                Some(_) => Action::Refuse,
                None => match foreign.on_delete {
                    OnDelete::Refuse | OnDelete::Restrict => Action::Refuse,
                    OnDelete::Cascade => Action::Delete,
                    OnDelete::SetNull => Action::SetNull,
                },
            };
            if let Action::Refuse = action {
                bereft.push(((child, number), lost));
                continue;
            }
            self.use_rule(step, self.conduct(tx).rules.foreign);
            for place in self.children(tx, step, (child, number), &lost, trouble) {
                let before = self.newest(place, tx).cloned();
                let Some(before) = before else { continue };
                let strength = match action {
                    Action::Delete => Strength::Update,
                    _ if !self.conduct(tx).key_locks => Strength::Update,
                    _ => Strength::NoKeyUpdate,
                };
                self.take_child(place, tx, strength, trouble);
                let new = match (&action, &change.new) {
                    (Action::Delete, _) => {
                        self.remove_row(tx, place, before.clone());
                        None
                    }
                    (Action::Follow, Some(parent_row)) => {
                        let put = Put::Version {
                            table: parent,
                            id: parent_row.id,
                            column: foreign.parent_column.clone(),
                        };
                        self.child_version(tx, step, place, before.id, &foreign.column, put).await?
                    }
                    _ => {
                        let put = Put::Null;
                        self.child_version(tx, step, place, before.id, &foreign.column, put).await?
                    }
                };
                if let Some(new) = &new {
                    self.holds_rules_of_row(tx, child, new, trouble);
                }
                let change = Change { place, old: Some(before), new };
                self.key_is_free(tx, step, &change, trouble);
                more.push(change);
            }
        }
        Ok(more)
    }

    async fn child_version(
        &mut self,
        tx: TxId,
        step: usize,
        place: Place,
        id: i64,
        column: &str,
        put: Put,
    ) -> Result<Option<Version>, Stop> {
        let sql = self.tables.with_column(place.table, id, column, &put);
        let Some(fresh) = self.fresh(place.table, sql, Some(step)).await?.pop() else {
            return Ok(None);
        };
        let version = self.version(fresh, tx);
        self.store.add_version(place, version.clone());
        Ok(Some(version))
    }

    fn take_child(&mut self, place: Place, tx: TxId, strength: Strength, trouble: &mut Trouble) {
        if self.buffers(tx) {
            return;
        }
        if let Some(holder) = self.holder(place, tx, strength) {
            let why = format!("{} holds a row that refers to it", self.txs[holder].session);
            let conduct = self.conduct(tx);
            if conduct.refuses {
                trouble.conflict(conduct.rules.foreign, &why);
            } else {
                trouble.held(conduct.rules.foreign, why);
            }
        }
        self.lock(place, tx, strength);
    }

    /// The rows that refer to a key, as they are now.
    fn children(
        &mut self,
        tx: TxId,
        step: usize,
        (child, number): (usize, usize),
        key: &Value,
        trouble: &mut Trouble,
    ) -> Vec<Place> {
        let columns = self.foreign_columns(child);
        let Some((_, column)) = columns.into_iter().find(|(n, _)| *n == number) else {
            return Vec::new();
        };
        let refers = |v: &Version| {
            !v.dead && same_key(&[v.row[column].clone()], std::slice::from_ref(key), false)
        };
        let places = self.store.places(child);
        let indexes = self.conduct(tx).checks_indexes;
        // An index keeps what the transaction itself has deleted.
        let kept = |p: &Place| indexes && self.newest(*p, FIRST_ROWS).is_some_and(refers);
        let now = |p: Place| match indexes {
            true => self.in_index(p, tx),
            false => self.newest(p, tx),
        };
        let found: Vec<Place> = places.filter(|p| now(*p).is_some_and(refers) || kept(p)).collect();
        if self.conduct(tx).changed == Changed::Abort {
            let snapshot = self.kept_snapshot(tx, step);
            let fresh = |p: &&Place| {
                let seen = self.visible(**p, tx, snapshot).map(|v| v.id);
                seen != self.newest(**p, tx).map(|v| v.id)
            };
            if found.iter().any(|p| fresh(&p)) {
                let why = "a row that refers to it was changed after its snapshot";
                let rule = self.conduct(tx).rules.changed_row;
                trouble.must(ErrorClass::Serialization, rule, why);
            }
            // One that is gone since was in the way as long as that was open.
            let gone = |p: Place| {
                self.visible(p, tx, snapshot).is_some_and(refers)
                    && !self.newest(p, tx).is_some_and(refers)
            };
            if self.store.places(child).any(gone) {
                trouble.may(ErrorClass::Serialization, self.conduct(tx).rules.changed_row);
            }
        }
        found
    }

    /// Nobody refers to a key that is gone, unless another row has it now.
    fn nobody_refers(
        &mut self,
        tx: TxId,
        step: usize,
        (child, number): (usize, usize),
        key: &Value,
        trouble: &mut Trouble,
    ) {
        let table = &self.subject.reading.schema.tables[child];
        let Some((parent, column)) = self.parent_of(&table.foreign_keys[number]) else { return };
        let has = |v: &Version| {
            !v.dead && same_key(&[v.row[column].clone()], std::slice::from_ref(key), false)
        };
        let conduct = self.conduct(tx);
        let at_once = conduct.foreign_keys_by_row || conduct.checks_indexes;
        if !at_once && self.store.places(parent).any(|p| self.newest(p, tx).is_some_and(has)) {
            return;
        }
        if !self.children(tx, step, (child, number), key, trouble).is_empty() {
            let why = format!("rows of {} refer to what it takes away", table.name);
            trouble.must(ErrorClass::Constraint, self.conduct(tx).rules.foreign, why);
            self.use_rule(step, self.conduct(tx).rules.foreign);
        }
    }
}

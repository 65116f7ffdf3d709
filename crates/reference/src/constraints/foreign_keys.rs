//! Foreign keys: the parent row that a row requires, and the actions on child rows.

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::stop::Stop;
use crate::version_tables::Put;
use crate::world::{FIRST_ROWS, Place, Strength, TxId, Version, same_key};
use isolde_catalog::WriteConflictPolicy;
use isolde_model::Value;
use isolde_model::breach::{MissingParent, Obstacle, RowRole};
use isolde_model::history::ErrorClass;
use isolde_sql::{ForeignKey, OnDelete};
use std::collections::VecDeque;

/// The effect of a statement on one row.
pub struct Change {
    pub place: Place,
    pub old: Option<Version>,
    pub new: Option<Version>,
    /// Rows that the new one takes the place of: where REPLACE may update a row in
    /// place, a foreign key that stays as it is may not be checked again.
    pub replaced: Vec<Version>,
}

impl Change {
    pub fn new(place: Place, old: Option<Version>, new: Option<Version>) -> Change {
        Change { place, old, new, replaced: Vec::new() }
    }
}

/// The action of a foreign key on the children of a row that lost its key.
enum Action {
    Refuse,
    Delete,
    SetNull,
    Follow,
}

impl ReferenceModel<'_> {
    /// Performs the actions of foreign keys on the changes of a statement, and then
    /// the checks.
    pub async fn foreign_keys(
        &mut self,
        tx: TxId,
        step: usize,
        changes: Vec<Change>,
        errors: &mut ExpectedErrors,
    ) -> Result<(), Stop> {
        let mut queue: VecDeque<Change> = changes.into();
        let mut referring: Vec<(Place, usize, usize, Value)> = Vec::new();
        let mut lost_keys: Vec<((usize, usize), Value)> = Vec::new();
        while let Some(change) = queue.pop_front() {
            for (foreign, column) in self.foreign_columns(change.place.table) {
                let Some(new) = &change.new else { continue };
                let keeps = |old: &Version| old.row[column].same(&new.row[column]);
                // An update of a row that the transaction itself has written is
                // checked as if the row were new.
                let own = |old: &Version| {
                    self.world.concurrency(tx).constraints.rechecks_own_rows && old.by == tx
                };
                let unchanged = change.old.as_ref().is_some_and(|old| keeps(old) && !own(old));
                let replaces = change.replaced.iter().any(keeps);
                if !unchanged && !replaces {
                    let value = new.row[column].clone();
                    referring.push((change.place, foreign, column, value));
                }
            }
            let more = self.on_children(tx, step, &change, errors, &mut lost_keys).await?;
            queue.extend(more);
        }
        for (place, foreign, column, value) in referring {
            // Where checks come at the end of the statement, a row that does not exist
            // any more needs no parent.
            let now = self.world.newest(place, tx).filter(|v| !v.dead);
            let still = now.is_some_and(|v| v.row[column].same(&value));
            if !still && !self.world.concurrency(tx).checks_foreign_keys_by_row() {
                continue;
            }
            self.require_parent(tx, step, (place.table, foreign), &value, errors);
        }
        for (child, key) in lost_keys {
            self.check_no_references(tx, step, child, &key, errors);
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

    /// The foreign keys that refer to a table: the index and the name of the child
    /// table, its column, and the column that this refers to.
    pub fn references_to(&self, parent: usize) -> Vec<(usize, &str, usize, usize)> {
        let tables = self.subject.reading.schema.tables.iter().enumerate();
        let of_table = |(child, table): (usize, &'_ isolde_sql::Table)| {
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

    /// Requires the parent of a child row, and locks it.
    fn require_parent(
        &mut self,
        tx: TxId,
        step: usize,
        (child, key): (usize, usize),
        value: &Value,
        errors: &mut ExpectedErrors,
    ) {
        let rules = self.world.concurrency(tx).rules;
        let foreign = &self.subject.reading.schema.tables[child].foreign_keys[key];
        let Some((parent, key)) = self.parent_of(foreign) else { return };
        if *value == Value::Null {
            return;
        }
        let is_parent = |v: &Version| {
            !v.dead && same_key(&[v.row[key].clone()], std::slice::from_ref(value), false)
        };
        let places: Vec<Place> = self.world.places(parent).collect();
        let keeps_snapshot =
            self.world.concurrency(tx).conflicts.changed_row == WriteConflictPolicy::Abort;
        let snapshot = if keeps_snapshot { self.kept_snapshot(tx, step) } else { self.world.now() };
        let indexes = self.world.concurrency(tx).constraints.checked_in_indexes;
        let now = |p: Place| match indexes {
            true => self.world.in_index(p, tx),
            false => self.world.newest(p, tx),
        };
        let there = places.iter().copied().find(|p| now(*p).is_some_and(is_parent));
        let seen = |p: &Place| self.world.visible(*p, tx, snapshot).is_some_and(is_parent);
        match there {
            Some(place) => {
                if keeps_snapshot && !places.iter().any(seen) {
                    let parent = MissingParent::Invisible;
                    let obstacle = Obstacle::ParentMissing { table: None, parent };
                    errors.require(ErrorClass::Constraint, rules.foreign, obstacle);
                }
                if keeps_snapshot && self.lost_a_key(place, tx, snapshot) {
                    let obstacle =
                        Obstacle::RowChanged { by: None, table: None, role: RowRole::ParentKey };
                    errors.require(ErrorClass::Serialization, rules.changed_row, obstacle);
                }
                let waits = !self.world.concurrency(tx).conflicts.fails_instead_of_waiting
                    && !self.world.buffers(tx);
                let holder = self.world.holder(place, tx, Strength::KeyShare);
                if let Some(holder) = holder.filter(|_| waits) {
                    let (holder, role) = (self.world.session(holder).to_string(), RowRole::Parent);
                    let obstacle = Obstacle::RowLocked { holder, table: None, role };
                    errors.block(rules.foreign, obstacle);
                }
                self.world.lock(place, tx, Strength::KeyShare);
            }
            None => {
                let table = Some(foreign.parent.clone());
                let obstacle = Obstacle::ParentMissing { table, parent: MissingParent::Absent };
                errors.require(ErrorClass::Constraint, rules.foreign, obstacle);
                if keeps_snapshot && places.iter().any(seen) {
                    let role = RowRole::DeletedParent;
                    let obstacle = Obstacle::RowChanged { by: None, table: None, role };
                    errors.require(ErrorClass::Serialization, rules.changed_row, obstacle);
                }
            }
        }
        self.use_rule(step, rules.foreign);
    }

    /// Whether another transaction has committed a change to any key of a row since
    /// a snapshot. A reference to the row locks the version that the snapshot shows,
    /// which such a change has replaced, whichever key it was.
    fn lost_a_key(&self, place: Place, tx: TxId, snapshot: usize) -> bool {
        let versions = &self.world.chain(place).versions;
        let committed: Vec<&Version> =
            versions.iter().filter(|v| self.world.committed_before(v.by, usize::MAX)).collect();
        self.world.concurrency(tx).locking.key_share_locks
            && committed.windows(2).any(|two| {
                two[1].by != tx
                    && !self.world.committed_before(two[1].by, snapshot)
                    && self.strength(tx, place.table, two[0], two[1]) == Strength::Update
            })
    }

    /// Whether all parents of a new row exist.
    pub fn has_parents(&self, tx: TxId, table: usize, new: &Version) -> bool {
        let foreign_keys = &self.subject.reading.schema.tables[table].foreign_keys;
        self.foreign_columns(table).into_iter().all(|(key, column)| {
            let value = &new.row[column];
            let Some((parent, of)) = self.parent_of(&foreign_keys[key]) else { return true };
            let is_parent = |v: &Version| !v.dead && v.row[of].same(value);
            *value == Value::Null
                || self
                    .world
                    .places(parent)
                    .any(|p| self.world.newest(p, tx).is_some_and(is_parent))
        })
    }

    /// Performs the actions on the children of a row that is deleted or whose key
    /// changes. Returns the changes of the children; keys that no row may refer to any
    /// more are added to `lost_keys`.
    async fn on_children(
        &mut self,
        tx: TxId,
        step: usize,
        change: &Change,
        errors: &mut ExpectedErrors,
        lost_keys: &mut Vec<((usize, usize), Value)>,
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
                lost_keys.push(((child, number), lost));
                continue;
            }
            self.use_rule(step, self.world.concurrency(tx).rules.foreign);
            for place in self.children(tx, step, (child, number), &lost, errors) {
                let before = self.world.newest(place, tx).cloned();
                let Some(before) = before else { continue };
                let strength = match action {
                    Action::Delete => Strength::Update,
                    _ if !self.world.concurrency(tx).locking.key_share_locks => Strength::Update,
                    _ => Strength::NoKeyUpdate,
                };
                self.take_child(place, tx, strength, errors);
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
                    self.check_row(tx, child, new, errors);
                }
                let change = Change::new(place, Some(before), new);
                self.check_keys(tx, step, &change, errors);
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
        let version = self.world.version(fresh, tx);
        self.world.add_version(place, version.clone());
        Ok(Some(version))
    }

    fn take_child(
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
            let (holder, role) = (self.world.session(holder).to_string(), RowRole::Child);
            let obstacle = Obstacle::RowLocked { holder, table: None, role };
            let concurrency = self.world.concurrency(tx);
            if concurrency.conflicts.fails_instead_of_waiting {
                errors.conflict(concurrency.rules.foreign, obstacle);
            } else {
                errors.block(concurrency.rules.foreign, obstacle);
            }
        }
        self.world.lock(place, tx, strength);
    }

    /// The rows whose newest version refers to a key.
    fn children(
        &mut self,
        tx: TxId,
        step: usize,
        (child, number): (usize, usize),
        key: &Value,
        errors: &mut ExpectedErrors,
    ) -> Vec<Place> {
        let columns = self.foreign_columns(child);
        let Some((_, column)) = columns.into_iter().find(|(n, _)| *n == number) else {
            return Vec::new();
        };
        let refers = |v: &Version| {
            !v.dead && same_key(&[v.row[column].clone()], std::slice::from_ref(key), false)
        };
        let places = self.world.places(child);
        let indexes = self.world.concurrency(tx).constraints.checked_in_indexes;
        // An index keeps entries that the transaction itself has deleted.
        let kept = |p: &Place| indexes && self.world.newest(*p, FIRST_ROWS).is_some_and(refers);
        let now = |p: Place| match indexes {
            true => self.world.in_index(p, tx),
            false => self.world.newest(p, tx),
        };
        let found: Vec<Place> = places.filter(|p| now(*p).is_some_and(refers) || kept(p)).collect();
        // With one writer it is the whole database that may not have changed.
        let concurrency = self.world.concurrency(tx);
        if concurrency.conflicts.changed_row == WriteConflictPolicy::Abort
            && !concurrency.has_single_writer()
        {
            let snapshot = self.kept_snapshot(tx, step);
            let fresh = |p: &&Place| {
                let seen = self.world.visible(**p, tx, snapshot).map(|v| v.id);
                seen != self.world.newest(**p, tx).map(|v| v.id)
            };
            if found.iter().any(|p| fresh(&p)) {
                let obstacle = Obstacle::RowChanged { by: None, table: None, role: RowRole::Child };
                let rule = self.world.concurrency(tx).rules.changed_row;
                errors.require(ErrorClass::Serialization, rule, obstacle);
            }
            // A child that was deleted since the snapshot may have been a conflict while
            // the transaction that deleted it was open.
            let gone = |p: Place| {
                self.world.visible(p, tx, snapshot).is_some_and(refers)
                    && !self.world.newest(p, tx).is_some_and(refers)
            };
            if self.world.places(child).any(gone) {
                errors.permit(
                    ErrorClass::Serialization,
                    self.world.concurrency(tx).rules.changed_row,
                );
            }
        }
        found
    }

    /// Requires that no row refers to a key that was lost, unless another row has that
    /// key now.
    fn check_no_references(
        &mut self,
        tx: TxId,
        step: usize,
        (child, number): (usize, usize),
        key: &Value,
        errors: &mut ExpectedErrors,
    ) {
        let table = &self.subject.reading.schema.tables[child];
        let Some((parent, column)) = self.parent_of(&table.foreign_keys[number]) else { return };
        let has = |v: &Version| {
            !v.dead && same_key(&[v.row[column].clone()], std::slice::from_ref(key), false)
        };
        let concurrency = self.world.concurrency(tx);
        let at_once =
            concurrency.checks_foreign_keys_by_row() || concurrency.constraints.checked_in_indexes;
        if !at_once && self.world.places(parent).any(|p| self.world.newest(p, tx).is_some_and(has))
        {
            return;
        }
        if !self.children(tx, step, (child, number), key, errors).is_empty() {
            let obstacle = Obstacle::ChildExists { child: table.name.clone(), added: false };
            errors.require(
                ErrorClass::Constraint,
                self.world.concurrency(tx).rules.foreign,
                obstacle,
            );
            self.use_rule(step, self.world.concurrency(tx).rules.foreign);
        }
    }
}

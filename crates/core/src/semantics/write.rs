//! UPDATE, DELETE and INSERT: what they find, whom they meet, what they leave.

use super::Stop;
use super::conclude::{Expected, Trouble};
use super::constraints::Clash;
use super::foreign::Change;
use super::rules::{Changed, Locks};
use super::store::{Place, TxId, Version, VersionId};
use super::version_tables::{Fresh, Search, View, whole};
use super::walk::{Strength, Walk};
use crate::history::ErrorClass;
use crate::sql::{Conflict, Delete, Insert, Update};

/// A row that a statement found, against what has become of it since.
enum Target {
    Same,
    /// It is not there any more.
    Gone,
    Changed(VersionId),
}

impl Walk<'_> {
    /// What every write starts with: its view and what may be in its way.
    fn before_write(&mut self, tx: TxId, step: usize) -> (View, Trouble) {
        let rules = self.conduct(tx).rules;
        let snapshot = self.snapshot(tx, step);
        let view = self.view(tx, snapshot);
        let mut trouble = Trouble::default();
        if self.txs[tx].read_only {
            trouble.must(ErrorClass::ReadOnly, rules.write, "its transaction is read only");
        }
        self.needs_database(tx, step, &mut trouble);
        self.txs[tx].writer = true;
        self.use_rule(step, rules.write);
        (view, trouble)
    }

    fn target(&self, place: Place, found: VersionId, tx: TxId) -> Target {
        match self.newest(place, tx) {
            Some(v) if v.dead => Target::Gone,
            Some(v) if v.id == found => Target::Same,
            // With one writer, what another has left is what was there.
            Some(_) if self.conduct(tx).locks == Locks::Database => Target::Same,
            Some(v) => Target::Changed(v.id),
            None => Target::Gone,
        }
    }

    /// Whoever holds the row must have ended before the statement went on.
    fn take(&mut self, place: Place, tx: TxId, strength: Strength, trouble: &mut Trouble) {
        if let Some(holder) = self.holder(place, tx, strength) {
            let table = &self.subject.reading.schema.tables[place.table].name;
            let why = format!("{} holds a row of {table} that it needs", self.txs[holder].session);
            trouble.held(self.conduct(tx).rules.held_row, why);
        }
        self.lock(place, tx, strength);
    }

    pub async fn update(&mut self, tx: TxId, step: usize, update: &Update) -> Result<(), Stop> {
        let table = self.table(&update.table, step)?;
        let (view, mut trouble) = self.before_write(tx, step);
        let search = Search {
            table: &update.table,
            alias: update.alias.as_deref(),
            join: update.join.as_ref(),
            filter: update.filter.as_ref(),
        };
        let sql = self.tables.update(search, &update.sets, &view);
        let found = once_each(self.fresh(table, sql, Some(step)).await?);
        let mut changes = Vec::new();
        let before = self.store.clone();
        for fresh in found {
            let Some(place) = self.store.find(table, fresh.source) else { continue };
            let fresh = match self.target(place, fresh.source, tx) {
                Target::Same => fresh,
                Target::Gone => {
                    self.overtaken(tx, step, &mut trouble);
                    continue;
                }
                Target::Changed(newest) => {
                    if !self.overtaken(tx, step, &mut trouble) {
                        continue;
                    }
                    self.moved_apart(place, tx, &mut trouble);
                    if !self
                        .fits_again(step, (table, search), (fresh.source, newest), &view)
                        .await?
                    {
                        continue;
                    }
                    let narrow = Walk::narrowed(&view, table, vec![newest]);
                    let sql = self.tables.update(search.all(), &update.sets, &narrow);
                    let Some(again) = self.fresh(table, sql, Some(step)).await?.pop() else {
                        continue;
                    };
                    again
                }
            };
            changes.push((place, fresh));
        }
        let mut done = Vec::new();
        for (place, fresh) in changes {
            let new = self.version(fresh, tx);
            let Some(old) = self.newest(place, tx).cloned() else { continue };
            self.take(place, tx, self.strength(table, &old, &new), &mut trouble);
            self.holds_rules_of_row(tx, step, table, &new, &mut trouble);
            self.store.add_version(place, new.clone());
            done.push(Change { place, old: Some(old), new: Some(new) });
        }
        for change in &done {
            self.key_is_free(tx, step, change, &mut trouble);
        }
        let count = done.len() as u64;
        self.foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    pub async fn delete(&mut self, tx: TxId, step: usize, delete: &Delete) -> Result<(), Stop> {
        let table = self.table(&delete.table, step)?;
        let (view, mut trouble) = self.before_write(tx, step);
        let search = Search {
            table: &delete.table,
            alias: delete.alias.as_deref(),
            join: delete.join.as_ref(),
            filter: delete.filter.as_ref(),
        };
        let sql = self.tables.found(search, &view);
        let found = self.found(sql, step).await?;
        let before = self.store.clone();
        let mut done = Vec::new();
        for id in found {
            let Some(place) = self.store.find(table, id) else { continue };
            match self.target(place, id, tx) {
                Target::Same => {}
                Target::Gone => {
                    self.overtaken(tx, step, &mut trouble);
                    continue;
                }
                Target::Changed(newest) => {
                    if !self.overtaken(tx, step, &mut trouble) {
                        continue;
                    }
                    self.moved_apart(place, tx, &mut trouble);
                    if !self.fits_again(step, (table, search), (id, newest), &view).await? {
                        continue;
                    }
                }
            }
            let old = self.newest(place, tx).cloned();
            self.take(place, tx, Strength::Update, &mut trouble);
            self.store.delete(place, tx, self.statements);
            done.push(Change { place, old, new: None });
        }
        let count = done.len() as u64;
        self.foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    /// A target was changed after the snapshot; true when the statement looks
    /// at it again.
    fn overtaken(&mut self, tx: TxId, step: usize, trouble: &mut Trouble) -> bool {
        let conduct = self.conduct(tx);
        let (rules, changed) = (conduct.rules, conduct.changed);
        if changed == Changed::Abort {
            let why = "a row that it writes was changed after its snapshot";
            trouble.must(ErrorClass::Serialization, rules.changed_row, why);
            return false;
        }
        self.use_rule(step, rules.changed_row);
        true
    }

    /// A row that went to another partition cannot be followed there.
    fn moved_apart(&self, place: Place, tx: TxId, trouble: &mut Trouble) {
        if self.subject.reading.schema.tables[place.table].partitioned_by.is_some() {
            trouble.may(ErrorClass::Serialization, self.conduct(tx).rules.changed_row);
        }
    }

    /// The second test: the newest version of the row, with all else as it was
    /// joined at first.
    async fn fits_again(
        &mut self,
        step: usize,
        (table, search): (usize, Search<'_>),
        (found, newest): (VersionId, VersionId),
        view: &View,
    ) -> Result<bool, Stop> {
        let narrow = Walk::narrowed(view, table, vec![newest]);
        if search.join.is_none() {
            let sql = self.tables.found(search.alone(), &narrow);
            return Ok(!self.found(sql, step).await?.is_empty());
        }
        let first = Walk::narrowed(view, table, vec![found]);
        let sql = self.tables.found_pairs(search, &first);
        let pairs = self.evaluate(sql, Some(step)).await?;
        let sql = self.tables.found_pairs(search, &narrow);
        let still = self.evaluate(sql, Some(step)).await?;
        let partner = |row: &crate::value::Row| row.get(1).and_then(whole);
        let fits = pairs.iter().filter(|p| still.iter().any(|s| partner(s) == partner(p))).count();
        // Which of several partners it was joined with is nobody's promise.
        Ok(match fits {
            0 => false,
            n if n == pairs.len() => true,
            _ => self.choices.choose(2) == 0,
        })
    }

    pub async fn insert(&mut self, tx: TxId, step: usize, insert: &Insert) -> Result<(), Stop> {
        let table = self.table(&insert.table, step)?;
        let (view, mut trouble) = self.before_write(tx, step);
        let sql = self.tables.incoming(insert, &view);
        let incoming = self.fresh(table, sql, Some(step)).await?;
        let before = self.store.clone();
        let mut done = Vec::new();
        let mut count = 0;
        for fresh in incoming {
            let new = self.version(fresh, tx);
            if !self.insert_row(tx, step, (table, insert), new, &mut done, &mut trouble).await? {
                continue;
            }
            count += 1;
        }
        self.foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    /// One row of an INSERT; false when it is left out.
    async fn insert_row(
        &mut self,
        tx: TxId,
        step: usize,
        (table, insert): (usize, &Insert),
        new: Version,
        done: &mut Vec<Change>,
        trouble: &mut Trouble,
    ) -> Result<bool, Stop> {
        let rules = self.conduct(tx).rules;
        if insert.conflict == Conflict::Ignore && self.ignores_constraints() {
            let mut broken = Trouble::default();
            self.holds_rules_of_row(tx, step, table, &new, &mut broken);
            if broken.is_certain() {
                return Ok(false);
            }
        } else {
            self.holds_rules_of_row(tx, step, table, &new, trouble);
        }
        let clashes = self.clashes(tx, table, None, &new);
        for (_, clash) in &clashes {
            if let Clash::Held(by) = clash {
                let why = format!("{} is writing a row with its key", self.txs[*by].session);
                trouble.held(rules.unique, why);
            }
        }
        let taken: Vec<(usize, Place)> = clashes
            .into_iter()
            .filter_map(|(key, clash)| match clash {
                Clash::Taken(place) => Some((key, place)),
                Clash::Held(_) => None,
            })
            .collect();
        match &insert.conflict {
            _ if taken.is_empty() => {}
            Conflict::Fail => {
                trouble.must(ErrorClass::Constraint, rules.unique, "its key is taken");
                return Ok(false);
            }
            Conflict::Ignore | Conflict::DoNothing { .. } => {
                for (_, place) in taken {
                    self.sees_conflict(tx, step, place, trouble);
                }
                self.use_rule(step, rules.upsert);
                return Ok(false);
            }
            Conflict::Replace => {
                self.use_rule(step, rules.unique);
                let mut gone: Vec<Place> = taken.into_iter().map(|(_, place)| place).collect();
                gone.dedup();
                for place in gone {
                    let old = self.newest(place, tx).filter(|v| !v.dead).cloned();
                    if old.is_none() {
                        continue;
                    }
                    self.take(place, tx, Strength::Update, trouble);
                    self.store.delete(place, tx, self.statements);
                    done.push(Change { place, old, new: None });
                }
            }
            Conflict::Update { key, sets, .. } => {
                let arbiter = self.arbiter(table, key);
                let hit = taken.iter().find(|(k, _)| Some(*k) == arbiter);
                let Some((_, place)) = hit.copied() else {
                    trouble.must(ErrorClass::Constraint, rules.unique, "its key is taken");
                    return Ok(false);
                };
                self.use_rule(step, rules.upsert);
                self.sees_conflict(tx, step, place, trouble);
                let Some(old) = self.newest(place, tx).cloned() else { return Ok(false) };
                let sql = self.tables.upserted(&insert.table, sets, old.id, new.id);
                let Some(fresh) = self.fresh(table, sql, Some(step)).await?.pop() else {
                    return Ok(false);
                };
                let changed = self.version(fresh, tx);
                self.take(place, tx, self.strength(table, &old, &changed), trouble);
                self.holds_rules_of_row(tx, step, table, &changed, trouble);
                self.store.add_version(place, changed.clone());
                let change = Change { place, old: Some(old), new: Some(changed) };
                self.key_is_free(tx, step, &change, trouble);
                done.push(change);
                return Ok(true);
            }
        }
        let place = self.store.add_row(table, new.clone());
        self.lock(place, tx, Strength::Update);
        done.push(Change { place, old: None, new: Some(new) });
        Ok(true)
    }

    /// Who keeps a snapshot cannot act on a row that is not in it.
    fn sees_conflict(&mut self, tx: TxId, step: usize, place: Place, trouble: &mut Trouble) {
        if self.conduct(tx).changed != Changed::Abort {
            return;
        }
        let snapshot = self.snapshot(tx, step);
        let seen = self.visible(place, tx, snapshot).map(|v| v.id);
        if seen != self.newest(place, tx).map(|v| v.id) {
            let why = "the row that has its key was changed after its snapshot";
            trouble.must(ErrorClass::Serialization, self.conduct(tx).rules.upsert, why);
        }
    }
}

/// A row with several partners in a join is changed once.
fn once_each(found: Vec<Fresh>) -> Vec<Fresh> {
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

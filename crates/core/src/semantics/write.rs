//! UPDATE, DELETE and INSERT: what they find, whom they meet, what they leave.

use super::Stop;
use super::conclude::{Expected, Trouble};
use super::foreign::Change;
use super::rules::{Changed, Locks, Rule};
use super::store::{Place, Store, TxId, Version, VersionId};
use super::transaction::Strength;
use super::version_tables::{Fresh, Search, View, Views, whole};
use super::walk::Walk;
use super::write_view::{Assigned, Reads, reads_others};
use crate::history::ErrorClass;
use crate::sql::{Delete, Expr, Stmt, Update};

/// A row that a statement found, against what has become of it since.
enum Target {
    Same,
    /// It is not there any more.
    Gone,
    Changed(VersionId),
    /// An old version that fits cannot be acted upon: it would have waited
    /// and looked again.
    Passed,
}

impl Walk<'_> {
    fn target(&self, place: Place, found: VersionId, tx: TxId) -> Target {
        match self.newest(place, tx) {
            Some(v) if v.dead => Target::Gone,
            Some(v) if v.id == found => Target::Same,
            Some(_) if self.conduct(tx).changed == Changed::Current => Target::Passed,
            // With one writer, what another has left is what was there.
            Some(_) if self.conduct(tx).locks == Locks::Database => Target::Same,
            Some(v) => Target::Changed(v.id),
            None => Target::Gone,
        }
    }

    /// Whoever holds the row must have ended before the statement went on.
    pub fn take(&mut self, place: Place, tx: TxId, strength: Strength, trouble: &mut Trouble) {
        if self.buffers(tx) {
            return;
        }
        if let Some(holder) = self.holder(place, tx, strength) {
            let table = &self.subject.reading.schema.tables[place.table].name;
            let why = format!("{} holds a row of {table} that it needs", self.txs[holder].session);
            let rule = self.conduct(tx).rules.held_row;
            if self.conduct(tx).refuses {
                trouble.conflict(rule, &why);
            } else {
                trouble.held(rule, why);
            }
        }
        self.not_in_snapshot(place, tx, trouble);
        self.lock(place, tx, strength);
    }

    pub async fn update(&mut self, tx: TxId, step: usize, update: &Update) -> Result<(), Stop> {
        let table = self.table(&update.table, step)?;
        let search = Search {
            table: &update.table,
            alias: update.alias.as_deref(),
            join: update.join.as_ref(),
            filter: update.filter.as_ref(),
        };
        let how = Reads {
            table: &update.table,
            update: true,
            may_read_consistently: update.join.is_none(),
            search: Some(search),
            reads_others: reads_others(&Stmt::Update(update.clone())),
        };
        let (view, mut trouble) = self.before_write(tx, step, how).await?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let assigned = if update.join.is_some() { Assigned::Join } else { Assigned::Update };
        let sets = self.sets_in_order(&update.sets, (tx, step), assigned)?;
        let sql = self.tables.update(search, &sets, Views { outer: &view, inner: &inner });
        let found = once_each(self.fresh(table, sql, Some(step)).await?);
        let before = self.store.clone();
        if self.merges(tx) {
            let (done, unchanged) = self.write_rows((tx, step), table, &sets, found, &mut trouble);
            return self.written(tx, step, (done, unchanged), trouble, before).await;
        }
        let mut changes = Vec::new();
        let only_target = found.len() == 1;
        let alone = self.conduct(tx).alone_is_optimistic && self.txs[tx].autocommit;
        for fresh in found {
            let Some(place) = self.store.find(table, fresh.source) else { continue };
            let fresh = match self.target(place, fresh.source, tx) {
                Target::Same => fresh,
                // What it leaves as it found it is nothing that it acts on.
                Target::Passed if alone && self.is_as_found(place, &fresh) => continue,
                Target::Passed => return Err(self.passed(tx, step)),
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
                        // It was locked for the second test, and stays so.
                        self.lock(place, tx, Strength::NoKeyUpdate);
                        self.use_rule(step, self.conduct(tx).rules.changed_row);
                        continue;
                    }
                    let narrow = Walk::narrowed(&view, table, vec![newest]);
                    let sql = self.tables.update(
                        search.all(),
                        &sets,
                        Views { outer: &narrow, inner: &inner },
                    );
                    let Some(again) = self.fresh(table, sql, Some(step)).await?.pop() else {
                        continue;
                    };
                    // That it goes on with the newest version is all there is to say of a
                    // statement with one target.
                    if only_target || again.row != fresh.row {
                        self.use_rule(step, self.conduct(tx).rules.changed_row);
                    }
                    again
                }
            };
            changes.push((place, fresh));
        }
        let mut done = Vec::new();
        let mut unchanged = 0;
        let mut writes_equal: Option<bool> = None;
        for (place, fresh) in changes {
            let new = self.version(fresh, tx);
            let Some(old) = self.newest(place, tx).cloned() else { continue };
            if alone && old.row == new.row {
                continue;
            }
            if self.conduct(tx).equal_is_nothing && old.row == new.row {
                unchanged += 1;
                continue;
            }
            self.take(place, tx, self.strength(tx, table, &old, &new), &mut trouble);
            if self.conduct(tx).counts_changed_rows && old.row == new.row {
                // It does not count, and as a rule it is not written either.
                if let Some(rule) = self.may_write_equal(tx, place, update)
                    && *writes_equal.get_or_insert_with(|| self.choices.choose(2) == 1)
                {
                    self.use_rule(step, rule);
                    self.store.add_version(place, new);
                }
                continue;
            }
            self.holds_rules_of_row(tx, table, &new, &mut trouble);
            self.store.add_version(place, new.clone());
            self.takes_the_place(tx, place, &new);
            done.push(Change { place, old: Some(old), new: Some(new) });
        }
        self.written(tx, step, (done, unchanged), trouble, before).await
    }

    /// The rule by which a row that stays as it was may be written, where
    /// that shows: its newest version is not in the view.
    fn may_write_equal(&self, tx: TxId, place: Place, update: &Update) -> Option<&'static Rule> {
        let rule = self.conduct(tx).writes_equal?;
        let (snapshot, newest) = (self.snapshot_of(tx)?, self.newest(place, tx)?);
        let unseen = newest.by != tx && !self.committed_before(newest.by, snapshot);
        let mut read: Vec<&str> = Vec::new();
        update.visit(&mut |e| {
            if let Expr::Column { name, .. } = e {
                read.push(name);
            }
        });
        let reads_all = update.sets.iter().all(|(column, _)| read.contains(&column.as_str()));
        (unseen && !reads_all).then_some(rule)
    }

    /// What an UPDATE did to its rows: their keys, and what it comes to.
    async fn written(
        &mut self,
        tx: TxId,
        step: usize,
        (done, unchanged): (Vec<Change>, u64),
        mut trouble: Trouble,
        before: Store,
    ) -> Result<(), Stop> {
        for change in &done {
            self.key_is_free(tx, step, change, &mut trouble);
        }
        let count = done.iter().filter(|c| c.new.is_some()).count() as u64 + unchanged;
        self.all_foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    pub async fn delete(&mut self, tx: TxId, step: usize, delete: &Delete) -> Result<(), Stop> {
        let table = self.table(&delete.table, step)?;
        let search = Search {
            table: &delete.table,
            alias: delete.alias.as_deref(),
            join: delete.join.as_ref(),
            filter: delete.filter.as_ref(),
        };
        let how = Reads {
            table: &delete.table,
            update: false,
            may_read_consistently: false,
            search: Some(search),
            reads_others: false,
        };
        let (view, mut trouble) = self.before_write(tx, step, how).await?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let sql = self.tables.found(search, Views { outer: &view, inner: &inner });
        let miscounts = self.conduct(tx).miscounts;
        let partners = match miscounts && delete.join.is_some() {
            true => Some(self.evaluate(sql.clone(), Some(step)).await?.len() as u64),
            false => None,
        };
        let keyless = !self.keys[table].iter().any(|key| key.primary);
        let counts_kinds = miscounts && keyless && delete.join.is_none() && delete.filter.is_none();
        let found = self.found(sql, step).await?;
        let before = self.store.clone();
        let mut done = Vec::new();
        for id in found {
            let Some(place) = self.store.find(table, id) else { continue };
            match self.target(place, id, tx) {
                Target::Same => {}
                Target::Passed => return Err(self.passed(tx, step)),
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
                        self.lock(place, tx, Strength::Update);
                        self.use_rule(step, self.conduct(tx).rules.changed_row);
                        continue;
                    }
                }
            }
            let Some(old) = self.newest(place, tx).cloned() else { continue };
            if self.merges(tx) {
                done.push(self.delete_row((tx, step), place, old, &mut trouble));
                continue;
            }
            self.take(place, tx, Strength::Update, &mut trouble);
            self.remove_row(tx, place, old.clone());
            done.push(Change { place, old: Some(old), new: None });
        }
        let deleted = || done.iter().filter_map(|change| change.old.as_ref());
        let kinds = || {
            let twice = |(n, v): &(usize, &Version)| deleted().take(*n).any(|o| o.row == v.row);
            deleted().enumerate().filter(|v| !twice(v)).count()
        };
        let all = if counts_kinds { kinds() } else { done.len() };
        let count = partners.unwrap_or(all as u64);
        self.all_foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    /// The foreign keys of all that a statement did: when it ends, or row by
    /// row, so that what a later row mends has failed before.
    pub async fn all_foreign_keys(
        &mut self,
        tx: TxId,
        step: usize,
        done: Vec<Change>,
        trouble: &mut Trouble,
    ) -> Result<(), Stop> {
        if self.conduct(tx).foreign_keys_by_row {
            for change in done {
                self.foreign_keys(tx, step, vec![change], trouble).await?;
            }
            return Ok(());
        }
        self.foreign_keys(tx, step, done, trouble).await
    }

    /// A target was changed after the snapshot; true when the statement looks
    /// at it again. Whether that explains anything depends on what it finds.
    fn overtaken(&mut self, tx: TxId, step: usize, trouble: &mut Trouble) -> bool {
        let conduct = self.conduct(tx);
        let (rules, changed) = (conduct.rules, conduct.changed);
        if changed == Changed::Abort {
            let why = "a row that it writes was changed after its snapshot";
            trouble.conflict(rules.changed_row, why);
            return false;
        }
        if changed != Changed::Recheck {
            self.use_rule(step, rules.changed_row);
        }
        true
    }

    /// Whether a statement leaves a row as it found it.
    fn is_as_found(&self, place: Place, fresh: &Fresh) -> bool {
        let mut versions = self.store.chain(place).versions.iter();
        versions.any(|v| v.id == fresh.source && !v.dead && *v.row == fresh.row)
    }

    fn passed(&self, tx: TxId, step: usize) -> Stop {
        let why = "it acts on a version that was not the newest".into();
        Stop::Outside { step: Some(step), rule: self.conduct(tx).rules.changed_row, why }
    }

    /// A row that went to another partition cannot be followed there.
    pub fn moved_apart(&self, place: Place, tx: TxId, trouble: &mut Trouble) {
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
            let sql = self.tables.found(search.alone(), Views { outer: &narrow, inner: view });
            return Ok(!self.found(sql, step).await?.is_empty());
        }
        let first = Walk::narrowed(view, table, vec![found]);
        let sql = self.tables.found_pairs(search, Views { outer: &first, inner: view });
        let pairs = self.evaluate(sql, Some(step)).await?;
        let sql = self.tables.found_pairs(search, Views { outer: &narrow, inner: view });
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

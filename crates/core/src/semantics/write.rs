//! UPDATE, DELETE and INSERT: what they find, whom they meet, what they leave.

use super::Stop;
use super::conclude::{Expected, Trouble};
use super::constraints::Clash;
use super::current::Scan;
use super::foreign::Change;
use super::rules::{Changed, Locks, SnapshotAt};
use super::store::{Place, TxId, Version, VersionId};
use super::version_tables::{Fresh, Search, View, Views, whole};
use super::walk::{Strength, Walk};
use crate::history::ErrorClass;
use crate::sql::dialect::Family;
use crate::sql::{Conflict, Delete, Expr, Insert, InsertSource, Stmt, Update};

/// How a write reads.
struct Reads<'s> {
    table: &'s str,
    update: bool,
    /// Where the level has it, what it selects takes no locks.
    may_read_consistently: bool,
    /// Its own table is not searched.
    source_only: bool,
    reads_others: bool,
}

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
    /// What every write starts with: its view and what may be in its way.
    fn before_write(
        &mut self,
        tx: TxId,
        step: usize,
        how: Reads<'_>,
    ) -> Result<(View, Trouble), Stop> {
        let rules = self.conduct(tx).rules;
        let view = self.view_of_write(tx, step, how)?;
        let mut trouble = Trouble::default();
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
        if conduct.waits_may_abort {
            trouble.may(ErrorClass::WriteConflict, &super::rules::innodb::M2);
        }
    }

    /// What the queries inside of a write see.
    fn inner_of_write(&mut self, tx: TxId, step: usize, view: &View) -> Result<View, Stop> {
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
    fn view_of_write(&mut self, tx: TxId, step: usize, how: Reads<'_>) -> Result<View, Stop> {
        let conduct = self.conduct(tx);
        if conduct.changed != Changed::Current {
            let snapshot = self.kept_snapshot(tx, step);
            return Ok(self.view(tx, snapshot));
        }
        let semi = conduct.semi_consistent && how.update;
        let consistent = conduct.consistent_reads_in_writes && how.may_read_consistently;
        let table = self.table(how.table, step)?;
        let mut current = Vec::new();
        if !consistent {
            current.extend(0..self.store.tables.len());
        } else if !how.source_only {
            current.push(table);
        }
        if consistent && how.reads_others {
            self.use_rule(step, &super::rules::innodb::I9);
        }
        let scan = if semi { Scan::SemiConsistent } else { Scan::Waits };
        self.current_view(tx, step, &current, scan)
    }

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
    fn take(&mut self, place: Place, tx: TxId, strength: Strength, trouble: &mut Trouble) {
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
            let why = "a row that it locks was changed after its view";
            trouble.must(ErrorClass::WriteConflict, conduct.rules.changed_row, why);
        }
    }

    /// Where rows live by their primary key, a new row takes the record of a
    /// deleted one: whoever wrote it does not see the old row any more, though
    /// it was deleted after the view was made.
    fn takes_the_place(&mut self, tx: TxId, place: Place, new: &Version) {
        let primary = self.keys[place.table].iter().position(|k| k.primary);
        let Some(primary) = primary.filter(|_| self.counts_changes()) else { return };
        let key = self.key_of(place.table, primary, new);
        let others: Vec<Place> = self.store.places(place.table).filter(|p| *p != place).collect();
        for other in others {
            let last = self.store.chain(other).versions.last();
            let same =
                |v: &Version| v.dead && v.by != tx && self.key_of(place.table, primary, v) == key;
            if last.is_some_and(same) {
                self.store.delete(other, tx, self.statements, self.now);
            }
        }
    }

    /// The engine counts rows that changed, not rows that were found.
    pub fn counts_changes(&self) -> bool {
        self.subject.reading.dialect.family == Family::Mysql
    }

    /// What is set, as expressions over the old row: where the engine assigns
    /// from left to right, later ones see what earlier ones set.
    fn sets_in_order(
        &self,
        sets: &[(String, Expr)],
        step: usize,
        joined: bool,
    ) -> Result<Vec<(String, Expr)>, Stop> {
        if self.subject.reading.dialect.family != Family::Mysql {
            return Ok(sets.to_vec());
        }
        let mut done: Vec<(String, Expr)> = Vec::new();
        for (column, value) in sets {
            let mut value = value.clone();
            let replaced = replace_columns(&mut value, &done);
            if replaced && joined {
                let why = "the order of assignments in a join is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            done.push((column.clone(), value));
        }
        Ok(done)
    }

    pub async fn update(&mut self, tx: TxId, step: usize, update: &Update) -> Result<(), Stop> {
        let table = self.table(&update.table, step)?;
        let how = Reads {
            table: &update.table,
            update: true,
            may_read_consistently: update.join.is_none(),
            source_only: false,
            reads_others: reads_others(&Stmt::Update(update.clone())),
        };
        let (view, mut trouble) = self.before_write(tx, step, how)?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let sets = self.sets_in_order(&update.sets, step, update.join.is_some())?;
        let search = Search {
            table: &update.table,
            alias: update.alias.as_deref(),
            join: update.join.as_ref(),
            filter: update.filter.as_ref(),
        };
        let sql = self.tables.update(search, &sets, Views { outer: &view, inner: &inner });
        let found = once_each(self.fresh(table, sql, Some(step)).await?);
        let mut changes = Vec::new();
        let before = self.store.clone();
        for fresh in found {
            let Some(place) = self.store.find(table, fresh.source) else { continue };
            let fresh = match self.target(place, fresh.source, tx) {
                Target::Same => fresh,
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
                    again
                }
            };
            changes.push((place, fresh));
        }
        let mut done = Vec::new();
        let mut unchanged = 0;
        for (place, fresh) in changes {
            let new = self.version(fresh, tx);
            let Some(old) = self.newest(place, tx).cloned() else { continue };
            let alone = self.conduct(tx).alone_is_optimistic && self.txs[tx].autocommit;
            if alone && old.row == new.row {
                continue;
            }
            if self.conduct(tx).equal_is_nothing && old.row == new.row {
                unchanged += 1;
                continue;
            }
            self.take(place, tx, self.strength(tx, table, &old, &new), &mut trouble);
            if self.counts_changes() && old.row == new.row {
                // Nothing is written, and the own view keeps what it showed.
                continue;
            }
            self.holds_rules_of_row(tx, step, table, &new, &mut trouble);
            self.store.add_version(place, new.clone());
            self.takes_the_place(tx, place, &new);
            done.push(Change { place, old: Some(old), new: Some(new) });
        }
        for change in &done {
            self.key_is_free(tx, step, change, &mut trouble);
        }
        let count = done.len() as u64 + unchanged;
        self.all_foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    pub async fn delete(&mut self, tx: TxId, step: usize, delete: &Delete) -> Result<(), Stop> {
        let table = self.table(&delete.table, step)?;
        let how = Reads {
            table: &delete.table,
            update: false,
            may_read_consistently: false,
            source_only: false,
            reads_others: false,
        };
        let (view, mut trouble) = self.before_write(tx, step, how)?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let search = Search {
            table: &delete.table,
            alias: delete.alias.as_deref(),
            join: delete.join.as_ref(),
            filter: delete.filter.as_ref(),
        };
        let sql = self.tables.found(search, Views { outer: &view, inner: &inner });
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
                        continue;
                    }
                }
            }
            let old = self.newest(place, tx).cloned();
            self.take(place, tx, Strength::Update, &mut trouble);
            self.store.delete(place, tx, self.statements, self.now);
            done.push(Change { place, old, new: None });
        }
        let count = done.len() as u64;
        self.all_foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    /// A target was changed after the snapshot; true when the statement looks
    /// at it again.
    fn overtaken(&mut self, tx: TxId, step: usize, trouble: &mut Trouble) -> bool {
        let conduct = self.conduct(tx);
        let (rules, changed) = (conduct.rules, conduct.changed);
        if changed == Changed::Abort {
            let why = "a row that it writes was changed after its snapshot";
            trouble.conflict(rules.changed_row, why);
            return false;
        }
        self.use_rule(step, rules.changed_row);
        true
    }

    fn passed(&self, tx: TxId, step: usize) -> Stop {
        let why = "it acts on a version that was not the newest".into();
        Stop::Outside { step: Some(step), rule: self.conduct(tx).rules.changed_row, why }
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

    pub async fn insert(&mut self, tx: TxId, step: usize, insert: &Insert) -> Result<(), Stop> {
        let table = self.table(&insert.table, step)?;
        let how = Reads {
            table: &insert.table,
            update: false,
            may_read_consistently: matches!(insert.source, InsertSource::Select(_)),
            source_only: true,
            reads_others: matches!(insert.source, InsertSource::Select(_)),
        };
        let (view, mut trouble) = self.before_write(tx, step, how)?;
        let inner = self.inner_of_write(tx, step, &view)?;
        let sql = self.tables.incoming(insert, &inner);
        let incoming = self.fresh(table, sql, Some(step)).await?;
        let before = self.store.clone();
        let mut done = Vec::new();
        let mut count = 0;
        for fresh in incoming {
            let new = self.version(fresh, tx);
            let row = (table, insert);
            count += self.insert_row(tx, step, row, new, &mut done, &mut trouble).await?;
        }
        self.all_foreign_keys(tx, step, done, &mut trouble).await?;
        self.conclude(tx, step, Expected::Count(count), trouble, Some(before))
    }

    /// The foreign keys of all that a statement did: when it ends, or row by
    /// row, so that what a later row mends has failed before.
    async fn all_foreign_keys(
        &mut self,
        tx: TxId,
        step: usize,
        done: Vec<Change>,
        trouble: &mut Trouble,
    ) -> Result<(), Stop> {
        if self.counts_changes() {
            for change in done {
                self.foreign_keys(tx, step, vec![change], trouble).await?;
            }
            return Ok(());
        }
        self.foreign_keys(tx, step, done, trouble).await
    }

    /// One row of an INSERT; how many rows it counts for.
    async fn insert_row(
        &mut self,
        tx: TxId,
        step: usize,
        (table, insert): (usize, &Insert),
        new: Version,
        done: &mut Vec<Change>,
        trouble: &mut Trouble,
    ) -> Result<u64, Stop> {
        let rules = self.conduct(tx).rules;
        if insert.conflict == Conflict::Ignore && self.ignores_constraints() {
            if self.counts_changes() && self.has_forbidden_null(table, &new) {
                let why = "what IGNORE puts in the place of a NULL is not modelled";
                return Err(Stop::not_modelled(step, why));
            }
            let mut broken = Trouble::default();
            self.holds_rules_of_row(tx, step, table, &new, &mut broken);
            let orphan = self.counts_changes() && !self.has_parents(tx, table, &new);
            if broken.is_certain() || orphan {
                return Ok(0);
            }
        } else {
            self.holds_rules_of_row(tx, step, table, &new, trouble);
        }
        let clashes = self.seen_clashes(tx, step, table, None, &new);
        // The first key that is taken decides, unless its row goes.
        let decided = matches!(insert.conflict, Conflict::Ignore | Conflict::Update { .. })
            && clashes.iter().any(|(_, c)| matches!(c, Clash::Taken(_)));
        for (_, clash) in clashes.iter().filter(|_| !decided) {
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
        if self.counts_changes() && !taken.is_empty() && !self.has_parents(tx, table, &new) {
            // The index of the foreign key may come before that of the key.
            trouble.may(ErrorClass::Constraint, rules.foreign);
        }
        let mut replaced = 0;
        match &insert.conflict {
            _ if taken.is_empty() => {}
            Conflict::Fail => {
                trouble.must(ErrorClass::Constraint, rules.unique, "its key is taken");
                return Ok(0);
            }
            Conflict::Ignore | Conflict::DoNothing { .. } => {
                for (_, place) in taken {
                    self.sees_conflict(tx, step, place, trouble);
                }
                self.use_rule(step, rules.upsert);
                return Ok(0);
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
                    if self.counts_changes() {
                        // A row that is replaced by its equal may stay as it is.
                        let same = old.as_ref().is_some_and(|old| old.row == new.row);
                        replaced += if same { self.choices.choose(2) as u64 } else { 1 };
                    }
                    self.take(place, tx, Strength::Update, trouble);
                    self.store.delete(place, tx, self.statements, self.now);
                    done.push(Change { place, old, new: None });
                }
            }
            Conflict::Update { key, sets, .. } => {
                let any_key = self.counts_changes();
                let arbiter = self.arbiter(table, key);
                let hit = if any_key {
                    taken.get(self.choices.choose(taken.len()))
                } else {
                    taken.iter().find(|(k, _)| Some(*k) == arbiter)
                };
                let Some((_, place)) = hit.copied() else {
                    trouble.must(ErrorClass::Constraint, rules.unique, "its key is taken");
                    return Ok(0);
                };
                self.use_rule(step, rules.upsert);
                self.sees_conflict(tx, step, place, trouble);
                let Some(old) = self.newest(place, tx).cloned() else { return Ok(0) };
                let sets = self.sets_in_order(sets, step, false)?;
                let sql = self.tables.upserted(&insert.table, &sets, old.id, new.id);
                let Some(fresh) = self.fresh(table, sql, Some(step)).await?.pop() else {
                    return Ok(0);
                };
                let changed = self.version(fresh, tx);
                self.take(place, tx, self.strength(tx, table, &old, &changed), trouble);
                if self.counts_changes() && old.row == changed.row {
                    // Whether a row that stays as it is counts has been seen both ways.
                    return Ok(self.choices.choose(2) as u64);
                }
                self.holds_rules_of_row(tx, step, table, &changed, trouble);
                self.store.add_version(place, changed.clone());
                let change = Change { place, old: Some(old), new: Some(changed) };
                self.key_is_free(tx, step, &change, trouble);
                done.push(change);
                return Ok(if self.counts_changes() { 2 } else { 1 });
            }
        }
        let place = self.store.add_row(table, new.clone());
        self.lock(place, tx, Strength::Update);
        self.takes_the_place(tx, place, &new);
        done.push(Change { place, old: None, new: Some(new) });
        Ok(1 + replaced)
    }

    /// Who keeps a snapshot cannot act on a row that is not in it.
    fn sees_conflict(&mut self, tx: TxId, step: usize, place: Place, trouble: &mut Trouble) {
        if self.conduct(tx).changed != Changed::Abort {
            return;
        }
        let snapshot = self.kept_snapshot(tx, step);
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

/// Whether a write has a query in it.
fn reads_others(statement: &Stmt) -> bool {
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

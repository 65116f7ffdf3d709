//! NOT NULL, CHECK and unique keys.

use super::conclude::Trouble;
use super::foreign::Change;
use super::store::{Place, TxId, Version, same_key};
use super::transaction::{FIRST_ROWS, Strength};
use super::walk::Walk;
use crate::Value;
use crate::history::ErrorClass;
use crate::sql::dialect::Family;

/// A key that another row has, or may have.
pub enum Clash {
    Taken(Place),
    /// Whether it is taken is up to a transaction that is still open.
    Held(TxId),
    /// The index has it, of a row that the snapshot does not show.
    Unseen,
    /// The snapshot shows a row that has it, but the row is gone since.
    Gone(Place),
}

impl Walk<'_> {
    /// IGNORE leaves out what breaks NOT NULL or CHECK, too.
    pub fn ignores_constraints(&self) -> bool {
        matches!(self.subject.reading.dialect.family, Family::Sqlite | Family::Mysql)
    }

    pub fn folds_case(&self, tx: TxId) -> bool {
        self.conduct(tx).folds_case
    }

    /// NOT NULL and CHECK.
    pub fn holds_rules_of_row(
        &mut self,
        tx: TxId,
        table: usize,
        new: &Version,
        trouble: &mut Trouble,
    ) {
        let of = &self.subject.reading.schema.tables[table];
        let rule = self.conduct(tx).rules.constraint;
        for (column, value) in of.columns.iter().zip(new.row.iter()) {
            if column.not_null && *value == Value::Null {
                let why = format!("{} must not be null", column.name);
                trouble.must(ErrorClass::Constraint, rule, why);
            }
        }
        let broken = new.conditions.iter().take(of.checks.len()).any(|c| *c == Some(false));
        if broken {
            trouble.must(ErrorClass::Constraint, rule, "a CHECK does not hold");
        }
    }

    /// The cells of a key; none when the row takes no part in it.
    pub fn key_of(&self, table: usize, key: usize, version: &Version) -> Option<Vec<Value>> {
        let key = &self.keys[table][key];
        if key.condition.is_some_and(|c| version.conditions.get(c) != Some(&Some(true))) {
            return None;
        }
        let cells: Vec<Value> = key.columns.iter().map(|c| version.row[*c].clone()).collect();
        (!cells.contains(&Value::Null)).then_some(cells)
    }

    /// The key that an upsert names.
    pub fn arbiter(&self, table: usize, columns: &[String]) -> Option<usize> {
        let of = &self.subject.reading.schema.tables[table];
        let names = |places: &[usize]| -> Vec<&String> {
            let mut names: Vec<&String> = places.iter().map(|p| &of.columns[*p].name).collect();
            names.sort();
            names
        };
        let mut wanted: Vec<&String> = columns.iter().collect();
        wanted.sort();
        let fits = |key: &super::version_tables::Key| {
            key.condition.is_none() && names(&key.columns) == wanted
        };
        self.keys[table].iter().position(fits)
    }

    /// The keys of a new version that others have.
    pub fn clashes(
        &self,
        tx: TxId,
        table: usize,
        own: Option<Place>,
        new: &Version,
    ) -> Vec<(usize, Clash)> {
        let mut found = Vec::new();
        for key in 0..self.keys[table].len() {
            let Some(cells) = self.key_of(table, key, new) else { continue };
            let has = |version: &Version| {
                let theirs = self.key_of(table, key, version);
                theirs.is_some_and(|theirs| same_key(&cells, &theirs, self.folds_case(tx)))
            };
            for place in self.store.places(table).filter(|p| Some(*p) != own) {
                let chain = self.store.chain(place);
                if self.newest(place, tx).is_some_and(|v| !v.dead && has(v)) {
                    found.push((key, Clash::Taken(place)));
                }
                let foreign =
                    |v: &&Version| v.by != tx && self.is_open(v.by) && !self.buffers(v.by);
                if self.buffers(tx) {
                    continue;
                }
                let Some(open) = chain.versions.iter().rev().find(foreign) else { continue };
                // They add the key, or they take it away.
                let adds = !open.dead && has(open);
                let kept = self.newest(place, tx).is_some_and(|v| !v.dead && has(v));
                if adds || kept {
                    found
                        .retain(|(k, c)| *k != key || !matches!(c, Clash::Taken(p) if *p == place));
                    // A row whose key stays as it is has it for certain; one that was
                    // deleted to be added again is waited for.
                    let again = chain.versions.iter().any(|v| v.by == open.by && v.dead);
                    if adds && kept && !again {
                        found.push((key, Clash::Taken(place)));
                    } else {
                        found.push((key, Clash::Held(open.by)));
                    }
                }
            }
        }
        found
    }

    /// The same as far as the transaction knows: where nobody waits, what its
    /// snapshot does not show is found at the COMMIT, or not.
    pub fn seen_clashes(
        &mut self,
        tx: TxId,
        step: usize,
        table: usize,
        own: Option<Place>,
        new: &Version,
    ) -> Vec<(usize, Clash)> {
        if !self.conduct(tx).refuses && !self.merges(tx) {
            return self.clashes(tx, table, own, new);
        }
        let snapshot = self.kept_snapshot(tx, step);
        let mut found = Vec::new();
        for key in 0..self.keys[table].len() {
            let Some(cells) = self.key_of(table, key, new) else { continue };
            for place in self.store.places(table).filter(|p| Some(*p) != own) {
                let has = |v: &Version| {
                    let theirs = self.key_of(table, key, v);
                    theirs.is_some_and(|theirs| same_key(&cells, &theirs, self.folds_case(tx)))
                };
                let seen = self.visible(place, tx, snapshot).is_some_and(has);
                let index = self.conduct(tx).checks_indexes.then(|| self.in_index(place, tx));
                match (seen, index) {
                    (true, None | Some(Some(_))) => found.push((key, Clash::Taken(place))),
                    (true, Some(None)) => found.push((key, Clash::Gone(place))),
                    (false, Some(Some(v))) if has(v) => found.push((key, Clash::Unseen)),
                    (false, _) => {}
                }
            }
        }
        found
    }

    /// What an index has of a row: what the transaction wrote, or what is
    /// committed now.
    pub fn in_index(&self, place: Place, tx: TxId) -> Option<&Version> {
        let own = self.store.chain(place).last_of(|by| by == tx);
        let committed = self.newest(place, FIRST_ROWS);
        let gone = committed.is_some_and(|v| v.dead);
        own.or(committed).filter(|v| !v.dead && !gone)
    }

    /// The keys of a changed row, against all others.
    pub fn key_is_free(&mut self, tx: TxId, step: usize, change: &Change, trouble: &mut Trouble) {
        let Some(new) = &change.new else { return };
        let rules = self.conduct(tx).rules;
        let table = change.place.table;
        for (key, clash) in self.seen_clashes(tx, step, table, Some(change.place), new) {
            let before = change.old.as_ref().and_then(|old| self.key_of(table, key, old));
            if before == self.key_of(table, key, new) {
                continue;
            }
            match clash {
                Clash::Gone(_) => {}
                Clash::Taken(_) | Clash::Unseen => {
                    trouble.must(ErrorClass::Constraint, rules.unique, "its new key is taken");
                }
                Clash::Held(by) => {
                    let why = format!("{} is writing a row with its key", self.txs[by].session);
                    trouble.held(rules.unique, why);
                    if self.conduct(tx).looks_once {
                        // It looks at what is committed before it locks.
                        trouble.may(ErrorClass::Constraint, rules.unique);
                    }
                }
            }
        }
    }

    /// A row whose key changes is held more strongly.
    pub fn strength(&self, tx: TxId, table: usize, old: &Version, new: &Version) -> Strength {
        if !self.conduct(tx).key_locks {
            return Strength::Update;
        }
        let plain = |k: &usize| self.keys[table][*k].condition.is_none();
        let differs = |k: usize| {
            let columns = &self.keys[table][k].columns;
            columns.iter().any(|c| !old.row[*c].same(&new.row[*c]))
        };
        if (0..self.keys[table].len()).filter(plain).any(differs) {
            Strength::Update
        } else {
            Strength::NoKeyUpdate
        }
    }
}

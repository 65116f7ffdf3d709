//! NOT NULL, CHECK and unique keys.

mod foreign_keys;

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::version_tables::key_expressions;
use crate::world::{FIRST_ROWS, Place, Strength, TxId, Version, same_key};
pub use foreign_keys::Change;
use isolde_model::Value;
use isolde_model::breach::{KeyOwner, Obstacle};
use isolde_model::history::ErrorClass;
use isolde_sql::dialect::Family;
use isolde_sql::render::key_name;

/// A key that another row has, or may have.
pub enum Clash {
    Taken(Place),
    /// An open transaction decides whether the key is taken.
    Held(TxId),
    /// The index contains the key, for a row that is not in the snapshot.
    Unseen,
    /// A row of the snapshot has the key, but was deleted since.
    Gone(Place),
}

impl ReferenceModel<'_> {
    /// Whether IGNORE also skips rows that violate NOT NULL or CHECK.
    pub fn ignores_constraints(&self) -> bool {
        matches!(self.subject.reading.dialect.family, Family::Sqlite | Family::Mysql)
    }

    pub fn case_insensitive_keys(&self, tx: TxId) -> bool {
        self.world.concurrency(tx).constraints.case_insensitive_keys
    }

    /// Checks NOT NULL and CHECK.
    pub fn check_row(
        &mut self,
        tx: TxId,
        table: usize,
        new: &Version,
        errors: &mut ExpectedErrors,
    ) {
        let of = &self.subject.reading.schema.tables[table];
        let rule = self.world.concurrency(tx).rules.constraint;
        for (column, value) in of.columns.iter().zip(new.row.iter()) {
            if column.not_null && *value == Value::Null {
                let obstacle = Obstacle::NotNull { column: column.name.clone() };
                errors.require(ErrorClass::Constraint, rule, obstacle);
            }
        }
        let broken = new.conditions.iter().take(of.checks.len()).any(|c| *c == Some(false));
        if broken {
            errors.require(ErrorClass::Constraint, rule, Obstacle::Check);
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
        let expressions = key_expressions(of);
        let name = |place: &usize| match of.columns.get(*place) {
            Some(column) => column.name.clone(),
            None => key_name(expressions[place - of.columns.len()]),
        };
        let names = |places: &[usize]| -> Vec<String> {
            let mut names: Vec<String> = places.iter().map(name).collect();
            names.sort();
            names
        };
        let mut wanted = columns.to_vec();
        wanted.sort();
        let fits = |key: &crate::version_tables::Key| {
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
                theirs
                    .is_some_and(|theirs| same_key(&cells, &theirs, self.case_insensitive_keys(tx)))
            };
            for place in self.world.places(table).filter(|p| Some(*p) != own) {
                let chain = self.world.chain(place);
                if self.world.newest(place, tx).is_some_and(|v| !v.dead && has(v)) {
                    found.push((key, Clash::Taken(place)));
                }
                let foreign = |v: &&Version| {
                    v.by != tx && self.world.is_open(v.by) && !self.world.buffers(v.by)
                };
                if self.world.buffers(tx) {
                    continue;
                }
                let Some(open) = chain.versions.iter().rev().find(foreign) else { continue };
                // They add the key, or they take it away.
                let adds = !open.dead && has(open);
                let kept = self.world.newest(place, tx).is_some_and(|v| !v.dead && has(v));
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

    /// The same as far as the transaction sees: where no statement waits, a
    /// conflict with a row outside the snapshot may be found at COMMIT.
    pub fn visible_clashes(
        &mut self,
        tx: TxId,
        step: usize,
        table: usize,
        own: Option<Place>,
        new: &Version,
    ) -> Vec<(usize, Clash)> {
        if !self.world.concurrency(tx).conflicts.fails_instead_of_waiting && !self.world.merges(tx)
        {
            return self.clashes(tx, table, own, new);
        }
        let snapshot = self.kept_snapshot(tx, step);
        let mut found = Vec::new();
        for key in 0..self.keys[table].len() {
            let Some(cells) = self.key_of(table, key, new) else { continue };
            for place in self.world.places(table).filter(|p| Some(*p) != own) {
                let has = |v: &Version| {
                    let theirs = self.key_of(table, key, v);
                    theirs.is_some_and(|theirs| {
                        same_key(&cells, &theirs, self.case_insensitive_keys(tx))
                    })
                };
                let seen = self.world.visible(place, tx, snapshot).is_some_and(has);
                let checks_index = self.world.concurrency(tx).constraints.checked_in_indexes;
                let index = checks_index.then(|| self.world.in_index(place, tx));
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

    /// Checks the keys of a changed row against all other rows.
    pub fn check_keys(
        &mut self,
        tx: TxId,
        step: usize,
        change: &Change,
        errors: &mut ExpectedErrors,
    ) {
        let Some(new) = &change.new else { return };
        let rules = self.world.concurrency(tx).rules;
        let table = change.place.table;
        for (key, clash) in self.visible_clashes(tx, step, table, Some(change.place), new) {
            let before = change.old.as_ref().and_then(|old| self.key_of(table, key, old));
            if before == self.key_of(table, key, new) {
                continue;
            }
            match clash {
                Clash::Gone(_) => {}
                Clash::Taken(_) | Clash::Unseen => {
                    let obstacle = Obstacle::KeyTaken { owner: KeyOwner::OfNewKey };
                    errors.require(ErrorClass::Constraint, rules.unique, obstacle);
                }
                Clash::Held(by) => {
                    let holder = self.world.session(by).to_string();
                    errors.block(rules.unique, Obstacle::KeyLocked { holder });
                    if self.world.concurrency(tx).single_scan_snapshot() {
                        // It reads the committed rows before it locks.
                        errors.permit(ErrorClass::Constraint, rules.unique);
                    }
                }
            }
        }
    }

    /// Whether unique and foreign keys hold in the committed rows.
    pub fn constraints_hold(&self) -> bool {
        (0..self.world.table_count()).all(|table| {
            let rows: Vec<&Version> = self.world.committed_rows(table).collect();
            let unique = (0..self.keys[table].len()).all(|key| {
                let cells: Vec<Vec<Value>> =
                    rows.iter().filter_map(|row| self.key_of(table, key, row)).collect();
                let taken =
                    |n: usize| cells[..n].iter().any(|other| same_key(other, &cells[n], false));
                !(0..cells.len()).any(taken)
            });
            unique && rows.iter().all(|row| self.has_parents(FIRST_ROWS, table, row))
        })
    }

    /// The lock that a change needs: a stronger one if a key changes.
    pub fn strength(&self, tx: TxId, table: usize, old: &Version, new: &Version) -> Strength {
        if !self.world.concurrency(tx).locking.key_share_locks {
            return Strength::Update;
        }
        // Foreign keys can refer to plain keys only.
        let columns = self.subject.reading.schema.tables[table].columns.len();
        let plain = |k: &usize| {
            let key = &self.keys[table][*k];
            key.condition.is_none() && key.columns.iter().all(|c| *c < columns)
        };
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

//! Three-way merge at COMMIT: the changes of a transaction since its snapshot are
//! merged with what others have committed since, row by row and cell by cell.
//!
//! A row is identified by its primary key; in a table without one, by all of its
//! values. A change that only one side made is kept, and so is a change that both
//! made alike; everything else is a conflict.

use crate::model::ReferenceModel;
use crate::outcome::ExpectedErrors;
use crate::stop::Stop;
use crate::world::FIRST_ROWS;
use crate::world::{Place, TxId, Version, same_key};
use isolde_model::Value;
use isolde_model::breach::{KeyOwner, MissingParent, Obstacle};
use isolde_model::history::ErrorClass;
use isolde_model::value::{Row, same_multiset};

/// A row of the merged table.
struct Kept {
    place: Place,
    version: Version,
    /// It comes from this transaction, in whole or in part.
    own: bool,
}

/// The rows of a table as one side has them.
type Side = Vec<(Place, Version)>;

/// What becomes of a key.
enum Fate<'s> {
    Gone,
    Theirs(&'s (Place, Version)),
    Own(&'s (Place, Version)),
    /// Cells of both; the columns are the own ones.
    Both(&'s (Place, Version), &'s Version, Vec<usize>),
    Conflict,
}

/// The merged rows of each table, or why there are none.
type Merged = Result<Vec<Vec<Kept>>, Obstacle>;

impl ReferenceModel<'_> {
    /// What keeps the merge from being committed.
    pub async fn merge_errors(&mut self, tx: TxId, step: usize) -> Result<ExpectedErrors, Stop> {
        let mut errors = ExpectedErrors::default();
        let rules = self.world.concurrency(tx).rules;
        if !self.world.has_written(tx) {
            return Ok(errors);
        }
        let merged = match self.three_way(tx).await? {
            Ok(merged) => merged,
            Err(obstacle) => {
                errors.require(ErrorClass::Deadlock, rules.changed_row, obstacle);
                return Ok(errors);
            }
        };
        if self.newest_differs(tx) {
            self.use_rule(step, rules.held_row);
        }
        for (table, rows) in merged.iter().enumerate() {
            for (n, row) in rows.iter().enumerate() {
                let rest = rows[..n].iter().map(|other| &other.version);
                if rest.into_iter().any(|other| self.shares_key(tx, table, other, &row.version)) {
                    let obstacle = Obstacle::KeyTaken { owner: KeyOwner::Merged };
                    errors.require(ErrorClass::Constraint, rules.unique, obstacle);
                }
                if row.own {
                    self.check_row(tx, table, &row.version, &mut errors);
                }
                if !self.has_merged_parents(table, &row.version, &merged) {
                    let parent = MissingParent::NotMerged;
                    let obstacle = Obstacle::ParentMissing { table: None, parent };
                    errors.require(ErrorClass::Constraint, rules.foreign, obstacle);
                }
            }
        }
        Ok(errors)
    }

    /// Others have committed something since the snapshot.
    fn newest_differs(&self, tx: TxId) -> bool {
        let since = self.world.snapshot_of(tx).unwrap_or(usize::MAX);
        let mut places = (0..self.world.table_count()).flat_map(|t| self.world.places(t));
        places.any(|p| {
            let newest = self.world.newest(p, FIRST_ROWS);
            newest.is_some_and(|v| !self.world.committed_before(v.by, since))
        })
    }

    fn shares_key(&self, tx: TxId, table: usize, one: &Version, other: &Version) -> bool {
        (0..self.keys[table].len()).any(|key| {
            let keys = (self.key_of(table, key, one), self.key_of(table, key, other));
            let (Some(one), Some(other)) = keys else { return false };
            same_key(&one, &other, self.case_insensitive_keys(tx))
        })
    }

    fn has_merged_parents(&self, table: usize, row: &Version, merged: &[Vec<Kept>]) -> bool {
        let foreign_keys = &self.subject.reading.schema.tables[table].foreign_keys;
        self.foreign_columns(table).into_iter().all(|(key, column)| {
            let value = &row.row[column];
            let Some((parent, of)) = self.parent_of(&foreign_keys[key]) else { return true };
            *value == Value::Null || merged[parent].iter().any(|p| p.version.row[of].same(value))
        })
    }

    async fn three_way(&mut self, tx: TxId) -> Result<Merged, Stop> {
        let since = self.world.snapshot_of(tx).unwrap_or(usize::MAX);
        let mut tables = Vec::new();
        for table in 0..self.world.table_count() {
            let places: Vec<Place> = self.world.places(table).collect();
            let base = side(&places, |p| {
                self.world.chain(p).last_of(|by| self.world.committed_before(by, since))
            });
            let own = side(&places, |p| self.world.newest(p, tx));
            let theirs = side(&places, |p| self.world.newest(p, FIRST_ROWS));
            let Some(fates) = self.fates(table, &base, &own, &theirs) else {
                let name = &self.subject.reading.schema.tables[table].name;
                return Ok(Err(Obstacle::MergeConflict { table: name.clone() }));
            };
            let mut rows = Vec::new();
            for fate in fates {
                let ((place, version), own) = match fate {
                    Fate::Gone | Fate::Conflict => continue,
                    Fate::Theirs(row) => (row.clone(), false),
                    Fate::Own(row) => (row.clone(), true),
                    Fate::Both((place, onto), own, columns) => {
                        let sql = self.tables.merged(table, onto.id, own.id, &columns);
                        let Some(fresh) = self.fresh(table, sql, None).await?.pop() else {
                            continue;
                        };
                        ((*place, self.world.version(fresh, tx)), true)
                    }
                };
                rows.push(Kept { place, version, own });
            }
            tables.push(rows);
        }
        Ok(Ok(tables))
    }

    /// What becomes of each row; none where there is a conflict.
    fn fates<'s>(
        &self,
        table: usize,
        base: &'s Side,
        own: &'s Side,
        theirs: &'s Side,
    ) -> Option<Vec<Fate<'s>>> {
        let rows =
            |side: &Side| -> Vec<Row> { side.iter().map(|(_, v)| (*v.row).clone()).collect() };
        let (b, o, t) = (rows(base), rows(own), rows(theirs));
        if same_multiset(&b, &o) || same_multiset(&o, &t) {
            return Some(theirs.iter().map(Fate::Theirs).collect());
        }
        if same_multiset(&b, &t) {
            return Some(own.iter().map(Fate::Own).collect());
        }
        let primary = self.keys[table].iter().find(|k| k.primary).map(|k| &k.columns);
        let fates = match primary {
            Some(columns) => by_key(columns, base, own, theirs),
            None => by_value(base, own, theirs),
        };
        let conflict = fates.iter().any(|f| matches!(f, Fate::Conflict));
        (!conflict).then_some(fates)
    }

    /// Puts the merged rows into the place of what the transaction wrote.
    pub async fn merge_rows(&mut self, tx: TxId, step: usize) -> Result<(), Stop> {
        if !self.world.has_written(tx) {
            return Ok(());
        }
        let Ok(merged) = self.three_way(tx).await? else {
            return Err(Stop::not_modelled(step, "it has committed what cannot be merged"));
        };
        let (statement, at) = (self.world.statement(), self.world.now());
        self.world.remove_versions_of(tx);
        for (table, rows) in merged.into_iter().enumerate() {
            let places: Vec<Place> = self.world.places(table).collect();
            for place in places {
                let kept = rows.iter().any(|row| row.place == place);
                let alive = self.world.newest(place, FIRST_ROWS).filter(|v| !v.dead).cloned();
                if let (Some(gone), false) = (alive, kept) {
                    let tomb = Version { by: tx, statement, at, dead: true, ..gone };
                    self.world.add_version(place, tomb);
                }
            }
            let stays: Vec<Place> = rows.iter().filter(|r| !r.own).map(|r| r.place).collect();
            for row in rows.into_iter().filter(|row| row.own) {
                let version = Version { by: tx, statement, at, ..row.version };
                if stays.contains(&row.place) {
                    self.world.add_row(table, version);
                } else {
                    self.world.add_version(row.place, version);
                }
            }
        }
        Ok(())
    }
}

fn side<'v>(places: &[Place], seen: impl Fn(Place) -> Option<&'v Version>) -> Side {
    let alive = |p: &Place| seen(*p).filter(|v| !v.dead).map(|v| (*p, v.clone()));
    places.iter().filter_map(alive).collect()
}

fn by_key<'s>(columns: &[usize], base: &'s Side, own: &'s Side, theirs: &'s Side) -> Vec<Fate<'s>> {
    let key = |v: &Version| -> Row { columns.iter().map(|c| v.row[*c].clone()).collect() };
    let mut keys: Vec<Row> = Vec::new();
    for (_, version) in base.iter().chain(own).chain(theirs) {
        let key = key(version);
        if !keys.iter().any(|known| same_row(known, &key)) {
            keys.push(key);
        }
    }
    let of = |side: &'s Side, wanted: &Row| side.iter().find(|(_, v)| same_row(&key(v), wanted));
    keys.iter().map(|k| fate(of(base, k), of(own, k), of(theirs, k))).collect()
}

fn fate<'s>(
    base: Option<&'s (Place, Version)>,
    own: Option<&'s (Place, Version)>,
    theirs: Option<&'s (Place, Version)>,
) -> Fate<'s> {
    let same = |a: Option<&(Place, Version)>, b: Option<&(Place, Version)>| match (a, b) {
        (Some((_, a)), Some((_, b))) => same_row(&a.row, &b.row),
        (None, None) => true,
        _ => false,
    };
    if same(base, own) || same(own, theirs) {
        return theirs.map_or(Fate::Gone, Fate::Theirs);
    }
    if same(base, theirs) {
        return own.map_or(Fate::Gone, Fate::Own);
    }
    let (Some((_, base)), Some((_, own)), Some(theirs)) = (base, own, theirs) else {
        return Fate::Conflict;
    };
    let differs = |a: &Version, b: &Version, c: usize| !a.row[c].same(&b.row[c]);
    let columns = 0..own.row.len();
    let clash = |c: usize| {
        differs(base, own, c) && differs(base, &theirs.1, c) && differs(own, &theirs.1, c)
    };
    if columns.clone().any(clash) {
        return Fate::Conflict;
    }
    Fate::Both(theirs, own, columns.filter(|c| differs(base, own, *c)).collect())
}

/// Rows without a key: how many there are of each kind.
fn by_value<'s>(base: &'s Side, own: &'s Side, theirs: &'s Side) -> Vec<Fate<'s>> {
    let mut kinds: Vec<&Row> = Vec::new();
    for (_, version) in base.iter().chain(own).chain(theirs) {
        if !kinds.iter().any(|known| same_row(known, &version.row)) {
            kinds.push(&version.row);
        }
    }
    let of = |side: &'s Side, kind: &Row| -> Vec<&'s (Place, Version)> {
        side.iter().filter(|(_, v)| same_row(&v.row, kind)).collect()
    };
    let fates = kinds.into_iter().flat_map(|kind| {
        let (base, own, theirs) = (of(base, kind), of(own, kind), of(theirs, kind));
        match (base.len() == own.len(), base.len() == theirs.len()) {
            (true, _) => theirs.into_iter().map(Fate::Theirs).collect::<Vec<_>>(),
            (false, true) => own.into_iter().map(Fate::Own).collect(),
            (false, false) => vec![Fate::Conflict],
        }
    });
    fates.collect()
}

fn same_row(one: &Row, other: &Row) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.same(b))
}

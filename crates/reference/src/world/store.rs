//! The version chains of the rows of all tables.
//!
//! A chain contains the versions of a row in the order in which they were written.
//! A writer blocks other writers of the row until it ends, so this is also the order
//! of commits. A rollback removes versions from their chains.

use super::ids::{Place, TxId};
use crate::version_tables::VersionId;
use isolde_model::Value;
use isolde_model::value::Row;
use std::rc::Rc;

#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    pub id: VersionId,
    pub row: Rc<Row>,
    /// For each condition of the table (see [`crate::version_tables`]) whether it
    /// holds; none when it is unknown.
    pub conditions: Rc<Vec<Option<bool>>>,
    pub by: TxId,
    /// When it was written.
    pub at: usize,
    /// The statement that wrote it, counted over the whole run.
    pub statement: usize,
    /// The row is deleted; `row` is what it was before.
    pub dead: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Chain {
    pub versions: Vec<Version>,
}

#[derive(Clone, Debug, Default)]
pub struct Store {
    pub tables: Vec<Vec<Chain>>,
}

impl Store {
    pub fn new(tables: usize) -> Store {
        Store { tables: vec![Vec::new(); tables] }
    }

    pub fn chain(&self, place: Place) -> &Chain {
        &self.tables[place.table][place.chain]
    }

    pub fn find(&self, table: usize, id: VersionId) -> Option<Place> {
        let has = |chain: &Chain| chain.versions.iter().any(|v| v.id == id && !v.dead);
        self.tables[table].iter().position(has).map(|chain| Place { table, chain })
    }

    pub fn add_row(&mut self, table: usize, version: Version) -> Place {
        self.tables[table].push(Chain { versions: vec![version] });
        Place { table, chain: self.tables[table].len() - 1 }
    }

    pub fn add_version(&mut self, place: Place, version: Version) {
        self.tables[place.table][place.chain].versions.push(version);
    }

    /// Deletes a row; `was` is the version that its writer saw.
    pub fn delete(&mut self, place: Place, was: Version, by: TxId, statement: usize, at: usize) {
        self.add_version(place, Version { by, statement, at, dead: true, ..was });
    }

    /// Deletes a version, and all before it, from the view of one transaction. Later
    /// versions are not affected.
    pub fn hide(&mut self, place: Place, version: usize, by: TxId, statement: usize, at: usize) {
        let versions = &mut self.tables[place.table][place.chain].versions;
        let hidden = Version { by, statement, at, dead: true, ..versions[version].clone() };
        versions.insert(version + 1, hidden);
    }

    /// Removes the rows that a statement of a transaction has deleted, as if they had never
    /// been there.
    pub fn forget_deleted(&mut self, table: usize, by: TxId, statement: usize) {
        for chain in &mut self.tables[table] {
            let deletes = |v: &Version| v.dead && v.by == by && v.statement == statement;
            if let Some(at) = chain.versions.iter().position(deletes) {
                chain.versions.drain(..at);
            }
        }
    }

    /// Removes the versions that a transaction wrote after the given statement, or all.
    pub fn roll_back(&mut self, tx: TxId, after: Option<usize>) {
        let gone = |v: &Version| v.by == tx && after.is_none_or(|s| v.statement > s);
        for chain in self.tables.iter_mut().flatten() {
            chain.versions.retain(|v| !gone(v));
        }
    }

    pub fn places(&self, table: usize) -> impl Iterator<Item = Place> + use<> {
        (0..self.tables[table].len()).map(move |chain| Place { table, chain })
    }
}

impl Chain {
    /// The last version for which `counts` holds of its transaction.
    pub fn last_of(&self, counts: impl Fn(TxId) -> bool) -> Option<&Version> {
        self.versions.iter().rev().find(|v| counts(v.by))
    }
}

/// Whether two keys are equal to the engine.
pub fn same_key(a: &[Value], b: &[Value], case_insensitive_keys: bool) -> bool {
    let fold = |text: &str| text.trim_end_matches(' ').to_lowercase();
    let same = |x: &Value, y: &Value| match (x, y) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Text(x), Value::Text(y)) if case_insensitive_keys => fold(x) == fold(y),
        _ => x.same(y),
    };
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(id: VersionId, by: TxId, statement: usize) -> Version {
        Version {
            id,
            row: Rc::new(vec![Value::Int(id)]),
            conditions: Rc::new(Vec::new()),
            by,
            at: statement,
            statement,
            dead: false,
        }
    }

    /// A row of transaction 0, changed by 1 twice and then by 2.
    fn changed_thrice() -> (Store, Place) {
        let mut store = Store::new(1);
        let place = store.add_row(0, version(1, 0, 0));
        store.add_version(place, version(2, 1, 1));
        store.add_version(place, version(3, 1, 2));
        store.add_version(place, version(4, 2, 3));
        (store, place)
    }

    fn seen(store: &Store, place: Place, by: &[TxId]) -> Option<VersionId> {
        store.chain(place).last_of(|tx| by.contains(&tx)).map(|v| v.id)
    }

    #[test]
    fn last_of_returns_the_last_version_of_the_counted_transactions() {
        let (store, place) = changed_thrice();
        assert_eq!(seen(&store, place, &[0]), Some(1));
        assert_eq!(seen(&store, place, &[0, 1]), Some(3));
        assert_eq!(seen(&store, place, &[0, 2]), Some(4));
        assert_eq!(seen(&store, place, &[]), None);
    }

    #[test]
    fn roll_back_removes_versions_of_a_transaction_or_after_a_statement() {
        let (mut store, place) = changed_thrice();
        store.roll_back(1, Some(1));
        assert_eq!(seen(&store, place, &[0, 1]), Some(2));
        store.roll_back(1, None);
        assert_eq!(seen(&store, place, &[0, 1]), Some(1));
        assert_eq!(seen(&store, place, &[0, 2]), Some(4));
    }

    #[test]
    fn roll_back_restores_a_deleted_row() {
        let (mut store, place) = changed_thrice();
        store.delete(place, version(4, 2, 3), 3, 4, 4);
        assert!(store.chain(place).last_of(|_| true).is_some_and(|v| v.dead && v.id == 4));
        assert_eq!(store.find(0, 3), Some(place));
        assert_eq!(store.find(0, 9), None);
        store.roll_back(3, None);
        assert!(store.chain(place).last_of(|_| true).is_some_and(|v| !v.dead));
    }

    #[test]
    fn same_key_compares_values_and_never_matches_null() {
        let text = |t: &str| Value::Text(t.into());
        assert!(same_key(&[Value::Int(1)], &[Value::Int(1)], false));
        assert!(!same_key(&[Value::Int(1)], &[Value::Int(2)], false));
        assert!(!same_key(&[Value::Null], &[Value::Null], false));
        assert!(!same_key(&[Value::Int(1)], &[Value::Int(1), Value::Int(1)], false));
        let two = [Value::Int(1), text("a")];
        assert!(same_key(&two, &two, false));
        assert!(!same_key(&two, &[Value::Int(1), Value::Null], false));
    }

    #[test]
    fn same_key_ignores_case_only_where_the_engine_does() {
        let key = |t: &str| [Value::Text(t.into())];
        assert!(same_key(&key("Ab "), &key("aB"), true));
        assert!(!same_key(&key("Ab"), &key("aB"), false));
        assert!(!same_key(&key("a "), &key("a"), false));
        assert!(!same_key(&key("a"), &key("b"), true));
    }
}

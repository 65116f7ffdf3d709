//! Dependencies by keys. Whether a row may be inserted, changed or deleted depends on the
//! current rows with the same key, not on a snapshot: the statement that frees a key comes before
//! the one that takes it, a parent before its children.

use super::graph::{Graph, Kind};
use super::observed_statement::ObservedStatement;
use crate::instrument::{Instrument, StatementId, VersionOrder};
use isolde_model::value::Row;
use std::collections::{BTreeMap, HashMap};

/// A writer that brings a value of a key, or takes it away.
struct Touch {
    by: StatementId,
    row: String,
}

pub fn add(
    graph: &mut Graph,
    statements: &[ObservedStatement<'_>],
    orders: &BTreeMap<String, VersionOrder>,
    instrument: &Instrument,
) {
    let place_of: HashMap<StatementId, (usize, usize)> = statements
        .iter()
        .enumerate()
        .map(|(n, seen)| (seen.id, (n, seen.moment.answered)))
        .collect();
    for touched in touches(orders, instrument).into_values() {
        for (n, one) in touched.iter().enumerate() {
            for other in &touched[n + 1..] {
                // The versions of one row have their order.
                if one.row == other.row {
                    continue;
                }
                let (Some((a, first)), Some((b, second))) =
                    (place_of.get(&one.by), place_of.get(&other.by))
                else {
                    continue;
                };
                let (from, to) = if first < second { (a, b) } else { (b, a) };
                graph.add(*from, *to, Kind::Key, &instrument.row_name(&one.row));
            }
        }
    }
}

/// For each value of each key the writers that added or removed it. The keys of a parent and those
/// that refer to it are one.
fn touches(
    orders: &BTreeMap<String, VersionOrder>,
    instrument: &Instrument,
) -> BTreeMap<(usize, Vec<String>, String), Vec<Touch>> {
    let tables = &instrument.schema.tables;
    let mut all: BTreeMap<(usize, Vec<String>, String), Vec<Touch>> = BTreeMap::new();
    for (row, order) in orders {
        let table = &tables[order.table];
        let mut keys: Vec<(usize, Vec<String>, Vec<String>)> =
            table.keys().into_iter().map(|key| (order.table, key.clone(), key)).collect();
        // What children refer to, whether or not it is written as a key here.
        for (place, child) in tables.iter().enumerate() {
            for key in &child.foreign_keys {
                if key.parent == table.name {
                    let column = vec![key.parent_column.clone()];
                    keys.push((order.table, column.clone(), column));
                }
                let parent = tables.iter().position(|t| t.name == key.parent);
                if let (true, Some(parent)) = (place == order.table, parent) {
                    let column = vec![key.column.clone()];
                    keys.push((parent, vec![key.parent_column.clone()], column));
                }
            }
        }
        for (of_table, named, columns) in keys {
            for place in 1..=order.writers.len() {
                let value = |at: usize| key_of(order.held(at), table, &columns);
                let (old, new) = (value(place - 1), value(place));
                if old == new {
                    continue;
                }
                for value in old.into_iter().chain(new) {
                    let by = order.writers[place - 1];
                    let touched = all.entry((of_table, named.clone(), value)).or_default();
                    touched.push(Touch { by, row: row.clone() });
                }
            }
        }
    }
    all
}

/// The key of a row as text; none where a part is NULL, which collides with nothing.
fn key_of(row: Option<&Row>, table: &isolde_sql::Table, columns: &[String]) -> Option<String> {
    let row = row?;
    let mut key = String::new();
    for column in columns {
        let at = table.columns.iter().position(|c| c.name == *column)?;
        match row.get(at)? {
            isolde_model::Value::Null => return None,
            // Collations and widths of numbers differ; case and space are no difference here.
            value => key.push_str(&plain(&value.to_string())),
        }
        key.push('\u{0}');
    }
    Some(key)
}

fn plain(text: &str) -> String {
    let text = text.trim_matches('\'').trim_end().to_lowercase();
    match text.contains('.') && text.parse::<f64>().is_ok() {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

//! The versions of each row in their order, for who compares what statements have seen.

use super::StatementId;
use super::hearing::Entry;
use super::history::Told;
use crate::history::TxEnd;
use crate::value::Row;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The versions of one row: as it was before the run, then as each writer left it. Before it
/// is inserted and after it is deleted there is nothing.
#[derive(Clone, Debug)]
pub struct VersionOrder {
    pub table: usize,
    /// In order, who took it away last. Who did not commit is not among them.
    pub writers: Vec<StatementId>,
    /// The first of them inserted it.
    pub is_inserted: bool,
    /// The last of them took it away.
    pub is_deleted: bool,
    /// What it held, by the last writer.
    pub holds: HashMap<Option<StatementId>, Row>,
}

impl VersionOrder {
    /// The place of a version in the order: 0 before anybody wrote. What was rolled back, and
    /// seen all the same, is taken for what it was made of.
    pub fn place(&self, entry: &Entry) -> usize {
        let place = |writer| self.writers.iter().position(|w| w == writer).map(|at| at + 1);
        entry.writes.iter().rev().find_map(place).unwrap_or(usize::from(self.is_inserted))
    }

    /// What stands at a place; none where there is no row, or nobody has seen it whole.
    pub fn held(&self, place: usize) -> Option<&Row> {
        let last = place.checked_sub(1).map(|at| self.writers[at]);
        if self.is_absent(place) { None } else { self.holds.get(&last) }
    }

    /// Whether there is no row at this place of the order.
    pub fn is_absent(&self, place: usize) -> bool {
        self.is_inserted && place == 0 || self.is_deleted && place == self.writers.len()
    }
}

impl Told<'_> {
    /// The versions of all rows that were there or that somebody committed. Where the end of
    /// a run does not fit to what was told (a row is gone without a word, somebody's work is
    /// there who did not commit), it is as it should be: who compares will see it.
    pub fn version_orders(&self) -> BTreeMap<String, VersionOrder> {
        let committed = self.transactions.iter().filter(|t| t.how == TxEnd::Committed);
        let lasting: HashSet<StatementId> = committed
            .flat_map(|t| t.statements.iter().filter(|s| !s.undone).map(|s| s.id))
            .collect();
        let mut orders = BTreeMap::new();
        for (row, story) in self.ledger().rows {
            let inserter = Entry { row: row.clone(), writes: Vec::new() }.inserted_by();
            // Inserted and rolled back.
            if inserter.is_some_and(|id| !lasting.contains(&id)) {
                continue;
            }
            let is_deleted = !story.stored
                && story
                    .end
                    .as_ref()
                    .and_then(|end| end.last())
                    .is_some_and(|id| lasting.contains(id));
            let mut writers = story.end.unwrap_or(story.longest);
            writers.retain(|id| lasting.contains(id));
            let (table, holds, is_inserted) = (story.table, story.holds, inserter.is_some());
            orders.insert(row, VersionOrder { table, writers, is_inserted, is_deleted, holds });
        }
        orders
    }
}

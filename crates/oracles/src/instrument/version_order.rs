//! The order of the versions of each row.

use super::StatementId;
use super::decode::Entry;
use super::history::ObservedRun;
use isolde_model::history::TxEnd;
use isolde_model::value::Row;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The versions of one row: as it was before the run, then as each writer left it. Before it
/// is inserted and after it is deleted there is nothing.
#[derive(Clone, Debug)]
pub struct VersionOrder {
    pub table: usize,
    /// The committed writers in order; the one that deleted it is the last.
    pub writers: Vec<StatementId>,
    /// The first of them inserted it.
    pub is_inserted: bool,
    /// The last of them took it away.
    pub is_deleted: bool,
    /// What it held, by the last writer.
    pub holds: HashMap<Option<StatementId>, Row>,
}

impl VersionOrder {
    /// The place of a version in the order: 0 before the first write. A version that was
    /// rolled back, and read all the same, counts as the one that it was made of.
    pub fn place(&self, entry: &Entry) -> usize {
        let place = |writer| self.writers.iter().position(|w| w == writer).map(|at| at + 1);
        entry.writes.iter().rev().find_map(place).unwrap_or(usize::from(self.is_inserted))
    }

    /// The contents at a place; none where there is no row, or they were not observed.
    pub fn held(&self, place: usize) -> Option<&Row> {
        let last = place.checked_sub(1).map(|at| self.writers[at]);
        if self.is_absent(place) { None } else { self.holds.get(&last) }
    }

    /// Whether there is no row at this place of the order.
    pub fn is_absent(&self, place: usize) -> bool {
        self.is_inserted && place == 0 || self.is_deleted && place == self.writers.len()
    }
}

impl ObservedRun<'_> {
    /// The versions of all rows of the setup and of all committed rows. Where the end of a run
    /// contradicts the observations (a row disappeared without a DELETE, or the write of an aborted
    /// transaction is stored), the order is the correct one: the comparison will show it.
    pub fn version_orders(&self) -> BTreeMap<String, VersionOrder> {
        let committed = self.transactions.iter().filter(|t| t.how == TxEnd::Committed);
        let lasting: HashSet<StatementId> = committed
            .flat_map(|t| t.statements.iter().filter(|s| !s.undone).map(|s| s.id))
            .collect();
        let mut orders = BTreeMap::new();
        for (row, chain) in self.ledger().rows {
            let inserter = Entry { row: row.clone(), writes: Vec::new() }.inserted_by();
            // Inserted and rolled back.
            if inserter.is_some_and(|id| !lasting.contains(&id)) {
                continue;
            }
            let is_deleted = !chain.stored
                && chain
                    .end
                    .as_ref()
                    .and_then(|end| end.last())
                    .is_some_and(|id| lasting.contains(id));
            let mut writers = chain.end.unwrap_or(chain.longest);
            writers.retain(|id| lasting.contains(id));
            let (table, holds, is_inserted) = (chain.table, chain.holds, inserter.is_some());
            orders.insert(row, VersionOrder { table, writers, is_inserted, is_deleted, holds });
        }
        orders
    }
}

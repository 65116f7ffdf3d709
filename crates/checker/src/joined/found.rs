//! Anomalies as they are found: how many of each class, and the shortest of each.

use crate::anomaly::{Anomaly, Certainty, Class, Edge, Kind, Witness};
use crate::history::{Item, Txn, Value};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Found {
    by_class: BTreeMap<(Option<Kind>, Class), Anomaly>,
    /// Cycles that a search came upon. They are shown where the history does not show one of
    /// the same class by itself, which is easier to follow.
    searched: Vec<(Class, Option<Kind>, Vec<Edge>)>,
}

impl Found {
    /// A read or write that is wrong by itself.
    pub(crate) fn operation(
        &mut self,
        class: Class,
        (txn, item, value): (Txn, Item, Value),
        other: Option<Txn>,
    ) {
        let witness = Witness::Operation { txn, item, value, other };
        let new = Anomaly { class, through: None, count: 0, witness };
        self.by_class.entry((None, class)).or_insert(new).count += 1;
    }

    /// Counts a cycle that the history shows. True if its edges are wanted, because none that
    /// was kept is as short.
    pub(crate) fn counts(&mut self, class: Class, through: Option<Kind>, length: usize) -> bool {
        match self.by_class.get_mut(&(through, class)) {
            Some(known) => {
                known.count += 1;
                matches!(&known.witness, Witness::Cycle(best) if best.len() > length)
            }
            None => true,
        }
    }

    /// Keeps a cycle that a search came upon.
    pub(crate) fn searched(&mut self, class: Class, through: Option<Kind>, cycle: Vec<Edge>) {
        self.searched.push((class, through, cycle));
    }

    /// Keeps the edges of a cycle that was counted.
    pub(crate) fn keep(&mut self, class: Class, through: Option<Kind>, cycle: Vec<Edge>) {
        let new = Anomaly { class, through, count: 1, witness: Witness::Cycle(Vec::new()) };
        self.by_class.entry((through, class)).or_insert(new).witness = Witness::Cycle(cycle);
    }

    /// Whether the class was found without the help of sessions or times.
    pub(crate) fn has(&self, class: Class) -> bool {
        self.by_class.contains_key(&(None, class))
    }

    pub(crate) fn into_anomalies(mut self) -> Vec<Anomaly> {
        for (class, through, cycle) in std::mem::take(&mut self.searched) {
            if !self.by_class.contains_key(&(through, class)) {
                self.keep(class, through, cycle);
            }
        }
        self.by_class.into_values().collect()
    }
}

/// Whether the history shows every edge.
pub(crate) fn is_observed(cycle: &[Edge]) -> bool {
    cycle.iter().all(|edge| edge.certainty == Certainty::Observed)
}

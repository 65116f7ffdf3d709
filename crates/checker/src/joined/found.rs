//! Anomalies as they are found: how many of each class, and the shortest of each.

use crate::anomaly::{Anomaly, Certainty, Class, Edge, Kind, Witness};
use crate::history::{Item, Txn, Value};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Found(BTreeMap<(Option<Kind>, Class), Anomaly>);

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
        self.0.entry((None, class)).or_insert(new).count += 1;
    }

    /// Counts a cycle that the history shows. True if its edges are wanted, because none that
    /// was kept is as short, or what was kept had to be inferred.
    pub(crate) fn counts(&mut self, class: Class, through: Option<Kind>, length: usize) -> bool {
        match self.0.get_mut(&(through, class)) {
            Some(known) => {
                known.count += 1;
                match &known.witness {
                    Witness::Cycle(best) => best.len() > length || !is_observed(best),
                    Witness::Operation { .. } => false,
                }
            }
            None => true,
        }
    }

    /// Keeps a cycle that had to be inferred, unless there is one of its class.
    pub(crate) fn inferred(&mut self, class: Class, through: Option<Kind>, cycle: Vec<Edge>) {
        match self.0.get_mut(&(through, class)) {
            Some(known) => known.count += 1,
            None => self.keep(class, through, cycle),
        }
    }

    /// Keeps the edges of a cycle that was counted.
    pub(crate) fn keep(&mut self, class: Class, through: Option<Kind>, cycle: Vec<Edge>) {
        let new = Anomaly { class, through, count: 1, witness: Witness::Cycle(Vec::new()) };
        self.0.entry((through, class)).or_insert(new).witness = Witness::Cycle(cycle);
    }

    /// Whether the class was found without the help of sessions or times.
    pub(crate) fn has(&self, class: Class) -> bool {
        self.0.contains_key(&(None, class))
    }

    pub(crate) fn into_anomalies(self) -> Vec<Anomaly> {
        self.0.into_values().collect()
    }
}

/// Whether the history shows every edge.
pub(crate) fn is_observed(cycle: &[Edge]) -> bool {
    cycle.iter().all(|edge| edge.certainty == Certainty::Observed)
}

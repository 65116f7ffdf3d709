//! Collects anomalies while they are found: a count and the shortest witness per class.

use crate::anomaly::{Anomaly, Certainty, Class, Edge, EdgeKind, Witness};
use crate::history::{Item, Txn, Value};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct AnomalyLog {
    by_class: BTreeMap<(Option<EdgeKind>, Class), Anomaly>,
    /// Cycles that the solver or a weak level found. They are reported only if there is no
    /// observed cycle of the same class, which is easier to follow.
    searched: Vec<(Class, Option<EdgeKind>, Vec<Edge>)>,
}

impl AnomalyLog {
    /// Adds a read or write that is wrong by itself.
    pub(crate) fn add_operation(
        &mut self,
        class: Class,
        (txn, item, value): (Txn, Item, Value),
        other: Option<Txn>,
    ) {
        let witness = Witness::Operation { txn, item, value, other };
        let new = Anomaly { class, through: None, count: 0, witness };
        self.by_class.entry((None, class)).or_insert(new).count += 1;
    }

    /// Counts an observed cycle. True if its edges are wanted, because it is shorter than the
    /// witness so far.
    pub(crate) fn count_cycle(
        &mut self,
        class: Class,
        through: Option<EdgeKind>,
        length: usize,
    ) -> bool {
        match self.by_class.get_mut(&(through, class)) {
            Some(known) => {
                known.count += 1;
                matches!(&known.witness, Witness::Cycle(best) if best.len() > length)
            }
            None => true,
        }
    }

    /// Adds a cycle that the solver or a weak level found.
    pub(crate) fn add_searched(
        &mut self,
        class: Class,
        through: Option<EdgeKind>,
        cycle: Vec<Edge>,
    ) {
        self.searched.push((class, through, cycle));
    }

    /// Stores the edges of a cycle that was counted.
    pub(crate) fn set_witness(
        &mut self,
        class: Class,
        through: Option<EdgeKind>,
        cycle: Vec<Edge>,
    ) {
        let new = Anomaly { class, through, count: 1, witness: Witness::Cycle(Vec::new()) };
        self.by_class.entry((through, class)).or_insert(new).witness = Witness::Cycle(cycle);
    }

    /// Whether the class occurs without session order or real-time order.
    pub(crate) fn has(&self, class: Class) -> bool {
        self.by_class.contains_key(&(None, class))
    }

    pub(crate) fn into_anomalies(mut self) -> Vec<Anomaly> {
        for (class, through, cycle) in std::mem::take(&mut self.searched) {
            if !self.by_class.contains_key(&(through, class)) {
                self.set_witness(class, through, cycle);
            }
        }
        self.by_class.into_values().collect()
    }
}

/// Whether all edges are observed.
pub(crate) fn all_observed(cycle: &[Edge]) -> bool {
    cycle.iter().all(|edge| edge.certainty == Certainty::Observed)
}

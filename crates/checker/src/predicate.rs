//! Adya's predicate dependencies. A predicate read depends on the last write up to
//! the version it saw that changed whether the item satisfies the predicate; the next write
//! that changes it depends on the read. Writes that change nothing about it make no edge,
//! so no phantom is invented.

use crate::anomaly::Kind;
use crate::graph::Arc;
use crate::history::{Item, Value, Version};
use crate::joined::{Joined, PredicateRead};
use crate::registers::INITIAL;

#[derive(Debug, Default)]
pub(crate) struct PredicateEdges {
    /// From which node, and an arc whose number is that of the predicate read.
    edges: Vec<(u32, Arc)>,
    /// Of how many predicate reads some item could have been seen in several versions
    /// that do not satisfy it.
    pub unplaced: usize,
}

impl PredicateEdges {
    pub(crate) fn of(joined: &Joined<'_>) -> PredicateEdges {
        let mut all = PredicateEdges::default();
        for (number, read) in joined.predicate_reads.iter().enumerate() {
            let predicate = joined.history.ops[read.op as usize].item;
            let satisfying = &joined.history.satisfying[predicate as usize];
            let mut items: Vec<u32> = satisfying.iter().map(|(item, _)| item.0).collect();
            items.extend(read.matched.iter().map(|(item, _)| *item));
            items.sort_unstable();
            items.dedup();
            let mut placed = true;
            for item in items {
                placed &= all.of_item(joined, (read, number as u32), item, satisfying);
            }
            all.unplaced += usize::from(!placed);
        }
        all
    }

    /// The edges of one read about one item. False if it is unclear which version it saw.
    fn of_item(
        &mut self,
        joined: &Joined<'_>,
        (read, number): (&PredicateRead, u32),
        item: u32,
        satisfying: &[Version],
    ) -> bool {
        if joined.wrote(read.node, item).is_some() {
            // Whether it saw its own version depends on the order of its statements.
            return true;
        }
        let order = joined.order.of(item);
        if !joined.tail.of(item).is_empty() {
            return false;
        }
        let satisfies = |place: usize| {
            let writer = if place == 0 { INITIAL } else { order[place - 1] };
            let value = joined.value_of(writer, item).unwrap_or(Value::INITIAL);
            satisfying.binary_search(&(Item(item), value)).is_ok()
        };
        // The runs of versions of which all satisfy it or none does: where each begins.
        let mut runs = vec![0];
        for place in 1..=order.len() {
            if satisfies(place) != satisfies(place - 1) {
                runs.push(place);
            }
        }
        let seen = read.matched.iter().find(|(of, _)| *of == item).map(|(_, writer)| *writer);
        let run = match seen {
            Some(writer) => {
                let place = match writer {
                    INITIAL => 0,
                    _ => match order.iter().position(|node| *node == writer) {
                        Some(place) => place + 1,
                        None => return false,
                    },
                };
                runs.partition_point(|begin| *begin <= place) - 1
            }
            None => {
                let mut candidates = (0..runs.len()).filter(|run| !satisfies(runs[*run]));
                match (candidates.next(), candidates.next()) {
                    (Some(run), None) => run,
                    _ => return false,
                }
            }
        };
        if runs[run] > 0 {
            self.add(order[runs[run] - 1], read.node, Kind::PredicateWr, number);
        }
        if let Some(next) = runs.get(run + 1) {
            self.add(read.node, order[next - 1], Kind::PredicateRw, number);
        }
        true
    }

    fn add(&mut self, from: u32, to: u32, kind: Kind, number: u32) {
        if from != to {
            self.edges.push((from, Arc::new(to, kind, number)));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    pub(crate) fn each(&self, mut edge: impl FnMut(u32, Arc)) {
        for (from, arc) in &self.edges {
            edge(*from, *arc);
        }
    }
}

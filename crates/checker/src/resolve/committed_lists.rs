//! Lists without aborted elements.
//!
//! A transaction that reads uncommitted data sees elements that are rolled back later, and no
//! other transaction sees them. Without those elements the lists of an item are still prefixes
//! of one another. Where lists differ, they are compared without aborted elements.

use super::types::NO_NODE;
use super::writes::{WriteIndex, WriterLookup};
use crate::history::{History, Item, ListRead, OpKind, Txn, Value};
use std::collections::BTreeMap;

pub(crate) struct CommittedLists<'a> {
    history: &'a History,
    writes: &'a WriteIndex,
    node_of: &'a [u32],
    /// The longest list of each item whose lists differ, without aborted elements.
    without_aborted_: BTreeMap<u32, Vec<u64>>,
}

impl<'a> CommittedLists<'a> {
    pub(crate) fn of(
        history: &'a History,
        writes: &'a WriteIndex,
        node_of: &'a [u32],
    ) -> CommittedLists<'a> {
        let mut lists =
            CommittedLists { history, writes, node_of, without_aborted_: BTreeMap::new() };
        if history.other_lists.is_empty() {
            return lists;
        }
        for txn in history.transactions().filter(|txn| node_of[txn.index()] != NO_NODE) {
            for op in history.ops(txn).iter().filter(|op| op.kind == OpKind::ReadList) {
                if !matches!(ListRead::unpack(op.value), ListRead::Other(_)) {
                    continue;
                }
                let list = lists.without_aborted(op.item, history.list(*op).unwrap_or_default());
                let longest = match lists.without_aborted_.remove(&op.item) {
                    Some(longest) => longest,
                    None => lists.without_aborted(op.item, &history.longest[op.item as usize]),
                };
                let longer = if list.len() > longest.len() { list } else { longest };
                lists.without_aborted_.insert(op.item, longer);
            }
        }
        lists
    }

    /// The longest list of an item, and whether aborted elements were removed from it.
    pub(crate) fn longest(&self, item: u32) -> (&[u64], bool) {
        match self.without_aborted_.get(&item) {
            Some(without_aborted_) => (without_aborted_, true),
            None => (&self.history.longest[item as usize], false),
        }
    }

    /// A list without its aborted elements.
    pub(crate) fn without_aborted(&self, item: u32, list: &[u64]) -> Vec<u64> {
        list.iter()
            .copied()
            .filter(|element| self.aborted_writer(item, *element).is_none())
            .collect()
    }

    /// The writer of an element, if it was rolled back.
    pub(crate) fn aborted_writer(&self, item: u32, element: u64) -> Option<Txn> {
        match self.writes.writer(Item(item), Value(element)) {
            WriterLookup::One(written) if self.node_of[written.txn.index()] == NO_NODE => {
                Some(written.txn)
            }
            _ => None,
        }
    }
}

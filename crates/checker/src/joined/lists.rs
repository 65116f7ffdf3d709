//! Who reads what is not committed sees elements that are rolled back later, and then nobody
//! else sees them: without those elements the lists of an item are beginnings of one another
//! all the same. Where they are needed, lists are compared without them.

use super::NO_NODE;
use super::writes::{Writer, Writes};
use crate::history::{History, Item, OpKind, Seen, Txn, Value};
use std::collections::BTreeMap;

pub(crate) struct Lists<'a> {
    history: &'a History,
    writes: &'a Writes,
    node_of: &'a [u32],
    /// The longest list of each item whose lists differ, without what was rolled back.
    cleaned: BTreeMap<u32, Vec<u64>>,
}

impl<'a> Lists<'a> {
    pub(crate) fn of(history: &'a History, writes: &'a Writes, node_of: &'a [u32]) -> Lists<'a> {
        let mut lists = Lists { history, writes, node_of, cleaned: BTreeMap::new() };
        if history.other_lists.is_empty() {
            return lists;
        }
        for txn in history.transactions().filter(|txn| node_of[txn.index()] != NO_NODE) {
            for op in history.ops(txn).iter().filter(|op| op.kind == OpKind::ReadList) {
                if !matches!(Seen::unpack(op.value), Seen::Other(_)) {
                    continue;
                }
                let list = lists.clean(op.item, history.list(*op).unwrap_or_default());
                let longest = match lists.cleaned.remove(&op.item) {
                    Some(longest) => longest,
                    None => lists.clean(op.item, &history.longest[op.item as usize]),
                };
                let longer = if list.len() > longest.len() { list } else { longest };
                lists.cleaned.insert(op.item, longer);
            }
        }
        lists
    }

    /// The longest list of an item, and whether it was cleaned.
    pub(crate) fn longest(&self, item: u32) -> (&[u64], bool) {
        match self.cleaned.get(&item) {
            Some(cleaned) => (cleaned, true),
            None => (&self.history.longest[item as usize], false),
        }
    }

    /// A list without what was rolled back.
    pub(crate) fn clean(&self, item: u32, list: &[u64]) -> Vec<u64> {
        list.iter().copied().filter(|element| self.rolled_back(item, *element).is_none()).collect()
    }

    /// Whose it is, if an element was rolled back.
    pub(crate) fn rolled_back(&self, item: u32, element: u64) -> Option<Txn> {
        match self.writes.writer(Item(item), Value(element)) {
            Writer::One(written) if self.node_of[written.txn.index()] == NO_NODE => {
                Some(written.txn)
            }
            _ => None,
        }
    }
}

//! Determines the known version orders: those that list reads show, and those that the history
//! declares.

use super::anomaly_log::AnomalyLog;
use super::committed_lists::CommittedLists;
use super::types::{NO_NODE, Write};
use super::writes::{WriteIndex, WriterLookup};
use crate::anomaly::Class;
use crate::digraph::Rows;
use crate::history::{History, Item, Txn, Value};

/// An element of a list or declared order that should not be there. Every read of a prefix
/// that contains it has observed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InvalidElement {
    pub item: u32,
    pub at: u32,
    pub class: Class,
    pub writer: Option<Txn>,
}

#[derive(Default)]
pub(crate) struct Orders {
    /// One row per item: the nodes that wrote its first versions, in version order. A node that
    /// wrote several versions in a row occurs once.
    pub order: Rows<u32>,
    /// One row per item that is a list: entry `n` is the number of entries of `order` that the
    /// first `n` elements of its longest list make up, marked with [`INTERMEDIATE`] if the writer
    /// of the last of them appended more to the list afterwards. Empty for other items.
    lengths: Rows<u32>,
    /// One row per item with a declared order: each value, sorted, with its position.
    pub given: Rows<(u64, u32)>,
    /// Sorted by item and position.
    pub invalid_elements: Vec<InvalidElement>,
}

const INTERMEDIATE: u32 = 1 << 31;

impl Orders {
    /// The position in the version order of a list of this length, and whether its last element is
    /// the last one that its writer appended.
    pub(crate) fn position_in_list(&self, item: u32, length: u32) -> (u32, bool) {
        let entry = self.lengths.of(item)[length as usize];
        (entry & !INTERMEDIATE, entry & INTERMEDIATE == 0)
    }

    pub(crate) fn invalid_elements_of(&self, item: u32) -> &[InvalidElement] {
        let begin = self.invalid_elements.partition_point(|invalid| invalid.item < item);
        let end = self.invalid_elements.partition_point(|invalid| invalid.item <= item);
        &self.invalid_elements[begin..end]
    }
}

pub(crate) fn known_orders(
    history: &History,
    (writes, lists): (&WriteIndex, &CommittedLists<'_>),
    node_of: &[u32],
    anomalies: &mut AnomalyLog,
) -> Orders {
    let mut orders = Orders::default();
    let mut given = history.given_orders.iter().collect::<Vec<_>>();
    given.sort_by_key(|(item, _)| *item);
    let mut given = given.into_iter().peekable();
    let mut sorted = Vec::new();
    for item in 0..history.item_count() as u32 {
        let mut builder =
            OrderBuilder { item, writes, node_of, orders: &mut orders, aborted: None };
        let (list, _) = lists.longest(item);
        if !list.is_empty() {
            builder.orders.lengths.all.push(0);
            sorted.clear();
            sorted.extend_from_slice(list);
            sorted.sort_unstable();
            let twice: Vec<u64> =
                sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
            for (at, element) in list.iter().enumerate() {
                if twice.contains(element) && list[..at].contains(element) {
                    builder.mark_invalid(at, Class::DuplicateVersions, None);
                }
                let mark = if builder.add(at, *element, anomalies) { 0 } else { INTERMEDIATE };
                let entries = builder.entries();
                builder.orders.lengths.all.push(entries | mark);
            }
        }
        while let Some((_, order)) = given.next_if(|(of, _)| *of == item) {
            for (at, value) in
                order.iter().enumerate().filter(|(_, value)| **value != Value::INITIAL.0)
            {
                builder.add(at, *value, anomalies);
                let position = builder.entries();
                builder.orders.given.all.push((*value, position));
            }
            let begin = *builder.orders.given.starts.last().expect("rows have starts") as usize;
            builder.orders.given.all[begin..].sort_unstable();
        }
        orders.order.end_row();
        orders.lengths.end_row();
        orders.given.end_row();
    }
    orders
}

/// Builds the version order of one item.
struct OrderBuilder<'a> {
    item: u32,
    writes: &'a WriteIndex,
    node_of: &'a [u32],
    orders: &'a mut Orders,
    aborted: Option<Txn>,
}

impl OrderBuilder<'_> {
    fn begin(&self) -> usize {
        *self.orders.order.starts.last().expect("rows have starts") as usize
    }

    fn entries(&self) -> u32 {
        (self.orders.order.all.len() - self.begin()) as u32
    }

    fn mark_invalid(&mut self, at: usize, class: Class, writer: Option<Txn>) {
        self.orders.invalid_elements.push(InvalidElement {
            item: self.item,
            at: at as u32,
            class,
            writer,
        });
    }

    /// Adds the writer of a value. False if it is committed and wrote the item again afterwards.
    fn add(&mut self, at: usize, value: u64, anomalies: &mut AnomalyLog) -> bool {
        let item = Item(self.item);
        match self.writes.writer(item, Value(value)) {
            WriterLookup::None => self.mark_invalid(at, Class::ThinAirRead, None),
            WriterLookup::Several => self.mark_invalid(at, Class::DuplicateVersions, None),
            WriterLookup::One(written) => {
                let node = self.node_of[written.txn.index()];
                if node == NO_NODE {
                    self.mark_invalid(at, Class::G1a, Some(written.txn));
                    self.aborted = Some(written.txn);
                    return true;
                }
                if let Some(aborted) = self.aborted.take() {
                    let position = (written.txn, item, Value(value));
                    anomalies.add_operation(Class::DirtyUpdate, position, Some(aborted));
                }
                let begin = self.begin();
                if self.orders.order.all[begin..].last() != Some(&node) {
                    self.orders.order.all.push(node);
                }
                return written.is_last();
            }
        }
        true
    }
}

/// For each item its version order, and the writers that the order lacks. If only one is
/// missing, it is the last of the order.
pub(crate) fn with_tails(order: &Rows<u32>, writes: &Rows<Write>) -> (Rows<u32>, Rows<u32>) {
    let items = order.len();
    let by_item = |node: u32| writes.of(node).iter().map(move |write| (write.item, node));
    let writers = Rows::from_pairs(items, (0..writes.len() as u32).flat_map(by_item));
    let (mut whole, mut tails) = (Rows::default(), Rows::default());
    let mut known = Vec::new();
    for item in 0..items as u32 {
        known.clear();
        known.extend_from_slice(order.of(item));
        known.sort_unstable();
        whole.all.extend_from_slice(order.of(item));
        let begin = tails.all.len();
        tails.all.extend(writers.of(item).iter().filter(|node| known.binary_search(node).is_err()));
        if tails.all.len() == begin + 1 {
            whole.all.extend(tails.all.pop());
        }
        whole.end_row();
        tails.end_row();
    }
    (whole, tails)
}

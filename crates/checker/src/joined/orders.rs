//! In which order the versions of each item were installed: as a list that was
//! read shows it, or as the history gives it.

use super::found::Found;
use super::lists::Lists;
use super::writes::{Writer, Writes};
use super::{NO_NODE, Write};
use crate::anomaly::Class;
use crate::history::{History, Item, Txn, Value};
use crate::registers::Rows;

/// Something in a list that should not be there. Whoever read so far has seen it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stain {
    pub item: u32,
    pub at: u32,
    pub class: Class,
    pub writer: Option<Txn>,
}

#[derive(Default)]
pub(crate) struct Orders {
    /// For each item the nodes that wrote its first versions. One that wrote several
    /// in a row stands there once.
    pub order: Rows<u32>,
    /// For each item, how many entries of its order the first n elements of its list
    /// make, from n = 0 on, marked where its writer appended more to it afterwards. Empty
    /// for items that are no lists.
    lengths: Rows<u32>,
    /// For each item whose order was given: each value, sorted, and its place.
    pub given: Rows<(u64, u32)>,
    /// Sorted by item and place.
    pub stains: Vec<Stain>,
}

const INTERMEDIATE: u32 = 1 << 31;

impl Orders {
    /// Where a list of this length stands in the order of its item, and whether its
    /// last element is the last one that its writer appended.
    pub(crate) fn place_in_list(&self, item: u32, length: u32) -> (u32, bool) {
        let entry = self.lengths.of(item)[length as usize];
        (entry & !INTERMEDIATE, entry & INTERMEDIATE == 0)
    }

    pub(crate) fn stains_of(&self, item: u32) -> &[Stain] {
        let begin = self.stains.partition_point(|stain| stain.item < item);
        let end = self.stains.partition_point(|stain| stain.item <= item);
        &self.stains[begin..end]
    }
}

pub(crate) fn known(
    history: &History,
    (writes, lists): (&Writes, &Lists<'_>),
    node_of: &[u32],
    found: &mut Found,
) -> Orders {
    let mut orders = Orders::default();
    let mut given = history.given_orders.iter().collect::<Vec<_>>();
    given.sort_by_key(|(item, _)| *item);
    let mut given = given.into_iter().peekable();
    let mut seen = Vec::new();
    for item in 0..history.item_count() as u32 {
        let mut line = Line { item, writes, node_of, orders: &mut orders, aborted: None };
        let (list, _) = lists.longest(item);
        if !list.is_empty() {
            line.orders.lengths.all.push(0);
            seen.clear();
            seen.extend_from_slice(list);
            seen.sort_unstable();
            let twice: Vec<u64> =
                seen.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
            for (at, element) in list.iter().enumerate() {
                if twice.contains(element) && list[..at].contains(element) {
                    line.stain(at, Class::DuplicateVersions, None);
                }
                let mark = if line.add(at, *element, found) { 0 } else { INTERMEDIATE };
                let entries = line.entries();
                line.orders.lengths.all.push(entries | mark);
            }
        }
        while let Some((_, order)) = given.next_if(|(of, _)| *of == item) {
            for (at, value) in
                order.iter().enumerate().filter(|(_, value)| **value != Value::INITIAL.0)
            {
                line.add(at, *value, found);
                let place = line.entries();
                line.orders.given.all.push((*value, place));
            }
            let begin = *line.orders.given.starts.last().expect("rows have starts") as usize;
            line.orders.given.all[begin..].sort_unstable();
        }
        orders.order.end_row();
        orders.lengths.end_row();
        orders.given.end_row();
    }
    orders
}

/// The order of one item as it grows.
struct Line<'a> {
    item: u32,
    writes: &'a Writes,
    node_of: &'a [u32],
    orders: &'a mut Orders,
    aborted: Option<Txn>,
}

impl Line<'_> {
    fn begin(&self) -> usize {
        *self.orders.order.starts.last().expect("rows have starts") as usize
    }

    fn entries(&self) -> u32 {
        (self.orders.order.all.len() - self.begin()) as u32
    }

    fn stain(&mut self, at: usize, class: Class, writer: Option<Txn>) {
        self.orders.stains.push(Stain { item: self.item, at: at as u32, class, writer });
    }

    /// Adds the writer of a value. False if that is a committed one that wrote the
    /// item again afterwards.
    fn add(&mut self, at: usize, value: u64, found: &mut Found) -> bool {
        let item = Item(self.item);
        match self.writes.writer(item, Value(value)) {
            Writer::Nobody => self.stain(at, Class::ThinAirRead, None),
            Writer::Several => self.stain(at, Class::DuplicateVersions, None),
            Writer::One(written) => {
                let node = self.node_of[written.txn.index()];
                if node == NO_NODE {
                    self.stain(at, Class::G1a, Some(written.txn));
                    self.aborted = Some(written.txn);
                    return true;
                }
                if let Some(aborted) = self.aborted.take() {
                    let place = (written.txn, item, Value(value));
                    found.operation(Class::DirtyUpdate, place, Some(aborted));
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

/// For each item its order, and the writers that it does not have. If that is only
/// one, it is the last of the order.
pub(crate) fn with_tails(order: &Rows<u32>, writes: &Rows<Write>) -> (Rows<u32>, Rows<u32>) {
    let items = order.len();
    let mut by_item = vec![0_u32; items + 1];
    for write in &writes.all {
        by_item[write.item as usize + 1] += 1;
    }
    for item in 0..items {
        by_item[item + 1] += by_item[item];
    }
    let mut writers = vec![0_u32; writes.all.len()];
    let mut next = by_item.clone();
    for node in 0..writes.len() as u32 {
        for write in writes.of(node) {
            writers[next[write.item as usize] as usize] = node;
            next[write.item as usize] += 1;
        }
    }
    let (mut whole, mut tails) = (Rows::default(), Rows::default());
    let mut known = Vec::new();
    for item in 0..items {
        known.clear();
        known.extend_from_slice(order.of(item as u32));
        known.sort_unstable();
        whole.all.extend_from_slice(order.of(item as u32));
        let begin = tails.all.len();
        let of_item = &writers[by_item[item] as usize..by_item[item + 1] as usize];
        tails.all.extend(of_item.iter().filter(|node| known.binary_search(node).is_err()));
        if tails.all.len() == begin + 1 {
            whole.all.extend(tails.all.pop());
        }
        whole.end_row();
        tails.end_row();
    }
    (whole, tails)
}

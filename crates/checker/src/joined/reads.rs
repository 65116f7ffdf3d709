//! Joins every read of a committed transaction to the write that it saw, and finds
//! the reads that are wrong whatever the others did.

use super::found::Found;
use super::lists::Lists;
use super::orders::Orders;
use super::writes::{Writer, Writes};
use super::{NO_NODE, PredicateRead, Read, UNPLACED};
use crate::anomaly::Class;
use crate::history::{History, Item, OpKind, Seen, Txn, Value};
use crate::registers::{INITIAL, Rows};

pub(crate) struct Joining<'a> {
    pub history: &'a History,
    pub writes: &'a Writes,
    pub node_of: &'a [u32],
    pub orders: &'a Orders,
    pub lists: &'a Lists<'a>,
}

/// What the transaction that is looked at has written so far: for each item its
/// last value, valid where the mark is that of this transaction.
struct Own {
    mark: Vec<u32>,
    value: Vec<u64>,
}

impl Joining<'_> {
    /// The reads of each transaction, and how many saw a value that several wrote.
    pub(crate) fn join(&self, txns: &[Txn], found: &mut Found) -> (Rows<Read>, usize) {
        let items = self.history.item_count();
        let mut own = Own { mark: vec![u32::MAX; items], value: vec![0; items] };
        let (mut reads, mut ambiguous) = (Rows::default(), 0);
        for txn in txns {
            for op in self.history.op_range(*txn) {
                let operation = self.history.ops[op];
                let item = operation.item as usize;
                let read = match operation.kind {
                    OpKind::Write => {
                        own.mark[item] = txn.0;
                        own.value[item] = operation.value;
                        None
                    }
                    OpKind::Read | OpKind::LockingRead => {
                        let mine = (own.mark[item] == txn.0).then_some(own.value[item]);
                        self.register(*txn, op, mine, &mut ambiguous, found)
                    }
                    OpKind::ReadList => self.list(*txn, op, found),
                    OpKind::Append | OpKind::PredicateRead => None,
                };
                reads.all.extend(read);
            }
            reads.end_row();
        }
        (reads, ambiguous)
    }

    fn register(
        &self,
        txn: Txn,
        op: usize,
        mine: Option<u64>,
        ambiguous: &mut usize,
        found: &mut Found,
    ) -> Option<Read> {
        let operation = self.history.ops[op];
        let (item, value) = (Item(operation.item), Value(operation.value));
        let at = (txn, item, value);
        if let Some(mine) = mine {
            if mine != value.0 {
                let class =
                    if self.writes_later(txn, op) { Class::FutureRead } else { Class::Internal };
                found.operation(class, at, None);
            }
            return None;
        }
        if value == Value::INITIAL {
            return Some(Read { item: item.0, writer: INITIAL, place: 0, op: op as u32 });
        }
        match self.writes.writer(item, value) {
            Writer::Nobody => {
                found.operation(Class::ThinAirRead, at, None);
                None
            }
            Writer::Several => {
                *ambiguous += 1;
                None
            }
            Writer::One(written) if written.txn == txn => {
                found.operation(Class::FutureRead, at, None);
                None
            }
            Writer::One(written) => {
                let writer = self.node_of[written.txn.index()];
                if writer == NO_NODE {
                    found.operation(Class::G1a, at, Some(written.txn));
                    return None;
                }
                if !written.is_last() {
                    found.operation(Class::G1b, at, Some(written.txn));
                }
                let given = self.orders.given.of(item.0);
                let place = given
                    .binary_search_by_key(&value.0, |(value, _)| *value)
                    .map_or(UNPLACED, |at| given[at].1);
                Some(Read { item: item.0, writer, place, op: op as u32 })
            }
        }
    }

    /// Whether the transaction writes the value of this read afterwards.
    fn writes_later(&self, txn: Txn, op: usize) -> bool {
        let read = self.history.ops[op];
        self.history.ops[op + 1..self.history.op_range(txn).end]
            .iter()
            .any(|later| later.writes() && later.item == read.item && later.value == read.value)
    }

    fn list(&self, txn: Txn, op: usize, found: &mut Found) -> Option<Read> {
        let operation = self.history.ops[op];
        let item = Item(operation.item);
        let list = self.history.list(operation).expect("it reads a list");
        let value = list.last().map_or(Value::INITIAL, |element| Value(*element));
        let at = (txn, item, value);
        let later = &self.history.ops[op + 1..self.history.op_range(txn).end];
        let mut own = later.iter().filter(|own| own.kind == OpKind::Append && own.item == item.0);
        if own.any(|own| list.contains(&own.value)) {
            found.operation(Class::FutureRead, at, None);
            return None;
        }
        let (longest, cleaned) = self.lists.longest(item.0);
        let length = match Seen::unpack(operation.value) {
            Seen::WithoutOwn(_) => {
                found.operation(Class::Internal, at, None);
                return None;
            }
            _ if cleaned => {
                let clean = self.lists.clean(item.0, list);
                if !longest.starts_with(&clean) {
                    found.operation(Class::IncompatibleOrders, at, None);
                    return None;
                }
                self.report_rolled_back(txn, item, list, found);
                clean.len() as u32
            }
            Seen::Beginning(length) => length,
            Seen::Other(_) => {
                found.operation(Class::IncompatibleOrders, at, None);
                return None;
            }
        };
        let list = &longest[..length as usize];
        for stain in self.orders.stains_of(item.0).iter().filter(|stain| stain.at < length) {
            let value = Value(list[stain.at as usize]);
            found.operation(stain.class, (txn, item, value), stain.writer);
        }
        if length == 0 {
            return Some(Read { item: item.0, writer: INITIAL, place: 0, op: op as u32 });
        }
        let (place, is_last) = self.orders.place_in_list(item.0, length);
        // Elements that were rolled back or that nobody wrote have no entry: the version
        // is the last one before them that has.
        let writer = match place {
            0 => INITIAL,
            _ => self.orders.order.of(item.0)[place as usize - 1],
        };
        if !is_last {
            let writer =
                self.history.transactions().find(|txn| self.node_of[txn.index()] == writer);
            found.operation(Class::G1b, at, writer);
        }
        Some(Read { item: item.0, writer, place, op: op as u32 })
    }

    /// Elements of a list that were rolled back, and those that were put on top of them.
    fn report_rolled_back(&self, txn: Txn, item: Item, list: &[u64], found: &mut Found) {
        let mut below = None;
        for element in list {
            let at = |txn| (txn, item, Value(*element));
            if let Some(writer) = self.lists.rolled_back(item.0, *element) {
                found.operation(Class::G1a, at(txn), Some(writer));
                below = Some(writer);
            } else if let Some(aborted) = below.take()
                && let Writer::One(written) = self.writes.writer(item, Value(*element))
            {
                found.operation(Class::DirtyUpdate, at(written.txn), Some(aborted));
            }
        }
    }

    /// What the predicate reads of committed transactions found. Versions that were rolled
    /// back or that nobody wrote are reported.
    pub(crate) fn predicate_reads(&self, txns: &[Txn], found: &mut Found) -> Vec<PredicateRead> {
        let mut reads = Vec::new();
        if self.history.matched.is_empty() {
            return reads;
        }
        for (node, txn) in txns.iter().enumerate() {
            for op in self.history.op_range(*txn) {
                let Some(versions) = self.history.matched(self.history.ops[op]) else { continue };
                let mut matched = Vec::new();
                for (item, value) in versions {
                    if *value == Value::INITIAL {
                        matched.push((item.0, INITIAL));
                        continue;
                    }
                    match self.writes.writer(*item, *value) {
                        Writer::Nobody => {
                            found.operation(Class::ThinAirRead, (*txn, *item, *value), None);
                        }
                        Writer::Several => {}
                        Writer::One(written) => match self.node_of[written.txn.index()] {
                            NO_NODE => {
                                let writer = Some(written.txn);
                                found.operation(Class::G1a, (*txn, *item, *value), writer);
                            }
                            writer => matched.push((item.0, writer)),
                        },
                    }
                }
                reads.push(PredicateRead { node: node as u32, op: op as u32, matched });
            }
        }
        reads
    }
}

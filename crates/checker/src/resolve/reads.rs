//! Resolves every read of a committed transaction to the write that it observed, and finds the
//! reads that are wrong whatever the other transactions did.

use super::anomaly_log::AnomalyLog;
use super::committed_lists::CommittedLists;
use super::orders::Orders;
use super::types::{NO_NODE, PredicateRead, Read, UNKNOWN_POSITION};
use super::writes::{WriteIndex, WriterLookup};
use crate::anomaly::Class;
use crate::digraph::Rows;
use crate::history::{History, Item, ListRead, OpKind, Txn, Value};
use crate::types::INITIAL;

pub(crate) struct ReadResolver<'a> {
    pub history: &'a History,
    pub writes: &'a WriteIndex,
    pub node_of: &'a [u32],
    pub orders: &'a Orders,
    pub lists: &'a CommittedLists<'a>,
}

/// The writes of the current transaction so far: the last value per item, valid where the mark
/// is that of the transaction.
struct OwnWrites {
    mark: Vec<u32>,
    value: Vec<u64>,
}

impl ReadResolver<'_> {
    /// The reads of each transaction, and the number of reads of values with several writers.
    pub(crate) fn resolve(&self, txns: &[Txn], anomalies: &mut AnomalyLog) -> (Rows<Read>, usize) {
        let items = self.history.item_count();
        let mut own = OwnWrites { mark: vec![u32::MAX; items], value: vec![0; items] };
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
                        let own_value = (own.mark[item] == txn.0).then_some(own.value[item]);
                        self.resolve_register(*txn, op, own_value, &mut ambiguous, anomalies)
                    }
                    OpKind::ReadList => self.resolve_list(*txn, op, anomalies),
                    OpKind::Append | OpKind::PredicateRead => None,
                };
                reads.all.extend(read);
            }
            reads.end_row();
        }
        (reads, ambiguous)
    }

    fn resolve_register(
        &self,
        txn: Txn,
        op: usize,
        own_value: Option<u64>,
        ambiguous: &mut usize,
        anomalies: &mut AnomalyLog,
    ) -> Option<Read> {
        let operation = self.history.ops[op];
        let (item, value) = (Item(operation.item), Value(operation.value));
        let at = (txn, item, value);
        if let Some(own_value) = own_value {
            if own_value != value.0 {
                let class =
                    if self.writes_later(txn, op) { Class::FutureRead } else { Class::Internal };
                anomalies.add_operation(class, at, None);
            }
            return None;
        }
        if value == Value::INITIAL {
            return Some(Read { item: item.0, writer: INITIAL, position: 0, op: op as u32 });
        }
        match self.writes.writer(item, value) {
            WriterLookup::None => {
                anomalies.add_operation(Class::ThinAirRead, at, None);
                None
            }
            WriterLookup::Several => {
                *ambiguous += 1;
                None
            }
            WriterLookup::One(written) if written.txn == txn => {
                anomalies.add_operation(Class::FutureRead, at, None);
                None
            }
            WriterLookup::One(written) => {
                let writer = self.node_of[written.txn.index()];
                if writer == NO_NODE {
                    anomalies.add_operation(Class::G1a, at, Some(written.txn));
                    return None;
                }
                if !written.is_last() {
                    anomalies.add_operation(Class::G1b, at, Some(written.txn));
                }
                let given = self.orders.given.of(item.0);
                let position = given
                    .binary_search_by_key(&value.0, |(value, _)| *value)
                    .map_or(UNKNOWN_POSITION, |at| given[at].1);
                Some(Read { item: item.0, writer, position, op: op as u32 })
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

    fn resolve_list(&self, txn: Txn, op: usize, anomalies: &mut AnomalyLog) -> Option<Read> {
        let operation = self.history.ops[op];
        let item = Item(operation.item);
        let list = self.history.list(operation).expect("it reads a list");
        let value = list.last().map_or(Value::INITIAL, |element| Value(*element));
        let at = (txn, item, value);
        let later = &self.history.ops[op + 1..self.history.op_range(txn).end];
        let mut own = later.iter().filter(|own| own.kind == OpKind::Append && own.item == item.0);
        if own.any(|own| list.contains(&own.value)) {
            anomalies.add_operation(Class::FutureRead, at, None);
            return None;
        }
        let (longest, without_aborted_) = self.lists.longest(item.0);
        let length = match ListRead::unpack(operation.value) {
            ListRead::MissingOwn(_) => {
                anomalies.add_operation(Class::Internal, at, None);
                return None;
            }
            _ if without_aborted_ => {
                let without_aborted = self.lists.without_aborted(item.0, list);
                if !longest.starts_with(&without_aborted) {
                    anomalies.add_operation(Class::IncompatibleOrders, at, None);
                    return None;
                }
                self.report_rolled_back(txn, item, list, anomalies);
                without_aborted.len() as u32
            }
            ListRead::Prefix(length) => length,
            ListRead::Other(_) => {
                anomalies.add_operation(Class::IncompatibleOrders, at, None);
                return None;
            }
        };
        let list = &longest[..length as usize];
        for invalid in
            self.orders.invalid_elements_of(item.0).iter().filter(|invalid| invalid.at < length)
        {
            let value = Value(list[invalid.at as usize]);
            anomalies.add_operation(invalid.class, (txn, item, value), invalid.writer);
        }
        if length == 0 {
            return Some(Read { item: item.0, writer: INITIAL, position: 0, op: op as u32 });
        }
        let (position, is_last) = self.orders.position_in_list(item.0, length);
        // Aborted elements and those without a writer have no entry in the order: the version
        // is the last one before them that has.
        let writer = match position {
            0 => INITIAL,
            _ => self.orders.order.of(item.0)[position as usize - 1],
        };
        if !is_last {
            let writer =
                self.history.transactions().find(|txn| self.node_of[txn.index()] == writer);
            anomalies.add_operation(Class::G1b, at, writer);
        }
        Some(Read { item: item.0, writer, position, op: op as u32 })
    }

    /// Reports the aborted elements of a list, and the committed ones appended on top of them.
    fn report_rolled_back(&self, txn: Txn, item: Item, list: &[u64], anomalies: &mut AnomalyLog) {
        let mut below = None;
        for element in list {
            let at = |txn| (txn, item, Value(*element));
            if let Some(writer) = self.lists.aborted_writer(item.0, *element) {
                anomalies.add_operation(Class::G1a, at(txn), Some(writer));
                below = Some(writer);
            } else if let Some(aborted) = below.take()
                && let WriterLookup::One(written) = self.writes.writer(item, Value(*element))
            {
                anomalies.add_operation(Class::DirtyUpdate, at(written.txn), Some(aborted));
            }
        }
    }

    /// The matches of the predicate reads of committed transactions. Reports aborted versions and
    /// those without a writer.
    pub(crate) fn predicate_reads(
        &self,
        txns: &[Txn],
        anomalies: &mut AnomalyLog,
    ) -> Vec<PredicateRead> {
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
                        WriterLookup::None => {
                            anomalies.add_operation(
                                Class::ThinAirRead,
                                (*txn, *item, *value),
                                None,
                            );
                        }
                        WriterLookup::Several => {}
                        WriterLookup::One(written) => match self.node_of[written.txn.index()] {
                            NO_NODE => {
                                let writer = Some(written.txn);
                                anomalies.add_operation(Class::G1a, (*txn, *item, *value), writer);
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

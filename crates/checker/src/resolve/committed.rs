//! Determines which transactions count as committed: those that their clients saw commit, and
//! those of unknown status whose writes a committed transaction read. The rest of unknown
//! status are taken for aborted: that only removes constraints, so it is the weakest assumption.

use super::types::NO_NODE;
use super::writes::{WriteIndex, WriterLookup};
use crate::history::{History, Item, ListRead, OpKind, Status, Txn, Value};

/// The node number of each transaction, [`NO_NODE`] if it does not count as committed.
pub(crate) fn nodes(history: &History, writes: &WriteIndex) -> Vec<u32> {
    let mut committed: Vec<bool> =
        history.status.iter().map(|status| *status == Status::Committed).collect();
    if history.status.contains(&Status::Unknown) {
        let mut worklist: Vec<Txn> =
            history.transactions().filter(|txn| committed[txn.index()]).collect();
        let mut mark_writer = |item: Item, value: u64, worklist: &mut Vec<Txn>| {
            if let WriterLookup::One(written) = writes.writer(item, Value(value))
                && history.status(written.txn) == Status::Unknown
                && !std::mem::replace(&mut committed[written.txn.index()], true)
            {
                worklist.push(written.txn);
            }
        };
        // Only committed transactions have extended these lists.
        for (item, list) in history.longest.iter().enumerate() {
            for element in list {
                mark_writer(Item(item as u32), *element, &mut worklist);
            }
        }
        while let Some(txn) = worklist.pop() {
            for op in history.ops(txn) {
                let item = Item(op.item);
                match op.kind {
                    OpKind::Read | OpKind::LockingRead => {
                        mark_writer(item, op.value, &mut worklist)
                    }
                    OpKind::ReadList => {
                        // Prefixes of the longest list were handled above.
                        if !matches!(ListRead::unpack(op.value), ListRead::Prefix(_)) {
                            for element in history.list(*op).into_iter().flatten() {
                                mark_writer(item, *element, &mut worklist);
                            }
                        }
                    }
                    OpKind::PredicateRead => {
                        for (item, value) in history.matched(*op).into_iter().flatten() {
                            mark_writer(*item, value.0, &mut worklist);
                        }
                    }
                    OpKind::Write | OpKind::Append => {}
                }
            }
        }
    }
    let mut next = 0;
    committed
        .into_iter()
        .map(|committed| {
            if committed {
                next += 1;
                next - 1
            } else {
                NO_NODE
            }
        })
        .collect()
}

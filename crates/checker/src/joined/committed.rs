//! Which transactions count as committed: those whose clients say so, and of those
//! whose end nobody knows the ones whose writes a committed one has seen. The others
//! may have committed or not, and not is always the easier story.

use super::NO_NODE;
use super::writes::{Writer, Writes};
use crate::history::{History, Item, OpKind, Seen, Status, Txn, Value};

/// The number of each transaction among the committed ones.
pub(crate) fn nodes(history: &History, writes: &Writes) -> Vec<u32> {
    let mut committed: Vec<bool> =
        history.status.iter().map(|status| *status == Status::Committed).collect();
    if history.status.contains(&Status::Unknown) {
        let mut to_look_at: Vec<Txn> =
            history.transactions().filter(|txn| committed[txn.index()]).collect();
        let mut saw = |item: Item, value: u64, to_look_at: &mut Vec<Txn>| {
            if let Writer::One(written) = writes.writer(item, Value(value))
                && history.status(written.txn) == Status::Unknown
                && !std::mem::replace(&mut committed[written.txn.index()], true)
            {
                to_look_at.push(written.txn);
            }
        };
        // Only committed transactions have made these lists longer.
        for (item, list) in history.longest.iter().enumerate() {
            for element in list {
                saw(Item(item as u32), *element, &mut to_look_at);
            }
        }
        while let Some(txn) = to_look_at.pop() {
            for op in history.ops(txn) {
                let item = Item(op.item);
                match op.kind {
                    OpKind::Read | OpKind::LockingRead => saw(item, op.value, &mut to_look_at),
                    OpKind::ReadList => {
                        // What is the beginning of the longest list was looked at above.
                        if !matches!(Seen::unpack(op.value), Seen::Beginning(_)) {
                            for element in history.list(*op).into_iter().flatten() {
                                saw(item, *element, &mut to_look_at);
                            }
                        }
                    }
                    OpKind::PredicateRead => {
                        for (item, value) in history.matched(*op).into_iter().flatten() {
                            saw(*item, value.0, &mut to_look_at);
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

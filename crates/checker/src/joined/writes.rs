//! Who wrote which value of which item: one array sorted by both, found by
//! bisection. A hash map an item would cost several times its memory.

use crate::history::{History, Item, Txn, Value};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub value: u64,
    pub txn: Txn,
    /// Its place among all operations, and whether it is the last write of its
    /// transaction to this item.
    op_and_last: u32,
}

const LAST: u32 = 1 << 31;

impl Written {
    pub fn is_last(self) -> bool {
        self.op_and_last & LAST != 0
    }

    pub fn op(self) -> usize {
        (self.op_and_last & !LAST) as usize
    }
}

pub(crate) struct Writes {
    starts: Vec<u32>,
    all: Vec<Written>,
}

/// What a look for the writer of a value finds.
pub(crate) enum Writer {
    Nobody,
    One(Written),
    /// Several wrote the same value, so that a read of it does not tell whose it saw.
    Several,
}

impl Writes {
    pub(crate) fn of(history: &History) -> Writes {
        let items = history.item_count();
        let mut starts = vec![0; items + 1];
        for op in history.ops.iter().filter(|op| op.writes()) {
            starts[op.item as usize + 1] += 1;
        }
        for item in 0..items {
            starts[item + 1] += starts[item];
        }
        let total = starts[items] as usize;
        let none = Written { value: 0, txn: Txn(0), op_and_last: 0 };
        let mut all = vec![none; total];
        let mut next = starts.clone();
        // For each item the transaction that was last seen to write it, from behind.
        let mut seen = vec![u32::MAX; items];
        for txn in history.transactions().rev() {
            for place in history.op_range(txn).rev() {
                let op = history.ops[place];
                if op.writes() {
                    let last = seen[op.item as usize] != txn.0;
                    seen[op.item as usize] = txn.0;
                    let op_and_last = place as u32 | if last { LAST } else { 0 };
                    let slot = &mut next[op.item as usize];
                    all[*slot as usize] = Written { value: op.value, txn, op_and_last };
                    *slot += 1;
                }
            }
        }
        for item in 0..items {
            all[starts[item] as usize..starts[item + 1] as usize]
                .sort_unstable_by_key(|written| (written.value, written.op()));
        }
        Writes { starts, all }
    }

    pub(crate) fn to(&self, item: Item) -> &[Written] {
        &self.all[self.starts[item.index()] as usize..self.starts[item.index() + 1] as usize]
    }

    pub(crate) fn writer(&self, item: Item, value: Value) -> Writer {
        let writes = self.to(item);
        let at = writes.partition_point(|written| written.value < value.0);
        match writes.get(at) {
            Some(written) if written.value == value.0 => match writes.get(at + 1) {
                Some(next) if next.value == value.0 => Writer::Several,
                _ => Writer::One(*written),
            },
            _ => Writer::Nobody,
        }
    }
}

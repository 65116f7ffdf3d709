//! Lists of the transactions that wait for each item in a replay, with removal from the middle.

use crate::types::NONE;

/// The list of a transaction that waits until a nogood permits it to continue.
pub(super) const WAITS_FOR_NOGOOD: u32 = u32::MAX - 1;

/// The lists. A transaction is in at most one of them.
pub(super) struct WaitLists {
    first: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// The list of each transaction, or [`NONE`].
    pub at: Vec<u32>,
}

impl WaitLists {
    pub fn new(txns: usize, items: usize) -> WaitLists {
        WaitLists {
            first: vec![NONE; items],
            next: vec![NONE; txns],
            previous: vec![NONE; txns],
            at: vec![NONE; txns],
        }
    }

    /// Removes all transactions from an item's list.
    pub fn leave_all(&mut self, item: u32, mut left: impl FnMut(u32)) {
        let mut txn = std::mem::replace(&mut self.first[item as usize], NONE);
        while txn != NONE {
            self.at[txn as usize] = NONE;
            left(txn);
            txn = self.next[txn as usize];
        }
    }

    /// Adds a transaction to an item's list.
    pub fn enter(&mut self, item: u32, txn: u32) {
        let first = std::mem::replace(&mut self.first[item as usize], txn);
        self.next[txn as usize] = first;
        self.previous[txn as usize] = NONE;
        self.at[txn as usize] = item;
        if first != NONE {
            self.previous[first as usize] = txn;
        }
    }

    /// Removes a transaction from its list.
    pub fn leave(&mut self, txn: u32) {
        let item = std::mem::replace(&mut self.at[txn as usize], NONE);
        if item == NONE || item == WAITS_FOR_NOGOOD {
            return;
        }
        let (previous, next) = (self.previous[txn as usize], self.next[txn as usize]);
        match previous {
            NONE => self.first[item as usize] = next,
            _ => self.next[previous as usize] = next,
        }
        if next != NONE {
            self.previous[next as usize] = previous;
        }
    }
}

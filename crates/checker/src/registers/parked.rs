//! Who waits for which item in a replay, in lists that can be left from the middle.

use super::versions::NONE;

/// Not parked at an item, but until a lesson allows to go on.
pub(super) const WAITS_FOR_LESSON: u32 = u32::MAX - 1;

/// A transaction is in the list of one item at most.
pub(super) struct Parked {
    first: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Where each transaction is parked, or [`NONE`].
    pub at: Vec<u32>,
}

impl Parked {
    pub fn new(txns: usize, items: usize) -> Parked {
        Parked {
            first: vec![NONE; items],
            next: vec![NONE; txns],
            previous: vec![NONE; txns],
            at: vec![NONE; txns],
        }
    }

    /// Empties an item's list.
    pub fn leave_all(&mut self, item: u32, mut left: impl FnMut(u32)) {
        let mut txn = std::mem::replace(&mut self.first[item as usize], NONE);
        while txn != NONE {
            self.at[txn as usize] = NONE;
            left(txn);
            txn = self.next[txn as usize];
        }
    }

    pub fn enter(&mut self, item: u32, txn: u32) {
        let first = std::mem::replace(&mut self.first[item as usize], txn);
        self.next[txn as usize] = first;
        self.previous[txn as usize] = NONE;
        self.at[txn as usize] = item;
        if first != NONE {
            self.previous[first as usize] = txn;
        }
    }

    pub fn leave(&mut self, txn: u32) {
        let item = std::mem::replace(&mut self.at[txn as usize], NONE);
        if item == NONE || item == WAITS_FOR_LESSON {
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

//! Who wrote which value of which item: one array sorted by both. A hash map an item
//! would cost several times its memory.

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
    /// The lowest and the highest value of each item, apart from the large array.
    ranges: Vec<[u64; 2]>,
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
        let mut ranges = Vec::with_capacity(items);
        for item in 0..items {
            let of_item = &mut all[starts[item] as usize..starts[item + 1] as usize];
            of_item.sort_unstable_by_key(|written| (written.value, written.op()));
            ranges.push(range(of_item));
        }
        Writes { starts, all, ranges }
    }

    pub(crate) fn to(&self, item: Item) -> &[Written] {
        &self.all[self.starts[item.index()] as usize..self.starts[item.index() + 1] as usize]
    }

    pub(crate) fn writer(&self, item: Item, value: Value) -> Writer {
        let writes = self.to(item);
        let at = first_not_below(writes, self.ranges[item.index()], value.0);
        match writes.get(at) {
            Some(written) if written.value == value.0 => match writes.get(at + 1) {
                Some(next) if next.value == value.0 => Writer::Several,
                _ => Writer::One(*written),
            },
            _ => Writer::Nobody,
        }
    }
}

/// The lowest and the highest value. Of no writes, a range that has nothing in it.
fn range(sorted: &[Written]) -> [u64; 2] {
    match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) => [first.value, last.value],
        _ => [u64::MAX, 0],
    }
}

/// Where the writes of values below this one end. Bisection would miss the cache at every
/// step; but clients count their values up or draw them evenly, so that a value stands about
/// as far into the array as into the range, and is looked for from there in growing steps.
fn first_not_below(writes: &[Written], [lowest, highest]: [u64; 2], value: u64) -> usize {
    if value <= lowest {
        return 0;
    }
    if value > highest {
        return writes.len();
    }
    let part = (value - lowest) as f64 / (highest - lowest) as f64;
    let guess = ((part * (writes.len() - 1) as f64).round() as usize).min(writes.len() - 1);
    // The first is below and the last is not: the answer lies between.
    let mut step = 1;
    let (below, not_below) = if writes[guess].value < value {
        let mut below = guess;
        while below + step < writes.len() && writes[below + step].value < value {
            below += step;
            step *= 2;
        }
        (below, (below + step).min(writes.len() - 1))
    } else {
        let mut not_below = guess;
        while not_below > step && writes[not_below - step].value >= value {
            not_below -= step;
            step *= 2;
        }
        (not_below.saturating_sub(step), not_below)
    };
    let between = &writes[below + 1..not_below];
    below + 1 + between.partition_point(|written| written.value < value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[u64]) -> Vec<Written> {
        values.iter().map(|value| Written { value: *value, txn: Txn(0), op_and_last: 0 }).collect()
    }

    /// However values are spread, the guess leads to where bisection does.
    #[test]
    fn a_value_is_found_wherever_the_guess_falls() {
        let spread: [Vec<u64>; 7] = [
            vec![],
            vec![7],
            vec![7, 7, 7],
            (0..100).collect(),
            (0..60).map(|power| 1 << power).collect(),
            (0..60).map(|power| (1 << 62) - (1 << (60 - power))).collect(),
            (0..50).flat_map(|n| [n / 3, (1 << 62) + n]).collect(),
        ];
        for mut values in spread {
            values.sort_unstable();
            let writes = written(&values);
            let near = values.iter().flat_map(|v| [v.saturating_sub(1), *v, v + 1]);
            for value in near.chain([0, u64::MAX]) {
                let expected = values.partition_point(|other| *other < value);
                assert_eq!(
                    first_not_below(&writes, range(&writes), value),
                    expected,
                    "{value} in {values:?}"
                );
            }
        }
    }
}

//! The writer of each value of each item: one array sorted by both. One hash map per item would
//! take several times the memory.

use crate::history::{History, Item, Txn, Value};

#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteRecord {
    pub value: u64,
    pub txn: Txn,
    /// The index of the operation, marked with [`LAST`] if it is the last write of its transaction
    /// to the item.
    op_and_last: u32,
}

const LAST: u32 = 1 << 31;

impl WriteRecord {
    pub fn is_last(self) -> bool {
        self.op_and_last & LAST != 0
    }

    pub fn op(self) -> usize {
        (self.op_and_last & !LAST) as usize
    }
}

pub(crate) struct WriteIndex {
    starts: Vec<u32>,
    all: Vec<WriteRecord>,
    /// The lowest and the highest value of each item, separate from the large array.
    ranges: Vec<[u64; 2]>,
}

/// The result of a lookup of the writer of a value.
pub(crate) enum WriterLookup {
    None,
    One(WriteRecord),
    /// Several writes of the same value: a read of it does not identify its writer.
    Several,
}

impl WriteIndex {
    pub(crate) fn of(history: &History) -> WriteIndex {
        let items = history.item_count();
        let mut starts = vec![0; items + 1];
        for op in history.ops.iter().filter(|op| op.writes()) {
            starts[op.item as usize + 1] += 1;
        }
        for item in 0..items {
            starts[item + 1] += starts[item];
        }
        let total = starts[items] as usize;
        let none = WriteRecord { value: 0, txn: Txn(0), op_and_last: 0 };
        let mut all = vec![none; total];
        let mut next = starts.clone();
        // For each item the transaction that wrote it last, iterating backwards.
        let mut seen = vec![u32::MAX; items];
        for txn in history.transactions().rev() {
            for position in history.op_range(txn).rev() {
                let op = history.ops[position];
                if op.writes() {
                    let last = seen[op.item as usize] != txn.0;
                    seen[op.item as usize] = txn.0;
                    let op_and_last = position as u32 | if last { LAST } else { 0 };
                    let slot = &mut next[op.item as usize];
                    all[*slot as usize] = WriteRecord { value: op.value, txn, op_and_last };
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
        WriteIndex { starts, all, ranges }
    }

    pub(crate) fn to(&self, item: Item) -> &[WriteRecord] {
        &self.all[self.starts[item.index()] as usize..self.starts[item.index() + 1] as usize]
    }

    pub(crate) fn writer(&self, item: Item, value: Value) -> WriterLookup {
        let writes = self.to(item);
        let at = first_not_below(writes, self.ranges[item.index()], value.0);
        match writes.get(at) {
            Some(written) if written.value == value.0 => match writes.get(at + 1) {
                Some(next) if next.value == value.0 => WriterLookup::Several,
                _ => WriterLookup::One(*written),
            },
            _ => WriterLookup::None,
        }
    }
}

/// The lowest and the highest value; an empty range if there are no writes.
fn range(sorted: &[WriteRecord]) -> [u64; 2] {
    match (sorted.first(), sorted.last()) {
        (Some(first), Some(last)) => [first.value, last.value],
        _ => [u64::MAX, 0],
    }
}

/// The index of the first write of a value that is not below this one. Bisection would miss the
/// cache at every step; but clients count their values up or draw them evenly, so the position
/// in the array is about proportional to that in the range, and the search starts there with
/// growing steps.
fn first_not_below(writes: &[WriteRecord], [lowest, highest]: [u64; 2], value: u64) -> usize {
    if value <= lowest {
        return 0;
    }
    if value > highest {
        return writes.len();
    }
    let part = (value - lowest) as f64 / (highest - lowest) as f64;
    let guess = ((part * (writes.len() - 1) as f64).round() as usize).min(writes.len() - 1);
    // The first is below the value and the last is not: the answer lies between them.
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

    fn written(values: &[u64]) -> Vec<WriteRecord> {
        values
            .iter()
            .map(|value| WriteRecord { value: *value, txn: Txn(0), op_and_last: 0 })
            .collect()
    }

    /// However the values are distributed, interpolation finds the same index as bisection.
    #[test]
    fn interpolation_search_agrees_with_bisection() {
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

//! Versions by number, their readers, and which of them must be adjacent.
//!
//! A transaction that read an item and overwrites it writes the very next version, under both
//! goals: a version between the two would have to come both after the reader and before it. Such
//! runs of versions move as one, which leaves far fewer pairs to order.

use super::problem::Problem;
use crate::digraph::Rows;
use crate::types::{INITIAL, NONE};

/// The versions of a problem. A version is the index of its write in `problem.writes.all`; the
/// initial versions of the items come after these.
pub(super) struct Versions {
    /// The writer of each version, [`INITIAL`] for initial ones.
    pub writer: Vec<u32>,
    /// The written versions of each item, in no particular order.
    pub of_item: Rows<u32>,
    /// The version that each element of `problem.reads.all` observed.
    pub read: Vec<u32>,
    /// The readers of each version.
    pub readers: Rows<u32>,
    /// The version that must follow immediately, or [`NONE`].
    pub next: Vec<u32>,
    /// The version that must precede immediately, or [`NONE`].
    pub previous: Vec<u32>,
    /// The writers of versions that cannot all be where reads put them.
    pub clash: Option<[u32; 4]>,
    written: u32,
}

impl Versions {
    pub fn new(problem: &Problem) -> Versions {
        let written = problem.writes.all.len();
        let all = written + problem.items as usize;
        let txns = problem.session_of.len() as u32;
        let mut writer = vec![INITIAL; all];
        for txn in 0..txns {
            let [from, to] = problem.writes.bounds(txn);
            writer[from..to].fill(txn);
        }
        let of_item = Rows::group(problem.items as usize, &problem.writes.all, |slot| slot);
        let mut read = Vec::with_capacity(problem.reads.all.len());
        for &(item, from) in &problem.reads.all {
            read.push(version(problem, item, from));
        }
        let reader = readers_in_order(problem);
        let readers = Rows::group(all, &read, |position| reader[position as usize]);
        let mut versions = Versions {
            writer,
            of_item,
            read,
            readers,
            next: vec![NONE; all],
            previous: vec![NONE; all],
            clash: None,
            written: written as u32,
        };
        versions.link_runs(problem);
        versions
    }

    pub fn initial(&self, item: u32) -> u32 {
        self.written + item
    }

    pub fn is_initial(&self, version: u32) -> bool {
        version >= self.written
    }

    /// The last version of the run that continues from here.
    pub fn run_end(&self, version: u32) -> u32 {
        let mut last = version;
        while self.next[last as usize] != NONE {
            last = self.next[last as usize];
        }
        last
    }

    /// The first versions of the runs of an item whose order is open.
    pub fn open_runs(&self, item: u32) -> impl Iterator<Item = u32> + '_ {
        let first = |version: &u32| self.previous[*version as usize] == NONE;
        self.of_item.of(item).iter().copied().filter(first)
    }

    /// Links adjacent versions: first the known version orders, then reads followed by writes.
    /// Reads that contradict these, or each other, are not linked: their edges close a cycle
    /// anyway.
    fn link_runs(&mut self, problem: &Problem) {
        for item in 0..problem.items {
            let mut last = self.initial(item);
            if item as usize >= problem.known_order.len() {
                continue;
            }
            for &txn in problem.known_order.of(item) {
                let slot = version(problem, item, txn);
                self.link(last, slot);
                last = slot;
            }
        }
        for txn in 0..problem.session_of.len() as u32 {
            let [mut write, last_write] = problem.writes.bounds(txn);
            let [from, to] = problem.reads.bounds(txn);
            for position in from..to {
                let (item, _) = problem.reads.all[position];
                while write < last_write && problem.writes.all[write] < item {
                    write += 1;
                }
                if write < last_write && problem.writes.all[write] == item {
                    self.link(self.read[position], write as u32);
                }
            }
        }
    }

    fn link(&mut self, earlier: u32, later: u32) {
        let (next, previous) = (self.next[earlier as usize], self.previous[later as usize]);
        if next == NONE && previous == NONE {
            self.next[earlier as usize] = later;
            self.previous[later as usize] = earlier;
        } else if next != later {
            let writer =
                |version: u32| self.writer.get(version as usize).copied().unwrap_or(INITIAL);
            self.clash = Some([earlier, later, next, previous].map(writer));
        }
    }
}

/// The number of the version of an item that a transaction wrote.
pub(super) fn version(problem: &Problem, item: u32, writer: u32) -> u32 {
    if writer == INITIAL {
        return problem.writes.all.len() as u32 + item;
    }
    let position = problem.writes.of(writer).binary_search(&item);
    problem.writes.starts[writer as usize]
        + position.expect("a writer that is read wrote the item") as u32
}

fn readers_in_order(problem: &Problem) -> Vec<u32> {
    let mut reader = vec![0; problem.reads.all.len()];
    for txn in 0..problem.session_of.len() as u32 {
        let [from, to] = problem.reads.bounds(txn);
        reader[from..to].fill(txn);
    }
    reader
}

//! A history with every read joined to the write whose version it saw, and each
//! item's versions in their order as far as it is known.

mod committed;
mod found;
mod lists;
mod orders;
mod reads;
mod writes;

pub(crate) use found::{Found, is_observed};

use crate::history::{History, Op, OpKind, Txn, Value};
use crate::registers::{INITIAL, Problem, Rows};
use lists::Lists;
use writes::Writes;

/// A version that a transaction read from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub item: u32,
    /// The node that wrote it, or [`INITIAL`].
    pub writer: u32,
    /// Where the version stands in the known order of the item: so many entries
    /// come up to it. [`UNPLACED`] when it is not among them.
    pub place: u32,
    /// The place of the operation in the history.
    pub op: u32,
}

/// The place of a version that the known order does not have.
pub(crate) const UNPLACED: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub item: u32,
    pub op: u32,
}

/// A predicate read, and the versions that it found where they are known.
#[derive(Clone, Debug)]
pub(crate) struct PredicateRead {
    pub node: u32,
    pub op: u32,
    /// The item of each version that was found, with its writer.
    pub matched: Vec<(u32, u32)>,
}

/// No node: the transaction does not count as committed.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// Committed transactions are nodes, in the order of the history.
pub(crate) struct Joined<'h> {
    pub history: &'h History,
    /// The transaction of each node.
    pub txns: Vec<Txn>,
    /// The reads of others' versions, a row for each node, in the order in which they
    /// were done.
    pub reads: Rows<Read>,
    /// The last write to each item, a row for each node, by item.
    pub writes: Rows<Write>,
    /// For each item the writers of its first versions, in their order.
    pub order: Rows<u32>,
    /// For each item its other writers, two at least or none; they come after those of the
    /// known order.
    pub tail: Rows<u32>,
    /// The items of which somebody read a version that is not in the known order: only
    /// a search tells whether an order exists that explains it.
    pub searched: Vec<bool>,
    pub predicate_reads: Vec<PredicateRead>,
    /// What is wrong without looking at cycles.
    pub found: Found,
    /// Reads of values that several wrote.
    pub ambiguous: usize,
}

impl<'h> Joined<'h> {
    pub(crate) fn of(history: &'h History) -> Joined<'h> {
        let writes = Writes::of(history);
        let node_of = committed::nodes(history, &writes);
        let mut found = Found::default();
        let txns: Vec<Txn> =
            history.transactions().filter(|txn| node_of[txn.index()] != NO_NODE).collect();
        let lists = Lists::of(history, &writes, &node_of);
        let orders = orders::known(history, (&writes, &lists), &node_of, &mut found);
        let joining = reads::Joining {
            history,
            writes: &writes,
            node_of: &node_of,
            orders: &orders,
            lists: &lists,
        };
        let (mut reads, ambiguous) = joining.join(&txns, &mut found);
        let mut own = Rows::default();
        for txn in &txns {
            let begin = own.all.len();
            for op in history.op_range(*txn) {
                let Op { item, kind, .. } = history.ops[op];
                if matches!(kind, OpKind::Write | OpKind::Append) {
                    own.all.push(Write { item, op: op as u32 });
                }
            }
            keep_last_of_each_item(&mut own.all, begin);
            own.end_row();
        }
        let predicate_reads = joining.predicate_reads(&txns, &mut found);
        let (order, tail) = orders::with_tails(&orders.order, &own);
        let mut searched = vec![false; history.item_count()];
        for read in reads.all.iter_mut().filter(|read| read.place == UNPLACED) {
            let known = order.of(read.item);
            // The only writer that was left has been put at the end of the order.
            if known.last() == Some(&read.writer) {
                read.place = known.len() as u32;
            } else {
                searched[read.item as usize] = true;
            }
        }
        Joined {
            history,
            txns,
            reads,
            writes: own,
            order,
            tail,
            searched,
            predicate_reads,
            found,
            ambiguous,
        }
    }

    pub(crate) fn is_searched(&self, item: u32) -> bool {
        self.searched[item as usize]
    }

    /// Whether only a search can tell in which order some versions were installed that
    /// somebody has read.
    pub(crate) fn needs_search(&self) -> bool {
        self.searched.contains(&true)
    }

    /// Whether some item has two or more writers of which nobody knows the order.
    pub(crate) fn has_open_orders(&self) -> bool {
        (0..self.tail.len() as u32).any(|item| !self.tail.of(item).is_empty())
    }

    pub(crate) fn nodes(&self) -> usize {
        self.txns.len()
    }

    /// For each node the one before it in its session, or [`INITIAL`].
    pub(crate) fn before_in_session(&self) -> Vec<u32> {
        let mut last = vec![INITIAL; self.history.session_count()];
        let before = self.txns.iter().zip(0..).map(|(txn, node)| {
            let session = self.history.session_of(*txn).0 as usize;
            std::mem::replace(&mut last[session], node)
        });
        before.collect()
    }

    pub(crate) fn wrote(&self, node: u32, item: u32) -> Option<Write> {
        let writes = self.writes.of(node);
        writes.binary_search_by_key(&item, |write| write.item).ok().map(|at| writes[at])
    }

    /// The value that a node wrote last to an item.
    pub(crate) fn value_of(&self, node: u32, item: u32) -> Option<Value> {
        if node == INITIAL {
            return Some(Value::INITIAL);
        }
        self.wrote(node, item).map(|write| Value(self.history.ops[write.op as usize].value))
    }

    /// The question of this history, for a search over orders of versions.
    pub(crate) fn problem(&self) -> Problem {
        let mut problem = Problem {
            items: self.history.item_count() as u32,
            sessions: self.history.session_count() as u32,
            ..Problem::default()
        };
        for node in 0..self.nodes() as u32 {
            let txn = self.txns[node as usize];
            problem.session_of.push(self.history.session_of(txn).0);
            let begin = problem.reads.all.len();
            let reads = self.reads.of(node).iter().map(|read| (read.item, read.writer));
            problem.reads.all.extend(reads);
            problem.reads.all[begin..].sort_unstable();
            dedup_from(&mut problem.reads.all, begin);
            problem.reads.end_row();
            problem.writes.all.extend(self.writes.of(node).iter().map(|write| write.item));
            problem.writes.end_row();
            if let Some((begin, end)) = self.history.times(txn) {
                problem.times.push([begin, end]);
            }
        }
        problem.known_order = self.order.clone();
        problem
    }
}

fn keep_last_of_each_item(writes: &mut Vec<Write>, begin: usize) {
    writes[begin..].sort_unstable_by_key(|write| (write.item, std::cmp::Reverse(write.op)));
    let mut kept = begin;
    for at in begin..writes.len() {
        if kept == begin || writes[kept - 1].item != writes[at].item {
            writes[kept] = writes[at];
            kept += 1;
        }
    }
    writes.truncate(kept);
}

fn dedup_from<T: PartialEq + Copy>(all: &mut Vec<T>, begin: usize) {
    let mut kept = begin;
    for at in begin..all.len() {
        if kept == begin || all[kept - 1] != all[at] {
            all[kept] = all[at];
            kept += 1;
        }
    }
    all.truncate(kept);
}

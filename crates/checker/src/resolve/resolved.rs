//! The resolved history itself.

use super::anomaly_log::AnomalyLog;
use super::committed_lists::CommittedLists;
use super::reads::ReadResolver;
use super::types::{NO_NODE, PredicateRead, Read, UNKNOWN_POSITION, Write};
use super::writes::WriteIndex;
use super::{committed, orders};
use crate::digraph::Rows;
use crate::history::{History, Op, OpKind, Txn, Value};
use crate::solver::Problem;
use crate::types::INITIAL;

/// A history whose reads are resolved. Committed transactions are nodes, in the order of the
/// history.
pub(crate) struct ResolvedHistory<'h> {
    pub history: &'h History,
    /// The transaction of each node.
    pub txns: Vec<Txn>,
    /// One row per node: the reads of other transactions' versions, in program order.
    pub reads: Rows<Read>,
    /// One row per node: the last write to each item, sorted by item.
    pub writes: Rows<Write>,
    /// One row per item: the writers of its first versions, in version order.
    pub order: Rows<u32>,
    /// One row per item: its remaining writers, at least two or none. Their versions come after
    /// the known ones, in unknown order.
    pub tail: Rows<u32>,
    /// For each item whether a version of unknown position was read: only a search decides
    /// whether a version order explains that.
    pub searched: Vec<bool>,
    pub predicate_reads: Vec<PredicateRead>,
    /// The anomalies found without looking at cycles.
    pub anomalies: AnomalyLog,
    /// The number of reads of values with several writers.
    pub ambiguous: usize,
}

impl<'h> ResolvedHistory<'h> {
    pub(crate) fn of(history: &'h History) -> ResolvedHistory<'h> {
        let writes = WriteIndex::of(history);
        let node_of = committed::nodes(history, &writes);
        let mut anomalies = AnomalyLog::default();
        let txns: Vec<Txn> =
            history.transactions().filter(|txn| node_of[txn.index()] != NO_NODE).collect();
        let lists = CommittedLists::of(history, &writes, &node_of);
        let orders = orders::known_orders(history, (&writes, &lists), &node_of, &mut anomalies);
        let resolver = ReadResolver {
            history,
            writes: &writes,
            node_of: &node_of,
            orders: &orders,
            lists: &lists,
        };
        let (mut reads, ambiguous) = resolver.resolve(&txns, &mut anomalies);
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
        let predicate_reads = resolver.predicate_reads(&txns, &mut anomalies);
        let (order, tail) = orders::with_tails(&orders.order, &own);
        let mut searched = vec![false; history.item_count()];
        for read in reads.all.iter_mut().filter(|read| read.position == UNKNOWN_POSITION) {
            let known = order.of(read.item);
            // The only remaining writer has been appended to the known order.
            if known.last() == Some(&read.writer) {
                read.position = known.len() as u32;
            } else {
                searched[read.item as usize] = true;
            }
        }
        ResolvedHistory {
            history,
            txns,
            reads,
            writes: own,
            order,
            tail,
            searched,
            predicate_reads,
            anomalies,
            ambiguous,
        }
    }

    pub(crate) fn is_searched(&self, item: u32) -> bool {
        self.searched[item as usize]
    }

    /// Whether some item needs a search for its version order.
    pub(crate) fn needs_search(&self) -> bool {
        self.searched.contains(&true)
    }

    /// Whether some item has two or more writers of unknown version order.
    pub(crate) fn has_open_orders(&self) -> bool {
        (0..self.tail.len() as u32).any(|item| !self.tail.of(item).is_empty())
    }

    pub(crate) fn nodes(&self) -> usize {
        self.txns.len()
    }

    /// For each node its predecessor in its session, or [`INITIAL`].
    pub(crate) fn session_predecessors(&self) -> Vec<u32> {
        let mut last = vec![INITIAL; self.history.session_count()];
        let before = self.txns.iter().zip(0..).map(|(txn, node)| {
            let session = self.history.session_of(*txn).0 as usize;
            std::mem::replace(&mut last[session], node)
        });
        before.collect()
    }

    pub(crate) fn last_write(&self, node: u32, item: u32) -> Option<Write> {
        let writes = self.writes.of(node);
        writes.binary_search_by_key(&item, |write| write.item).ok().map(|at| writes[at])
    }

    /// The value that a node wrote last to an item.
    pub(crate) fn value_of(&self, node: u32, item: u32) -> Option<Value> {
        if node == INITIAL {
            return Some(Value::INITIAL);
        }
        self.last_write(node, item).map(|write| Value(self.history.ops[write.op as usize].value))
    }

    /// This history as a problem for the solver.
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

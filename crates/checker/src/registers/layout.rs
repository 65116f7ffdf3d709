//! Which nodes and edges the orders of a history become.
//!
//! Serializability: one node a transaction. Snapshot isolation: one for its begin
//! and one for its commit; whoever read, overwrote or followed began after the
//! other's commit, and whoever read what was overwritten began before that commit. So
//! both levels ask for the same thing, a graph without cycles.

use super::dag::{Dag, Edge};
use super::problem::{Goal, Keep, Order, Problem};
use super::versions::{NONE, Versions};

#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub goal: Goal,
    pub txns: u32,
}

impl Layout {
    pub fn new(problem: &Problem, goal: Goal) -> Layout {
        Layout { goal, txns: problem.session_of.len() as u32 }
    }

    pub fn begin(self, txn: u32) -> u32 {
        match self.goal {
            Goal::Serializable => txn,
            Goal::SnapshotIsolation => 2 * txn,
        }
    }

    pub fn commit(self, txn: u32) -> u32 {
        match self.goal {
            Goal::Serializable => txn,
            Goal::SnapshotIsolation => 2 * txn + 1,
        }
    }

    /// How many nodes are transactions, or halves of them. Others only help.
    pub fn own_nodes(self) -> u32 {
        match self.goal {
            Goal::Serializable => self.txns,
            Goal::SnapshotIsolation => 2 * self.txns,
        }
    }

    pub fn txn(self, node: u32) -> Option<u32> {
        match self.goal {
            _ if node >= self.own_nodes() => None,
            Goal::Serializable => Some(node),
            Goal::SnapshotIsolation => Some(node / 2),
        }
    }

    /// The edge for an order of two transactions.
    pub fn edge(self, from: u32, to: u32, order: Order, literal: u32) -> Edge {
        let (from, to) = match order {
            Order::Before { .. } => (self.begin(from), self.commit(to)),
            _ => (self.commit(from), self.begin(to)),
        };
        Edge { from, to, order: Some(order), literal }
    }

    /// All that is certain before anything is inferred.
    pub fn certain(self, problem: &Problem, versions: &Versions, keep: Keep) -> Dag {
        let timed = keep.times && !problem.times.is_empty();
        let helpers = if timed { self.txns } else { 0 };
        let mut dag = Dag::new((self.own_nodes() + helpers) as usize);
        if self.goal == Goal::SnapshotIsolation {
            for txn in 0..self.txns {
                let (from, to) = (self.begin(txn), self.commit(txn));
                dag.add(Edge { from, to, order: None, literal: NONE });
            }
        }
        if keep.sessions {
            let mut latest = vec![NONE; problem.sessions as usize];
            for (txn, session) in problem.session_of.iter().enumerate() {
                let before = std::mem::replace(&mut latest[*session as usize], txn as u32);
                if before != NONE {
                    dag.add(self.edge(before, txn as u32, Order::Session, NONE));
                }
            }
        }
        if timed {
            self.add_times(problem, &mut dag);
        }
        for txn in 0..self.txns {
            for &(item, writer) in problem.reads.of(txn) {
                if writer != super::INITIAL {
                    dag.add(self.edge(writer, txn, Order::Read { item }, NONE));
                }
            }
        }
        for item in 0..problem.items {
            let initial = versions.initial(item);
            for &version in versions.of_item.of(item).iter().chain([&initial]) {
                let next = versions.next[version as usize];
                if next != NONE {
                    self.overwrites(versions, item, version, next, NONE, |edge| dag.add(edge));
                }
            }
            let last = versions.run_end(initial);
            for later in versions.open_runs(item) {
                self.overwrites(versions, item, last, later, NONE, |edge| dag.add(edge));
            }
        }
        dag
    }

    /// The edges that follow when one version comes after another, and none of its own run.
    pub fn overwrites(
        self,
        versions: &Versions,
        item: u32,
        earlier: u32,
        later: u32,
        literal: u32,
        mut add: impl FnMut(Edge),
    ) {
        let writer = versions.writer[earlier as usize];
        let overwriter = versions.writer[later as usize];
        if !versions.is_initial(earlier) {
            add(self.edge(writer, overwriter, Order::Overwrite { item }, literal));
        }
        for &reader in versions.readers.of(earlier) {
            if reader != overwriter {
                add(self.edge(reader, overwriter, Order::Before { item, writer }, literal));
            }
        }
    }

    /// A chain of helper nodes, one for each end of a transaction, by time: so that the
    /// edges are as many as transactions and not as pairs of them.
    fn add_times(self, problem: &Problem, dag: &mut Dag) {
        let end = |txn: u32| problem.times[txn as usize][1].max(problem.times[txn as usize][0]);
        let mut ended: Vec<u32> = (0..self.txns).collect();
        ended.sort_by_key(|txn| end(*txn));
        let helper = |place: usize| self.own_nodes() + place as u32;
        let mut add =
            |from, to| dag.add(Edge { from, to, order: Some(Order::Time), literal: NONE });
        for (place, &txn) in ended.iter().enumerate() {
            add(self.commit(txn), helper(place));
            if place > 0 {
                add(helper(place - 1), helper(place));
            }
        }
        for txn in 0..self.txns {
            let began = problem.times[txn as usize][0];
            let before = ended.partition_point(|other| end(*other) < began);
            if before > 0 {
                add(helper(before - 1), self.begin(txn));
            }
        }
    }
}

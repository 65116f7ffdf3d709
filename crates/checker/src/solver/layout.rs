//! Maps dependencies to nodes and edges of a graph.
//!
//! Serializability has one node per transaction, snapshot isolation one for its begin and one
//! for its commit. Under the latter, wr, ww and orders lead from a commit to a begin, and rw
//! leads from a begin to a commit. So both levels ask for the same thing, an acyclic graph
//! (Viper's BC polygraphs, EuroSys 2023).

use super::dag::{Dag, Edge};
use super::problem::{Dependency, Goal, Problem};
use super::versions::Versions;
use crate::types::{INITIAL, NONE, RequiredOrders};

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

    /// The number of nodes for transactions or their halves; the rest are helpers.
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

    /// The edge for a dependency between two transactions.
    pub fn edge(self, from: u32, to: u32, dependency: Dependency, literal: u32) -> Edge {
        let (from, to) = match dependency {
            Dependency::Rw { .. } => (self.begin(from), self.commit(to)),
            _ => (self.commit(from), self.begin(to)),
        };
        Edge { from, to, dependency: Some(dependency), literal }
    }

    /// The graph of all certain edges, before any inference.
    pub fn certain(self, problem: &Problem, versions: &Versions, required: RequiredOrders) -> Dag {
        let timed = required.times && !problem.times.is_empty();
        let helpers = if timed { self.txns } else { 0 };
        let mut dag = Dag::new((self.own_nodes() + helpers) as usize);
        if self.goal == Goal::SnapshotIsolation {
            for txn in 0..self.txns {
                let (from, to) = (self.begin(txn), self.commit(txn));
                dag.add(Edge { from, to, dependency: None, literal: NONE });
            }
        }
        if required.sessions {
            let mut latest = vec![NONE; problem.sessions as usize];
            for (txn, session) in problem.session_of.iter().enumerate() {
                let before = std::mem::replace(&mut latest[*session as usize], txn as u32);
                if before != NONE {
                    dag.add(self.edge(before, txn as u32, Dependency::Session, NONE));
                }
            }
        }
        if timed {
            self.add_times(problem, &mut dag);
        }
        for txn in 0..self.txns {
            for &(item, writer) in problem.reads.of(txn) {
                if writer != INITIAL {
                    dag.add(self.edge(writer, txn, Dependency::Wr { item }, NONE));
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

    /// Adds the edges that follow when one version comes after another one of a different run.
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
            add(self.edge(writer, overwriter, Dependency::Ww { item }, literal));
        }
        for &reader in versions.readers.of(earlier) {
            if reader != overwriter {
                add(self.edge(reader, overwriter, Dependency::Rw { item, writer }, literal));
            }
        }
    }

    /// Adds a chain of helper nodes, one per end of a transaction and ordered by time, so that the
    /// number of edges is linear in the transactions and not quadratic.
    fn add_times(self, problem: &Problem, dag: &mut Dag) {
        let end = |txn: u32| problem.times[txn as usize][1].max(problem.times[txn as usize][0]);
        let mut ended: Vec<u32> = (0..self.txns).collect();
        ended.sort_by_key(|txn| end(*txn));
        let helper = |position: usize| self.own_nodes() + position as u32;
        let mut add = |from, to| {
            dag.add(Edge { from, to, dependency: Some(Dependency::RealTime), literal: NONE })
        };
        for (position, &txn) in ended.iter().enumerate() {
            add(self.commit(txn), helper(position));
            if position > 0 {
                add(helper(position - 1), helper(position));
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

//! The certain edges between transactions of a large history, without an explicit edge list:
//! sessions, reads, runs of versions and times are enumerated where they are stored.
//!
//! The enumeration is complete for what the history shows; edges that need inference come from
//! `vector_clocks`.

use super::problem::{Goal, Problem};
use super::versions::Versions;
use crate::digraph::{Rows, Successors, topological_sort};
use crate::types::{INITIAL, NONE, RequiredOrders};

/// An inferred edge: one transaction precedes another although no certain edge says so.
#[derive(Clone, Copy)]
pub(super) struct Inference {
    pub from: u32,
    pub to: u32,
    pub via: Via,
}

/// The premise of an inference.
#[derive(Clone, Copy)]
pub(super) enum Via {
    /// `from` reaches this reader of `to`'s version.
    Reader(u32),
    /// This writer (or the initial one) of the version that `from` read reaches `to`.
    Writer(u32),
}

/// Inferred edges, indexed by both endpoints.
#[derive(Default)]
pub(super) struct InferredEdges {
    pub list: Vec<Inference>,
    pub out: Rows<u32>,
    pub into: Rows<u32>,
}

impl InferredEdges {
    pub fn new(list: Vec<Inference>, txns: usize) -> InferredEdges {
        let from: Vec<u32> = list.iter().map(|inference| inference.from).collect();
        let out = Rows::group(txns, &from, |position| position);
        drop(from);
        let to: Vec<u32> = list.iter().map(|inference| inference.to).collect();
        let into = Rows::group(txns, &to, |position| position);
        InferredEdges { list, out, into }
    }
}

/// Transactions ordered by their end, and for each one how many ended before it began.
pub(super) struct Times {
    pub ends: Vec<u32>,
    pub position: Vec<u32>,
    pub ended_before: Vec<u32>,
    pub began_after: Rows<u32>,
}

impl Times {
    fn new(problem: &Problem) -> Times {
        let txns = problem.times.len();
        let end = |txn: u32| problem.times[txn as usize][1].max(problem.times[txn as usize][0]);
        let mut ends: Vec<u32> = (0..txns as u32).collect();
        ends.sort_unstable_by_key(|txn| end(*txn));
        let mut position = vec![0; txns];
        for (at, txn) in ends.iter().enumerate() {
            position[*txn as usize] = at as u32;
        }
        let ended_before: Vec<u32> = (0..txns)
            .map(|txn| ends.partition_point(|other| end(*other) < problem.times[txn][0]) as u32)
            .collect();
        let began_after = Rows::group(txns + 1, &ended_before, |txn| txn);
        Times { ends, position, ended_before, began_after }
    }
}

/// The certain edges of a problem under one goal.
pub(super) struct CertainEdges<'a> {
    pub problem: &'a Problem,
    pub versions: &'a Versions,
    pub goal: Goal,
    pub sessions: bool,
    pub session_next: Vec<u32>,
    pub session_previous: Vec<u32>,
    pub times: Option<Times>,
}

impl<'a> CertainEdges<'a> {
    pub fn new(
        problem: &'a Problem,
        versions: &'a Versions,
        goal: Goal,
        required: RequiredOrders,
    ) -> CertainEdges<'a> {
        let txns = problem.session_of.len();
        let (mut session_next, mut session_previous) = (vec![NONE; txns], vec![NONE; txns]);
        if required.sessions {
            let mut latest = vec![NONE; problem.sessions as usize];
            for (txn, session) in problem.session_of.iter().enumerate() {
                let before = std::mem::replace(&mut latest[*session as usize], txn as u32);
                if before != NONE {
                    session_next[before as usize] = txn as u32;
                    session_previous[txn] = before;
                }
            }
        }
        let timed = required.times && !problem.times.is_empty();
        let times = timed.then(|| Times::new(problem));
        CertainEdges {
            problem,
            versions,
            goal,
            sessions: required.sessions,
            session_next,
            session_previous,
            times,
        }
    }

    pub fn txns(&self) -> u32 {
        self.problem.session_of.len() as u32
    }

    /// The number of transactions, plus one helper node per end if real-time order is required.
    pub fn nodes(&self) -> u32 {
        if self.times.is_some() { 2 * self.txns() } else { self.txns() }
    }

    /// The numbers of the versions that a transaction wrote.
    pub fn slots(&self, txn: u32) -> std::ops::Range<u32> {
        let [from, to] = self.problem.writes.bounds(txn);
        from as u32..to as u32
    }

    /// The versions that a transaction read.
    pub fn versions_read(&self, txn: u32) -> &[u32] {
        let [from, to] = self.problem.reads.bounds(txn);
        &self.versions.read[from..to]
    }

    /// Visits the certain successors of a node. Under serializability they include the writer of
    /// the next version of what the node read; under snapshot isolation that writer may have
    /// committed concurrently.
    pub fn successors(&self, inferred: &InferredEdges, node: u32, mut visit: impl FnMut(u32)) {
        let txns = self.txns();
        if node >= txns {
            let position = node - txns;
            let times = self.times.as_ref().expect("helpers come with times");
            if position + 1 < txns {
                visit(node + 1);
            }
            times.began_after.of(position + 1).iter().for_each(|txn| visit(*txn));
            return;
        }
        let next = self.session_next[node as usize];
        if next != NONE {
            visit(next);
        }
        let versions = self.versions;
        for slot in self.slots(node) {
            versions.readers.of(slot).iter().for_each(|reader| visit(*reader));
            let next = versions.next[slot as usize];
            if next != NONE {
                visit(versions.writer[next as usize]);
            }
        }
        if self.goal == Goal::Serializable {
            for &version in self.versions_read(node) {
                let next = versions.next[version as usize];
                if next != NONE && versions.writer[next as usize] != node {
                    visit(versions.writer[next as usize]);
                }
            }
        }
        if !inferred.list.is_empty() {
            for &position in inferred.out.of(node) {
                visit(inferred.list[position as usize].to);
            }
        }
        if let Some(times) = &self.times {
            visit(txns + times.position[node as usize]);
        }
    }

    /// Visits the certain predecessors of a transaction, without those by times and inferences.
    pub fn predecessors(&self, txn: u32, mut visit: impl FnMut(u32)) {
        let before = self.session_previous[txn as usize];
        if before != NONE {
            visit(before);
        }
        for &(_, writer) in self.problem.reads.of(txn) {
            if writer != INITIAL {
                visit(writer);
            }
        }
        let versions = self.versions;
        for slot in self.slots(txn) {
            let previous = versions.previous[slot as usize];
            if previous == NONE {
                continue;
            }
            if !versions.is_initial(previous) {
                visit(versions.writer[previous as usize]);
            }
            if self.goal == Goal::Serializable {
                for &reader in versions.readers.of(previous) {
                    if reader != txn {
                        visit(reader);
                    }
                }
            }
        }
    }

    /// The nodes in a topological order, or those that a cycle keeps from being sorted.
    pub fn sorted(&self, inferred: &InferredEdges) -> Result<Vec<u32>, Vec<u32>> {
        topological_sort(&AllEdges { certain: self, inferred })
    }

    /// Whether an order of the transactions respects their certain edges.
    pub fn is_respected_by(&self, position: impl Fn(u32) -> u32) -> bool {
        let inferred = InferredEdges::default();
        (0..self.txns()).all(|txn| {
            let mut kept = true;
            self.successors(&inferred, txn, |next| {
                kept &= next >= self.txns() || position(txn) < position(next);
            });
            kept
        })
    }

    /// The transactions ordered by the length of the longest path to them and from them. It is a
    /// substitute for a clock in histories without times, a few dozen positions off on average.
    pub fn by_depth(&self, inferred: &InferredEdges, sorted: &[u32]) -> Vec<u32> {
        let nodes = self.nodes() as usize;
        let mut before = vec![0u32; nodes];
        for &node in sorted {
            let depth = before[node as usize] + 1;
            self.successors(inferred, node, |next| {
                let known = &mut before[next as usize];
                *known = depth.max(*known);
            });
        }
        let mut after = vec![0u32; nodes];
        for &node in sorted.iter().rev() {
            let mut longest = 0;
            self.successors(inferred, node, |next| longest = longest.max(after[next as usize] + 1));
            after[node as usize] = longest;
        }
        let longest = after.iter().copied().max().unwrap_or(0);
        for (depth, after) in before.iter_mut().zip(&after) {
            *depth += longest - after;
        }
        let txns = self.txns() as usize;
        let depth = &before[..txns];
        Rows::group(2 * longest as usize + 2, depth, |txn| txn).all
    }
}

/// The graph of the certain and the inferred edges.
struct AllEdges<'a> {
    certain: &'a CertainEdges<'a>,
    inferred: &'a InferredEdges,
}

impl Successors for AllEdges<'_> {
    fn len(&self) -> u32 {
        self.certain.nodes()
    }

    fn for_each_successor(&self, node: u32, visit: impl FnMut(u32)) {
        self.certain.successors(self.inferred, node, visit);
    }
}

/// The same problem with its transactions renumbered in this order.
pub(super) fn renumbered(problem: &Problem, order: &[u32]) -> Problem {
    let mut number = vec![0u32; order.len()];
    for (position, txn) in order.iter().enumerate() {
        number[*txn as usize] = position as u32;
    }
    let renamed = |txn: u32| if txn == INITIAL { INITIAL } else { number[txn as usize] };
    let mut reads = Rows::with_capacity(order.len(), problem.reads.all.len());
    let mut writes = Rows::with_capacity(order.len(), problem.writes.all.len());
    for &txn in order {
        let mapped = problem.reads.of(txn).iter().map(|(item, writer)| (*item, renamed(*writer)));
        reads.all.extend(mapped);
        reads.end_row();
        writes.all.extend_from_slice(problem.writes.of(txn));
        writes.end_row();
    }
    let known = &problem.known_order;
    Problem {
        session_of: order.iter().map(|txn| problem.session_of[*txn as usize]).collect(),
        sessions: problem.sessions,
        items: problem.items,
        reads,
        writes,
        known_order: Rows {
            starts: known.starts.clone(),
            all: known.all.iter().map(|txn| renamed(*txn)).collect(),
        },
        times: match problem.times.is_empty() {
            true => Vec::new(),
            false => order.iter().map(|txn| problem.times[*txn as usize]).collect(),
        },
    }
}

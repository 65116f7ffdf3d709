//! Unsatisfiable cores: the few transactions of a large history that are a violation by
//! themselves.
//!
//! The transactions that a refutation mentions are extracted and decided exactly, on their own.
//! Leaving out the others only removes constraints, so a violation of the core is a violation
//! of the whole, and the proof mentions few transactions. A core that turns out satisfiable
//! proves nothing.

use super::certain_edges::{CertainEdges, InferredEdges, Via};
use super::exact::{self, Outcome};
use super::problem::{Budget, Dependency, Justification, Problem, Step};
use super::replay::Nogood;
use super::versions::Versions;
use crate::digraph::Rows;
use crate::types::{INITIAL, NONE, RequiredOrders};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

/// The most pairs of versions that are searched in a core.
const MOST_PAIRS: usize = 300_000;

pub(super) struct UnsatCore<'a> {
    certain: &'a CertainEdges<'a>,
    inferred: &'a InferredEdges,
    txns: BTreeSet<u32>,
    explained: BTreeSet<u32>,
}

impl<'a> UnsatCore<'a> {
    pub fn new(certain: &'a CertainEdges, inferred: &'a InferredEdges) -> UnsatCore<'a> {
        UnsatCore { certain, inferred, txns: BTreeSet::new(), explained: BTreeSet::new() }
    }

    /// Adds the transactions of a cycle among nodes that could not be sorted.
    pub fn of_unsorted(mut self, left: &[u32]) -> UnsatCore<'a> {
        let cycle = self.short_cycle(left);
        let pairs = cycle.iter().zip(cycle.iter().cycle().skip(1));
        for (&from, &to) in pairs {
            self.add_edge(from, to);
        }
        self
    }

    /// Adds the transactions of a nogood, and of the nogoods it was derived from up to a depth.
    pub fn of_nogood(mut self, nogood: &Nogood, nogoods: &[Nogood], depth: usize) -> UnsatCore<'a> {
        let mut open: Vec<&Nogood> = vec![nogood];
        let mut seen = BTreeSet::new();
        for _ in 0..=depth {
            for nogood in std::mem::take(&mut open) {
                self.txns.extend(nogood.transactions.iter().filter(|txn| **txn != INITIAL));
                nogood.inferences.iter().for_each(|position| self.explain(*position));
                let new = nogood.nogoods.iter().filter(|other| seen.insert(**other));
                open.extend(new.map(|other| &nogoods[*other as usize]));
            }
        }
        self
    }

    /// Adds the transactions that come shortly before and after, by number.
    pub fn widened(mut self, around: u32) -> UnsatCore<'a> {
        let last = self.certain.txns() - 1;
        let middle: Vec<u32> = self.txns.iter().copied().collect();
        for txn in middle {
            self.txns.extend(txn.saturating_sub(around)..=last.min(txn + around));
        }
        self
    }

    /// Adds these transactions.
    pub fn of_transactions(mut self, txns: &[u32]) -> UnsatCore<'a> {
        self.txns.extend(txns.iter().filter(|txn| **txn != INITIAL));
        self
    }

    pub fn len(&self) -> usize {
        self.txns.len()
    }

    /// Decides the core on its own. The steps refer to the whole problem.
    pub fn decide(mut self, required: RequiredOrders, budget: &Budget) -> Option<Vec<Step>> {
        self.add_runs();
        let txns: Vec<u32> = self.txns.iter().copied().collect();
        let steps = self.decide_only(&txns, required, budget)?;
        Some(self.shrink(txns, required, budget).unwrap_or(steps))
    }

    fn decide_only(
        &self,
        txns: &[u32],
        required: RequiredOrders,
        budget: &Budget,
    ) -> Option<Vec<Step>> {
        let (problem, renumbering) = self.problem(txns);
        let versions = Versions::new(&problem);
        let outcome =
            exact::decide(&problem, &versions, self.certain.goal, required, budget, MOST_PAIRS);
        match outcome {
            Outcome::Violated(mut steps) => {
                renumbering.rename(&mut steps);
                Some(steps)
            }
            Outcome::Holds(_) | Outcome::Unknown { .. } => None,
        }
    }

    /// Shrinks the core as long as it stays unsatisfiable and little work is done: the fewer
    /// transactions, the shorter the proof.
    fn shrink(
        &self,
        mut txns: Vec<u32>,
        required: RequiredOrders,
        budget: &Budget,
    ) -> Option<Vec<Step>> {
        const WORK: usize = 200_000;
        let budget = Budget { conflicts: budget.conflicts.min(100), ..*budget };
        let mut work = 0;
        let mut best = None;
        let mut chunk = txns.len().div_ceil(2);
        while chunk > 0 && work < WORK {
            let before = txns.len();
            let mut at = 0;
            while at < txns.len() && work < WORK {
                let mut fewer = txns.clone();
                fewer.drain(at..txns.len().min(at + chunk));
                work += fewer.len() + 10;
                match self.decide_only(&fewer, required, &budget) {
                    Some(steps) => (txns, best) = (fewer, Some(steps)),
                    None => at += chunk,
                }
            }
            if chunk > 1 || txns.len() == before {
                chunk /= 2;
            }
        }
        best
    }

    /// A short cycle among nodes that each have a predecessor among them.
    fn short_cycle(&self, left: &[u32]) -> Vec<u32> {
        let mut before = vec![NONE; self.certain.nodes() as usize];
        let mut inside = vec![false; self.certain.nodes() as usize];
        left.iter().for_each(|node| inside[*node as usize] = true);
        for &node in left {
            self.certain.successors(self.inferred, node, |next| {
                if inside[next as usize] {
                    before[next as usize] = node;
                }
            });
        }
        let mut visited = BTreeSet::new();
        let mut node = left[0];
        while visited.insert(node) {
            node = before[node as usize];
        }
        let mut cycle = vec![node];
        let mut at = before[node as usize];
        while at != node {
            cycle.push(at);
            at = before[at as usize];
        }
        cycle.reverse();
        const TRIED: usize = 64;
        let starts: Vec<u32> = cycle.iter().copied().take(TRIED).collect();
        for start in starts {
            if let Some(shorter) = self.cycle_through(start, &inside, cycle.len()) {
                cycle = shorter;
            }
        }
        cycle
    }

    /// A shortest cycle through a node, if it is shorter than `than`.
    fn cycle_through(&self, start: u32, inside: &[bool], than: usize) -> Option<Vec<u32>> {
        const MOST: usize = 100_000;
        let mut by: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut queue = VecDeque::from([(start, 1)]);
        while let Some((node, length)) = queue.pop_front() {
            if length >= than || by.len() > MOST {
                return None;
            }
            let mut closed = false;
            self.certain.successors(self.inferred, node, |next| {
                closed |= next == start;
                if inside[next as usize] && next != start && !by.contains_key(&next) {
                    by.insert(next, (node, length + 1));
                    queue.push_back((next, length + 1));
                }
            });
            if closed {
                let mut cycle = vec![node];
                let mut at = node;
                while at != start {
                    at = by[&at].0;
                    cycle.push(at);
                }
                cycle.reverse();
                return Some(cycle);
            }
        }
        None
    }

    fn add_edge(&mut self, from: u32, to: u32) {
        let txns = self.certain.txns();
        self.txns.extend([from, to].into_iter().filter(|node| *node < txns));
        if from >= txns || to >= txns || self.inferred.list.is_empty() {
            return;
        }
        // There may be a certain edge as well; then the inference does no harm.
        let inferred = self.inferred;
        for &position in inferred.out.of(from) {
            if inferred.list[position as usize].to == to {
                self.explain(position);
                break;
            }
        }
    }

    /// Adds the path on which an inference is based.
    fn explain(&mut self, position: u32) {
        if !self.explained.insert(position) {
            return;
        }
        let inference = self.inferred.list[position as usize];
        self.txns.extend([inference.from, inference.to]);
        let (from, to) = match inference.via {
            Via::Reader(reader) => (inference.from, reader),
            Via::Writer(INITIAL) => return,
            Via::Writer(writer) => (writer, inference.to),
        };
        self.txns.extend([from, to]);
        // An inferred edge on the path must be explained in turn, so it costs more.
        const OF_INFERENCE: u32 = 20;
        let mut by: HashMap<u32, (u32, u32, u32)> = HashMap::new();
        let mut queue = BinaryHeap::from([Reverse((0, to))]);
        while let Some(Reverse((cost, node))) = queue.pop() {
            if node == from {
                break;
            }
            if by.get(&node).is_some_and(|has_known_position| has_known_position.2 < cost) {
                continue;
            }
            let mut reach = |other: u32, inference: u32, cost: u32| {
                let better =
                    by.get(&other).is_none_or(|has_known_position| cost < has_known_position.2);
                if other >= from && other != to && better {
                    by.insert(other, (node, inference, cost));
                    queue.push(Reverse((cost, other)));
                }
            };
            for &earlier in self.inferred.into.of(node) {
                let other = self.inferred.list[earlier as usize].from;
                if earlier < position && other < node {
                    reach(other, earlier, cost + OF_INFERENCE);
                }
            }
            self.certain.predecessors(node, |other| reach(other, NONE, cost + 1));
        }
        let mut node = from;
        while node != to {
            let Some(&(next, inference, _)) = by.get(&node) else { return };
            self.txns.insert(node);
            if inference != NONE {
                self.explain(inference);
            }
            node = next;
        }
    }

    /// Adds the writers of runs: that the versions of a run are adjacent depends on all of its
    /// writers, from those in the core back to the first, or to the known version order.
    fn add_runs(&mut self) {
        let (problem, versions) = (self.certain.problem, self.certain.versions);
        let mut written: HashMap<u32, Vec<u32>> = HashMap::new();
        for &txn in &self.txns {
            for slot in self.certain.slots(txn) {
                written.entry(problem.writes.all[slot as usize]).or_default().push(slot);
            }
        }
        let mut visited = BTreeSet::new();
        for &txn in &self.txns {
            let reads = problem.reads.of(txn).iter().map(|(item, _)| *item);
            let writes = problem.writes.of(txn).iter().copied();
            let seen = reads.zip(self.certain.versions_read(txn).iter().copied());
            for (item, mut version) in seen.chain(writes.zip(self.certain.slots(txn))) {
                let others = written.get(&item).is_some_and(|slots| *slots != [version]);
                while others && visited.insert(version) {
                    let previous = versions.previous[version as usize];
                    if previous == NONE
                        || self.has_known_position(item, versions.writer[version as usize])
                    {
                        break;
                    }
                    version = previous;
                }
            }
        }
        let writers = visited.iter().map(|version| versions.writer[*version as usize]);
        self.txns.extend(writers.filter(|txn| *txn != INITIAL));
    }

    fn has_known_position(&self, item: u32, writer: u32) -> bool {
        let has_known_position = &self.certain.problem.known_order;
        (item as usize) < has_known_position.len() && has_known_position.of(item).contains(&writer)
    }

    fn problem(&self, txns: &[u32]) -> (Problem, Renumbering) {
        let whole = self.certain.problem;
        let touched = txns.iter().flat_map(|txn| {
            let reads = whole.reads.of(*txn).iter().map(|(item, _)| *item);
            reads.chain(whole.writes.of(*txn).iter().copied())
        });
        let items: BTreeSet<u32> = touched.collect();
        let renumbering = Renumbering { txns: txns.to_vec(), items: items.into_iter().collect() };
        let mut problem = Problem { items: renumbering.items.len() as u32, ..Problem::default() };
        let mut sessions = HashMap::new();
        for &txn in &renumbering.txns {
            let count = sessions.len() as u32;
            let session = whole.session_of[txn as usize];
            problem.session_of.push(*sessions.entry(session).or_insert(count));
            for &(item, writer) in whole.reads.of(txn) {
                let writer =
                    if writer == INITIAL { Some(INITIAL) } else { renumbering.txn(writer) };
                if let Some(writer) = writer {
                    problem.reads.all.push((renumbering.item(item), writer));
                }
            }
            problem.reads.end_row();
            problem
                .writes
                .all
                .extend(whole.writes.of(txn).iter().map(|item| renumbering.item(*item)));
            problem.writes.end_row();
            if !whole.times.is_empty() {
                problem.times.push(whole.times[txn as usize]);
            }
        }
        problem.sessions = sessions.len() as u32;
        let mut has_known_position = Rows::default();
        for &item in &renumbering.items {
            if (item as usize) < whole.known_order.len() {
                let [from, to] = whole.known_order.bounds(item);
                let row = &whole.known_order.all[from..to];
                has_known_position.all.extend(row.iter().filter_map(|txn| renumbering.txn(*txn)));
            }
            has_known_position.end_row();
        }
        problem.known_order = has_known_position;
        (problem, renumbering)
    }
}

/// The ids that transactions and items of a core have in the whole problem.
struct Renumbering {
    txns: Vec<u32>,
    items: Vec<u32>,
}

impl Renumbering {
    fn txn(&self, whole: u32) -> Option<u32> {
        self.txns.binary_search(&whole).ok().map(|position| position as u32)
    }

    fn item(&self, whole: u32) -> u32 {
        self.items.binary_search(&whole).expect("all items are there") as u32
    }

    fn rename(&self, steps: &mut [Step]) {
        for step in steps {
            step.from = self.txns[step.from as usize];
            step.to = self.txns[step.to as usize];
            match &mut step.dependency {
                Dependency::Wr { item } | Dependency::Ww { item } => {
                    *item = self.items[*item as usize];
                }
                Dependency::Rw { item, writer } => {
                    *item = self.items[*item as usize];
                    if *writer != INITIAL {
                        *writer = self.txns[*writer as usize];
                    }
                }
                Dependency::Session | Dependency::RealTime => {}
            }
            if let Justification::Inferred(steps) = &mut step.justification {
                self.rename(steps);
            }
        }
    }
}

/// The same for a problem whose transactions were renumbered.
pub(super) fn rename(steps: &mut [Step], order: &[u32], items: u32) {
    let renumbering = Renumbering { txns: order.to_vec(), items: (0..items).collect() };
    renumbering.rename(steps);
}

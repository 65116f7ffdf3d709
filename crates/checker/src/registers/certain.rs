//! What is certain between whole transactions of a large history, without a list
//! of edges: sessions, reads, runs and times are walked where they are stored.

use super::problem::{Goal, INITIAL, Keep, Problem, Rows};
use super::versions::{NONE, Versions, group, row_bounds};

/// Why one transaction comes before another, where no edge shows it.
#[derive(Clone, Copy)]
pub(super) struct Inference {
    pub from: u32,
    pub to: u32,
    pub via: Via,
}

#[derive(Clone, Copy)]
pub(super) enum Via {
    /// `from` reaches this reader of what `to` wrote.
    Reader(u32),
    /// This writer (or the initial one) of what `from` read reaches `to`.
    Writer(u32),
}

/// Orders that were inferred, by both of their ends.
#[derive(Default)]
pub(super) struct Inferred {
    pub list: Vec<Inference>,
    pub out: Rows<u32>,
    pub into: Rows<u32>,
}

impl Inferred {
    pub fn new(list: Vec<Inference>, txns: usize) -> Inferred {
        let from: Vec<u32> = list.iter().map(|inference| inference.from).collect();
        let out = group(txns, &from, |place| place);
        drop(from);
        let to: Vec<u32> = list.iter().map(|inference| inference.to).collect();
        let into = group(txns, &to, |place| place);
        Inferred { list, out, into }
    }
}

/// Ends of transactions by time, and who began after how many of them.
pub(super) struct Times {
    pub ends: Vec<u32>,
    pub place: Vec<u32>,
    pub ended_before: Vec<u32>,
    pub began_after: Rows<u32>,
}

impl Times {
    fn new(problem: &Problem) -> Times {
        let txns = problem.times.len();
        let end = |txn: u32| problem.times[txn as usize][1].max(problem.times[txn as usize][0]);
        let mut ends: Vec<u32> = (0..txns as u32).collect();
        ends.sort_unstable_by_key(|txn| end(*txn));
        let mut place = vec![0; txns];
        for (at, txn) in ends.iter().enumerate() {
            place[*txn as usize] = at as u32;
        }
        let ended_before: Vec<u32> = (0..txns)
            .map(|txn| ends.partition_point(|other| end(*other) < problem.times[txn][0]) as u32)
            .collect();
        let began_after = group(txns + 1, &ended_before, |txn| txn);
        Times { ends, place, ended_before, began_after }
    }
}

pub(super) struct Certain<'a> {
    pub problem: &'a Problem,
    pub versions: &'a Versions,
    pub goal: Goal,
    pub sessions: bool,
    pub session_next: Vec<u32>,
    pub session_previous: Vec<u32>,
    pub times: Option<Times>,
}

impl<'a> Certain<'a> {
    pub fn new(
        problem: &'a Problem,
        versions: &'a Versions,
        goal: Goal,
        keep: Keep,
    ) -> Certain<'a> {
        let txns = problem.session_of.len();
        let (mut session_next, mut session_previous) = (vec![NONE; txns], vec![NONE; txns]);
        if keep.sessions {
            let mut latest = vec![NONE; problem.sessions as usize];
            for (txn, session) in problem.session_of.iter().enumerate() {
                let before = std::mem::replace(&mut latest[*session as usize], txn as u32);
                if before != NONE {
                    session_next[before as usize] = txn as u32;
                    session_previous[txn] = before;
                }
            }
        }
        let timed = keep.times && !problem.times.is_empty();
        let times = timed.then(|| Times::new(problem));
        Certain {
            problem,
            versions,
            goal,
            sessions: keep.sessions,
            session_next,
            session_previous,
            times,
        }
    }

    pub fn txns(&self) -> u32 {
        self.problem.session_of.len() as u32
    }

    /// Transactions, and a helper for each end if times are kept.
    pub fn nodes(&self) -> u32 {
        if self.times.is_some() { 2 * self.txns() } else { self.txns() }
    }

    pub fn slots(&self, txn: u32) -> std::ops::Range<u32> {
        let [from, to] = row_bounds(&self.problem.writes, txn);
        from as u32..to as u32
    }

    /// The versions that a transaction read.
    pub fn versions_read(&self, txn: u32) -> &[u32] {
        let [from, to] = row_bounds(&self.problem.reads, txn);
        &self.versions.read[from..to]
    }

    /// All that certainly comes after a node. Under serializability that includes whoever
    /// makes the next version of what was read; under snapshot isolation it may have
    /// committed in the meantime.
    pub fn successors(&self, inferred: &Inferred, node: u32, mut visit: impl FnMut(u32)) {
        let txns = self.txns();
        if node >= txns {
            let place = node - txns;
            let times = self.times.as_ref().expect("helpers come with times");
            if place + 1 < txns {
                visit(node + 1);
            }
            times.began_after.of(place + 1).iter().for_each(|txn| visit(*txn));
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
            for &place in inferred.out.of(node) {
                visit(inferred.list[place as usize].to);
            }
        }
        if let Some(times) = &self.times {
            visit(txns + times.place[node as usize]);
        }
    }

    /// The same backwards, without times and inferences.
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

    /// Nodes in an order that keeps all that is certain, or those that a cycle holds back.
    pub fn sorted(&self, inferred: &Inferred) -> Result<Vec<u32>, Vec<u32>> {
        let nodes = self.nodes();
        let mut missing = vec![0u32; nodes as usize];
        for node in 0..nodes {
            self.successors(inferred, node, |next| missing[next as usize] += 1);
        }
        let mut order: Vec<u32> = Vec::with_capacity(nodes as usize);
        order.extend((0..nodes).filter(|node| missing[*node as usize] == 0));
        let mut at = 0;
        while at < order.len() {
            let node = order[at];
            at += 1;
            self.successors(inferred, node, |next| {
                missing[next as usize] -= 1;
                if missing[next as usize] == 0 {
                    order.push(next);
                }
            });
        }
        if order.len() == nodes as usize {
            return Ok(order);
        }
        Err((0..nodes).filter(|node| missing[*node as usize] > 0).collect())
    }

    /// Whether transactions in the order of these places keep all that is certain of them.
    pub fn keeps(&self, place: impl Fn(u32) -> u32) -> bool {
        let inferred = Inferred::default();
        (0..self.txns()).all(|txn| {
            let mut kept = true;
            self.successors(&inferred, txn, |next| {
                kept &= next >= self.txns() || place(txn) < place(next);
            });
            kept
        })
    }

    /// Transactions by how much comes before them and how little after: a clock for
    /// histories that have none, a few dozen places off on average.
    pub fn by_depth(&self, inferred: &Inferred, sorted: &[u32]) -> Vec<u32> {
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
        group(2 * longest as usize + 2, depth, |txn| txn).all
    }
}

/// The same problem with its transactions in another order.
pub(super) fn renumbered(problem: &Problem, order: &[u32]) -> Problem {
    let mut number = vec![0u32; order.len()];
    for (place, txn) in order.iter().enumerate() {
        number[*txn as usize] = place as u32;
    }
    let renamed = |txn: u32| if txn == INITIAL { INITIAL } else { number[txn as usize] };
    let mut reads = rows(order.len(), problem.reads.all.len());
    let mut writes = rows(order.len(), problem.writes.all.len());
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

fn rows<T>(count: usize, elements: usize) -> Rows<T> {
    let mut starts = Vec::with_capacity(count + 1);
    starts.push(0);
    Rows { starts, all: Vec::with_capacity(elements) }
}

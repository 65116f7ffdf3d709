//! Derives edges from resolved reads and version orders.

use super::arc::{Arc, EdgeKinds, Graph};
use crate::anomaly::EdgeKind;
use crate::digraph::RowCounter;
use crate::predicate::PredicateEdges;
use crate::resolve::{ResolvedHistory, UNKNOWN_POSITION};
use crate::types::INITIAL;

/// Readers of the initial version of an item precede all of its writers. Where the solver
/// decides, edges only serve to find a witness, and this many are enough.
const EDGES_FROM_INITIAL: usize = 4096;

impl Graph {
    /// The certain edges of these kinds.
    pub(crate) fn of(
        resolved: &ResolvedHistory<'_>,
        predicates: &PredicateEdges,
        kinds: EdgeKinds,
    ) -> Graph {
        let nodes = resolved.nodes() as u32;
        let moments = if kinds.has(EdgeKind::RealTime) { ends(resolved) } else { Vec::new() };
        let total = nodes as usize + moments.len();
        let mut counter = RowCounter::new(total);
        each_edge(resolved, predicates, kinds, &moments, |from, _| counter.count(from));
        let mut arcs = counter.into_filler();
        each_edge(resolved, predicates, kinds, &moments, |from, arc| arcs.push(from, arc));
        Graph { nodes, arcs: arcs.finish() }
    }
}

fn each_edge(
    resolved: &ResolvedHistory<'_>,
    predicates: &PredicateEdges,
    kinds: EdgeKinds,
    moments: &[u64],
    mut edge: impl FnMut(u32, Arc),
) {
    let nodes = resolved.nodes() as u32;
    if kinds.has(EdgeKind::Session) {
        let mut last = vec![INITIAL; resolved.history.session_count()];
        for node in 0..nodes {
            let session = resolved.history.session_of(resolved.txns[node as usize]).0 as usize;
            if last[session] != INITIAL {
                edge(last[session], Arc::new(node, EdgeKind::Session, 0));
            }
            last[session] = node;
        }
    }
    if kinds.has(EdgeKind::RealTime) {
        for moment in 1..moments.len() as u32 {
            edge(nodes + moment - 1, Arc::new(nodes + moment, EdgeKind::RealTime, 0));
        }
        for node in 0..nodes {
            let Some((begin, end)) = resolved.history.times(resolved.txns[node as usize]) else {
                continue;
            };
            if let Ok(moment) = moments.binary_search(&end) {
                edge(node, Arc::new(nodes + moment as u32, EdgeKind::RealTime, 0));
            }
            let before = moments.partition_point(|moment| *moment < begin);
            if before > 0 {
                edge(nodes + before as u32 - 1, Arc::new(node, EdgeKind::RealTime, 0));
            }
        }
    }
    if kinds.has(EdgeKind::Ww) {
        write_edges(resolved, &mut edge);
    }
    for node in 0..nodes {
        for read in resolved.reads.of(node) {
            if kinds.has(EdgeKind::Wr) && read.writer != INITIAL && read.writer != node {
                edge(read.writer, Arc::new(node, EdgeKind::Wr, read.item));
            }
        }
    }
    if kinds.has(EdgeKind::Rw) {
        anti_edges(resolved, &mut edge);
    }
    for (number, from, to, kind) in predicates.edges() {
        if kinds.has(kind) {
            edge(from, Arc::new(to, kind, number));
        }
    }
}

/// The distinct end times.
fn ends(resolved: &ResolvedHistory<'_>) -> Vec<u64> {
    let mut ends: Vec<u64> = resolved
        .txns
        .iter()
        .filter_map(|txn| resolved.history.times(*txn))
        .map(|(_, end)| end)
        .filter(|end| *end != u64::MAX)
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn write_edges(resolved: &ResolvedHistory<'_>, edge: &mut impl FnMut(u32, Arc)) {
    for item in 0..resolved.order.len() as u32 {
        let order = resolved.order.of(item);
        for pair in order.windows(2) {
            edge(pair[0], Arc::new(pair[1], EdgeKind::Ww, item));
        }
        if let Some(last) = order.last() {
            for writer in resolved.tail.of(item).iter().filter(|writer| *writer != last) {
                edge(*last, Arc::new(*writer, EdgeKind::Ww, item));
            }
        }
    }
}

fn anti_edges(resolved: &ResolvedHistory<'_>, edge: &mut impl FnMut(u32, Arc)) {
    let overwriters = Overwriters::of(resolved);
    for node in 0..resolved.nodes() as u32 {
        for read in resolved.reads.of(node) {
            if read.position == UNKNOWN_POSITION {
                for writer in overwriters.of_version(read.writer, read.item) {
                    if *writer != node {
                        edge(node, Arc::new(*writer, EdgeKind::Rw, read.item));
                    }
                }
                continue;
            }
            match resolved.order.of(read.item).get(read.position as usize) {
                Some(next) if *next != node => edge(node, Arc::new(*next, EdgeKind::Rw, read.item)),
                // Its own write came next: the ww edge from that write orders the rest.
                Some(_) => {}
                None => {
                    let tail = resolved.tail.of(read.item);
                    let enough = if resolved.is_searched(read.item) {
                        EDGES_FROM_INITIAL
                    } else {
                        tail.len()
                    };
                    for writer in tail.iter().take(enough).filter(|writer| **writer != node) {
                        edge(node, Arc::new(*writer, EdgeKind::Rw, read.item));
                    }
                }
            }
        }
    }
}

/// For items of unknown version order: the transactions that overwrote a version after having
/// read it. They precede no other reader of that version. Two per version are enough for a
/// witness.
struct Overwriters(Vec<(u32, u32, [u32; 2], u8)>);

impl Overwriters {
    fn of(resolved: &ResolvedHistory<'_>) -> Overwriters {
        let mut pairs = Vec::new();
        for node in 0..resolved.nodes() as u32 {
            for read in resolved.reads.of(node) {
                if read.position == UNKNOWN_POSITION
                    && resolved.last_write(node, read.item).is_some()
                {
                    pairs.push((read.item, read.writer, node));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut overwriters: Vec<(u32, u32, [u32; 2], u8)> = Vec::new();
        for (item, writer, next) in pairs {
            match overwriters.last_mut() {
                Some((i, w, two, count)) if (*i, *w) == (item, writer) => {
                    if *count < 2 {
                        two[*count as usize] = next;
                        *count += 1;
                    }
                }
                _ => overwriters.push((item, writer, [next, 0], 1)),
            }
        }
        Overwriters(overwriters)
    }

    fn of_version(&self, writer: u32, item: u32) -> &[u32] {
        match self.0.binary_search_by_key(&(item, writer), |(item, writer, ..)| (*item, *writer)) {
            Ok(at) => &self.0[at].2[..self.0[at].3 as usize],
            Err(_) => &[],
        }
    }
}

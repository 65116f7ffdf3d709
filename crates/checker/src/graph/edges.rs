//! From joined reads and known orders to edges.

use super::{Arc, Graph, Kinds};
use crate::anomaly::Kind;
use crate::joined::{Joined, UNPLACED};
use crate::predicate::PredicateEdges;
use crate::registers::INITIAL;

/// Readers of the first version of an item come before all its writers. Where a search
/// decides, edges serve only to find a witness, and so many are enough.
const EDGES_FROM_INITIAL: usize = 4096;

impl Graph {
    /// The edges of these kinds that are certain.
    pub(crate) fn of(joined: &Joined<'_>, predicates: &PredicateEdges, kinds: Kinds) -> Graph {
        let nodes = joined.nodes() as u32;
        let moments = if kinds.has(Kind::Time) { ends(joined) } else { Vec::new() };
        let total = nodes as usize + moments.len();
        let mut starts = vec![0_u32; total + 1];
        each_edge(joined, predicates, kinds, &moments, |from, _| starts[from as usize + 1] += 1);
        for node in 0..total {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut arcs = vec![Arc { to: 0, label: 0 }; starts[total] as usize];
        each_edge(joined, predicates, kinds, &moments, |from, arc| {
            arcs[next[from as usize] as usize] = arc;
            next[from as usize] += 1;
        });
        Graph { nodes, starts, arcs }
    }
}

fn each_edge(
    joined: &Joined<'_>,
    predicates: &PredicateEdges,
    kinds: Kinds,
    moments: &[u64],
    mut edge: impl FnMut(u32, Arc),
) {
    let nodes = joined.nodes() as u32;
    if kinds.has(Kind::Session) {
        let mut last = vec![INITIAL; joined.history.session_count()];
        for node in 0..nodes {
            let session = joined.history.session_of(joined.txns[node as usize]).0 as usize;
            if last[session] != INITIAL {
                edge(last[session], Arc::new(node, Kind::Session, 0));
            }
            last[session] = node;
        }
    }
    if kinds.has(Kind::Time) {
        for moment in 1..moments.len() as u32 {
            edge(nodes + moment - 1, Arc::new(nodes + moment, Kind::Time, 0));
        }
        for node in 0..nodes {
            let Some((begin, end)) = joined.history.times(joined.txns[node as usize]) else {
                continue;
            };
            if let Ok(moment) = moments.binary_search(&end) {
                edge(node, Arc::new(nodes + moment as u32, Kind::Time, 0));
            }
            let before = moments.partition_point(|moment| *moment < begin);
            if before > 0 {
                edge(nodes + before as u32 - 1, Arc::new(node, Kind::Time, 0));
            }
        }
    }
    if kinds.has(Kind::Ww) {
        write_edges(joined, &mut edge);
    }
    for node in 0..nodes {
        for read in joined.reads.of(node) {
            if kinds.has(Kind::Wr) && read.writer != INITIAL && read.writer != node {
                edge(read.writer, Arc::new(node, Kind::Wr, read.item));
            }
        }
    }
    if kinds.has(Kind::Rw) {
        anti_edges(joined, &mut edge);
    }
    predicates.each(|from, arc| {
        if kinds.has(arc.kind()) {
            edge(from, arc);
        }
    });
}

/// The moments at which somebody ended, each once.
fn ends(joined: &Joined<'_>) -> Vec<u64> {
    let mut ends: Vec<u64> = joined
        .txns
        .iter()
        .filter_map(|txn| joined.history.times(*txn))
        .map(|(_, end)| end)
        .filter(|end| *end != u64::MAX)
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn write_edges(joined: &Joined<'_>, edge: &mut impl FnMut(u32, Arc)) {
    for item in 0..joined.order.len() as u32 {
        let order = joined.order.of(item);
        for pair in order.windows(2) {
            edge(pair[0], Arc::new(pair[1], Kind::Ww, item));
        }
        if let Some(last) = order.last() {
            for writer in joined.tail.of(item).iter().filter(|writer| *writer != last) {
                edge(*last, Arc::new(*writer, Kind::Ww, item));
            }
        }
    }
}

fn anti_edges(joined: &Joined<'_>, edge: &mut impl FnMut(u32, Arc)) {
    let successors = Successors::of(joined);
    for node in 0..joined.nodes() as u32 {
        for read in joined.reads.of(node) {
            if read.place == UNPLACED {
                for writer in successors.of_version(read.writer, read.item) {
                    if *writer != node {
                        edge(node, Arc::new(*writer, Kind::Rw, read.item));
                    }
                }
                continue;
            }
            match joined.order.of(read.item).get(read.place as usize) {
                Some(next) if *next != node => edge(node, Arc::new(*next, Kind::Rw, read.item)),
                // Its own write came next: what follows that, follows it.
                Some(_) => {}
                None => {
                    let tail = joined.tail.of(read.item);
                    let enough =
                        if joined.is_searched(read.item) { EDGES_FROM_INITIAL } else { tail.len() };
                    for writer in tail.iter().take(enough).filter(|writer| **writer != node) {
                        edge(node, Arc::new(*writer, Kind::Rw, read.item));
                    }
                }
            }
        }
    }
}

/// Where the order of an item is unknown: who overwrote which version after having
/// read it, so that it must come later than all who read that version. Two for each version are
/// enough for a witness.
struct Successors(Vec<(u32, u32, [u32; 2], u8)>);

impl Successors {
    fn of(joined: &Joined<'_>) -> Successors {
        let mut pairs = Vec::new();
        for node in 0..joined.nodes() as u32 {
            for read in joined.reads.of(node) {
                if read.place == UNPLACED && joined.wrote(node, read.item).is_some() {
                    pairs.push((read.item, read.writer, node));
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut successors: Vec<(u32, u32, [u32; 2], u8)> = Vec::new();
        for (item, writer, next) in pairs {
            match successors.last_mut() {
                Some((i, w, two, count)) if (*i, *w) == (item, writer) => {
                    if *count < 2 {
                        two[*count as usize] = next;
                        *count += 1;
                    }
                }
                _ => successors.push((item, writer, [next, 0], 1)),
            }
        }
        Successors(successors)
    }

    fn of_version(&self, writer: u32, item: u32) -> &[u32] {
        match self.0.binary_search_by_key(&(item, writer), |(item, writer, ..)| (*item, *writer)) {
            Ok(at) => &self.0[at].2[..self.0[at].3 as usize],
            Err(_) => &[],
        }
    }
}

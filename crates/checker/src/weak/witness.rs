//! The cycle behind a broken weak level, made only once it is known to be there.

use super::{Told, knowledge, known_edges};
use crate::anomaly::{Certainty, Edge, Kind};
use crate::joined::Joined;
use crate::registers::INITIAL;
use crate::witness::dependency;
use std::collections::VecDeque;

#[derive(Clone, Copy)]
enum Label {
    Known(Kind, u32),
    /// The number of what was told.
    Told(u32),
}

/// Edges with their labels, those of a node together.
struct Labelled {
    starts: Vec<u32>,
    edges: Vec<(u32, Label)>,
}

impl Labelled {
    fn of(nodes: usize, mut edges: Vec<(u32, u32, Label)>) -> Labelled {
        edges.sort_by_key(|(from, ..)| *from);
        let mut starts = vec![0_u32; nodes + 1];
        for (from, ..) in &edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        Labelled { starts, edges: edges.into_iter().map(|(_, to, label)| (to, label)).collect() }
    }

    /// A shortest way, as its edges; empty if there is none.
    fn way(&self, begin: u32, end: u32) -> Vec<(u32, u32, Label)> {
        let nodes = self.starts.len() - 1;
        let mut from: Vec<Option<(u32, Label)>> = vec![None; nodes];
        let mut queue = VecDeque::from([begin]);
        while let Some(node) = queue.pop_front() {
            let range =
                self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
            for (to, label) in &self.edges[range] {
                if *to != begin && from[*to as usize].is_none() {
                    from[*to as usize] = Some((node, *label));
                    queue.push_back(*to);
                }
            }
            if from[end as usize].is_some() {
                break;
            }
        }
        let (mut way, mut node) = (Vec::new(), end);
        while let Some((before, label)) = from[node as usize] {
            way.push((before, node, label));
            node = before;
        }
        way.reverse();
        way
    }
}

/// The edges of a cycle, given all that was told of transactions that are in one, or the one
/// thing that is wrong by itself.
pub(crate) fn cycle(joined: &Joined<'_>, told: &[Told], sessions: bool) -> Vec<Edge> {
    let reads = Labelled::of(joined.nodes(), known(joined, sessions, false));
    let because = |told: &Told| -> Vec<Edge> {
        // The reader was bound to know the earlier version, and read another.
        let way = reads.way(told.earlier, told.reader);
        let mut edges: Vec<Edge> = way
            .into_iter()
            .filter_map(|(from, to, label)| match label {
                Label::Known(kind, item) => Some(dependency(joined, (from, to), kind, item)),
                Label::Told(_) => None,
            })
            .collect();
        edges.push(dependency(joined, (told.reader, told.earlier), Kind::Rw, told.item));
        edges
    };
    let Some(first) = told.first() else {
        // Reads, sessions and known orders alone close it.
        let all = known(joined, sessions, true);
        let graph = Labelled::of(joined.nodes(), all.clone());
        return all
            .iter()
            .find_map(|(from, to, label)| {
                let mut way = graph.way(*to, *from);
                (!way.is_empty()).then(|| {
                    way.insert(0, (*from, *to, *label));
                    edges(joined, way, told, &because)
                })
            })
            .unwrap_or_default();
    };
    if first.later == INITIAL {
        return because(first);
    }
    let mut all = known(joined, sessions, true);
    all.extend(
        told.iter().zip(0..).map(|(told, number)| (told.earlier, told.later, Label::Told(number))),
    );
    let mut way = Labelled::of(joined.nodes(), all).way(first.later, first.earlier);
    way.insert(0, (first.earlier, first.later, Label::Told(0)));
    edges(joined, way, told, &because)
}

fn edges(
    joined: &Joined<'_>,
    way: Vec<(u32, u32, Label)>,
    told: &[Told],
    because: &dyn Fn(&Told) -> Vec<Edge>,
) -> Vec<Edge> {
    let edge = |(from, to, label)| match label {
        Label::Known(kind, item) => dependency(joined, (from, to), kind, item),
        Label::Told(number) => {
            let told = &told[number as usize];
            let certainty = Certainty::Otherwise(because(told));
            Edge { certainty, ..dependency(joined, (from, to), Kind::Ww, told.item) }
        }
    };
    way.into_iter().map(edge).collect()
}

fn known(joined: &Joined<'_>, sessions: bool, orders: bool) -> Vec<(u32, u32, Label)> {
    let mut edges = Vec::new();
    let add = |from, to, kind, item| edges.push((from, to, Label::Known(kind, item)));
    if orders {
        known_edges(joined, sessions, add);
    } else {
        knowledge(joined, sessions, add);
    }
    edges
}

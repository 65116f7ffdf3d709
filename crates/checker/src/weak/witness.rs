//! The cycle behind a broken weak level, made only once it is known to be there.

use super::{Told, known_edges, known_orders};
use crate::anomaly::{Certainty, Edge, Kind};
use crate::graph::Components;
use crate::joined::Joined;
use crate::registers::{INITIAL, Rows};
use crate::weak::Listed;
use crate::witness::dependency;
use std::collections::VecDeque;

#[derive(Clone, Copy)]
enum Label {
    Known(Kind, u32),
    /// The number of what was told.
    Told(u32),
}

/// Which edges lead to each transaction. Reads are taken from where they are: they are most
/// of the edges, and a way passes few of them.
struct Leading<'a, 'h> {
    joined: &'a Joined<'h>,
    /// The one before in the session, or [`INITIAL`]; empty if sessions do not count.
    in_session: Vec<u32>,
    /// All others, by where they lead.
    others: Rows<(u32, Label)>,
}

impl<'a, 'h> Leading<'a, 'h> {
    /// By reads and sessions, and by these edges.
    fn of(joined: &'a Joined<'h>, sessions: bool, others: &[(u32, u32, Label)]) -> Self {
        let nodes = joined.nodes();
        let mut starts = vec![0_u32; nodes + 1];
        for (_, to, _) in others {
            starts[*to as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut all = vec![(INITIAL, Label::Told(0)); others.len()];
        for (from, to, label) in others {
            all[next[*to as usize] as usize] = (*from, *label);
            next[*to as usize] += 1;
        }
        let in_session = if sessions { joined.before_in_session() } else { Vec::new() };
        Leading { joined, in_session, others: Rows { starts, all } }
    }

    fn each(&self, node: u32, mut visit: impl FnMut(u32, Label)) {
        for read in self.joined.reads.of(node) {
            visit(read.writer, Label::Known(Kind::Wr, read.item));
        }
        if let Some(before) = self.in_session.get(node as usize) {
            visit(*before, Label::Known(Kind::Session, 0));
        }
        for (from, label) in self.others.of(node) {
            visit(*from, *label);
        }
    }

    /// A shortest way, as its edges; empty if there is none. Looked for from its end.
    fn way(&self, begin: u32, end: u32) -> Vec<(u32, u32, Label)> {
        let mut onwards: Vec<Option<(u32, Label)>> = vec![None; self.joined.nodes()];
        let mut queue = VecDeque::from([end]);
        while let Some(node) = queue.pop_front() {
            self.each(node, |from, label| {
                let passed = |from: u32| from == end || onwards[from as usize].is_some();
                if from != INITIAL && !passed(from) {
                    onwards[from as usize] = Some((node, label));
                    queue.push_back(from);
                }
            });
            if onwards[begin as usize].is_some() {
                break;
            }
        }
        let (mut way, mut node) = (Vec::new(), begin);
        while let Some((to, label)) = onwards[node as usize] {
            way.push((node, to, label));
            node = to;
        }
        way
    }
}

/// The edges of a cycle, given what was told of transactions that are in one, or the one
/// thing that is wrong by itself.
pub(crate) fn cycle(joined: &Joined<'_>, told: &[Told], sessions: bool) -> Vec<Edge> {
    let reads = Leading::of(joined, sessions, &[]);
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
    let first = match told.first() {
        Some(told) if told.later == INITIAL => return because(told),
        Some(told) => Some((told.earlier, told.later, Label::Told(0))),
        // Reads, sessions and known orders alone close it.
        None => known_in_a_cycle(joined, sessions),
    };
    let Some(first) = first else { return Vec::new() };
    let mut others = Vec::new();
    known_orders(joined, |from, to, item| others.push((from, to, Label::Known(Kind::Ww, item))));
    others.extend(
        told.iter().zip(0..).map(|(told, number)| (told.earlier, told.later, Label::Told(number))),
    );
    let way = Leading::of(joined, sessions, &others).way(first.1, first.0);
    let edge = |(from, to, label)| match label {
        Label::Known(kind, item) => dependency(joined, (from, to), kind, item),
        Label::Told(number) => {
            let told = &told[number as usize];
            let certainty = Certainty::Otherwise(because(told));
            Edge { certainty, ..dependency(joined, (from, to), Kind::Ww, told.item) }
        }
    };
    [first].into_iter().chain(way).map(edge).collect()
}

/// An edge that is known without being told and lies in a cycle of such edges.
fn known_in_a_cycle(joined: &Joined<'_>, sessions: bool) -> Option<(u32, u32, Label)> {
    let mut edges = Vec::new();
    known_edges(joined, sessions, |from, to, _, _| edges.push((from, to)));
    let components = Components::of(&Listed::of(joined.nodes(), edges));
    let mut found = None;
    known_edges(joined, sessions, |from, to, kind, item| {
        if found.is_none() && components.of[from as usize] == components.of[to as usize] {
            found = Some((from, to, Label::Known(kind, item)));
        }
    });
    found
}

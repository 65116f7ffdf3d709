//! Monotonic atomic view, read atomic and causal: decided without knowing the order of
//! versions, after Biswas and Enea (OOPSLA 2019) and AWDIT (PLDI 2025). Each has a rule of one
//! form: a reader that saw x from T1, and that was bound to know of T2's write to x, tells
//! that T2's version came before T1's. The level holds if all that is told so, together with
//! what is known, has no cycle.

mod causal;
mod clocks;
mod line;
mod stale;
#[cfg(test)]
mod tests;
mod witness;

use crate::anomaly::Kind;
use crate::graph::{Components, Neighbours};
use crate::joined::{Joined, Read};
use crate::registers::INITIAL;
use std::collections::HashSet;

pub(crate) use line::Line;
use stale::Against;
pub(crate) use witness::cycle;

/// A line that readers tell against is mended so many times before all is looked at.
const MENDED: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// A reader knows of a transaction from the first read from it on.
    Monotonic,
    /// A reader knows of all from whom it read.
    Atomic,
    /// A reader knows of all that came before it by reads and sessions.
    Causal,
}

/// What a reader tells: the version of `earlier` came before that of `later`, which
/// it read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub earlier: u32,
    /// May be [`INITIAL`]; then the rule is broken at once.
    pub later: u32,
    pub item: u32,
    pub reader: u32,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Holds,
    /// What was told of transactions that are in a cycle, or the one thing that is wrong by
    /// itself; nothing if what is known without being told has a cycle.
    Violated(Vec<Told>),
    /// There are too many sessions to follow what each knew of all others.
    TooWide,
}

pub(crate) fn decide(joined: &Joined<'_>, rule: Rule, sessions: bool) -> Outcome {
    in_a_line(joined, rule, sessions).unwrap_or_else(|| by_all_that_is_told(joined, rule, sessions))
}

fn by_all_that_is_told(joined: &Joined<'_>, rule: Rule, sessions: bool) -> Outcome {
    let mut edges = Vec::new();
    let mut broken = None;
    let complete = each_told(joined, rule, sessions, |told| {
        if told.later == INITIAL {
            broken.get_or_insert(told);
        } else {
            edges.push((told.earlier, told.later));
        }
    });
    if let Some(told) = broken {
        return Outcome::Violated(vec![told]);
    }
    if !complete {
        return Outcome::TooWide;
    }
    known_edges(joined, sessions, |from, to, _, _| edges.push((from, to)));
    let components = Components::of(&Listed::of(joined.nodes(), edges));
    if components.is_acyclic() {
        return Outcome::Holds;
    }
    let mut cyclic = Vec::new();
    each_told(joined, rule, sessions, |told| {
        if told.later != INITIAL
            && components.of[told.earlier as usize] == components.of[told.later as usize]
        {
            cyclic.push(told);
        }
    });
    Outcome::Violated(cyclic)
}

/// Looks for a line against which no reader tells anything: then all that is told and known
/// leads the same way, and the level holds. It is violated if what readers tell against the
/// lines that were tried closes a cycle. None if neither was found.
fn in_a_line(joined: &Joined<'_>, rule: Rule, sessions: bool) -> Option<Outcome> {
    let Some(mut line) = Line::of(joined, sessions) else {
        return Some(Outcome::Violated(Vec::new()));
    };
    let mut told: Vec<Told> = Vec::new();
    for _ in 0..MENDED {
        match stale::told_against(joined, rule, sessions, &line, clocks::KEPT) {
            Against::Told(more) if more.is_empty() => return Some(Outcome::Holds),
            Against::Told(more) => told.extend(more),
            Against::Broken(told) => return Some(Outcome::Violated(vec![told])),
            Against::TooMuch => return None,
        }
        match line.keeping(joined, sessions, &told) {
            Ok(mended) => line = mended,
            Err(cycle) => {
                let steps = cycle.iter().zip(cycle.iter().cycle().skip(1));
                let steps: HashSet<(u32, u32)> = steps.map(|(to, from)| (*from, *to)).collect();
                told.retain(|told| steps.contains(&(told.earlier, told.later)));
                return Some(Outcome::Violated(told));
            }
        }
    }
    None
}

/// What needs no rule: reads, sessions if they count, and known orders of versions. Each edge
/// comes with its kind and item.
fn known_edges(joined: &Joined<'_>, sessions: bool, mut edge: impl FnMut(u32, u32, Kind, u32)) {
    knowledge(joined, sessions, &mut edge);
    known_orders(joined, |from, to, item| edge(from, to, Kind::Ww, item));
}

/// Each version and the next one of those whose order is known.
fn known_orders(joined: &Joined<'_>, mut edge: impl FnMut(u32, u32, u32)) {
    for item in 0..joined.order.len() as u32 {
        let order = joined.order.of(item);
        for pair in order.windows(2) {
            edge(pair[0], pair[1], item);
        }
        if let Some(last) = order.last() {
            for writer in joined.tail.of(item) {
                edge(*last, *writer, item);
            }
        }
    }
}

/// By what transactions know of each other: reads, and sessions if they count.
fn knowledge(joined: &Joined<'_>, sessions: bool, mut edge: impl FnMut(u32, u32, Kind, u32)) {
    let mut last = vec![INITIAL; if sessions { joined.history.session_count() } else { 0 }];
    for node in 0..joined.nodes() as u32 {
        for read in joined.reads.of(node) {
            if read.writer != INITIAL && read.writer != node {
                edge(read.writer, node, Kind::Wr, read.item);
            }
        }
        if sessions {
            let session = joined.history.session_of(joined.txns[node as usize]).0 as usize;
            if last[session] != INITIAL {
                edge(last[session], node, Kind::Session, 0);
            }
            last[session] = node;
        }
    }
}

/// Calls with all that readers tell. False if that was too much to follow.
fn each_told(joined: &Joined<'_>, rule: Rule, sessions: bool, mut told: impl FnMut(Told)) -> bool {
    if rule == Rule::Causal {
        return causal::each_told(joined, told);
    }
    let items = joined.history.item_count();
    // For each item its last writer in the session that is looked at.
    let mut last_writer = vec![(INITIAL, INITIAL); if sessions { items } else { 0 }];
    let mut by_item: Vec<(u32, u32, u32)> = Vec::new();
    let mut sources: Vec<(u32, u32)> = Vec::new();
    let nodes: Vec<u32> =
        if sessions { by_session(joined) } else { (0..joined.nodes() as u32).collect() };
    for reader in nodes {
        let reads = joined.reads.of(reader);
        by_item.clear();
        by_item.extend(reads.iter().zip(0..).map(|(read, place)| (read.item, place, read.writer)));
        by_item.sort_unstable();
        sources.clear();
        sources.extend(
            reads
                .iter()
                .zip(0..)
                .filter(|(r, _)| r.writer != INITIAL && r.writer != reader)
                .map(|(read, place)| (read.writer, place)),
        );
        sources.sort_unstable();
        sources.dedup_by_key(|(writer, _)| *writer);
        for (known, first) in &sources {
            let from = if rule == Rule::Monotonic { *first + 1 } else { 0 };
            meet(joined, *known, from, &by_item, |item, writer| {
                told(Told { earlier: *known, later: writer, item, reader });
            });
        }
        if sessions {
            let session = joined.history.session_of(joined.txns[reader as usize]).0;
            if rule == Rule::Atomic {
                for Read { item, writer, .. } in reads {
                    let (of, last) = last_writer[*item as usize];
                    if of == session && last != *writer {
                        told(Told { earlier: last, later: *writer, item: *item, reader });
                    }
                }
            }
            for write in joined.writes.of(reader) {
                last_writer[write.item as usize] = (session, reader);
            }
        }
    }
    true
}

/// Nodes session after session, each in its order.
fn by_session(joined: &Joined<'_>) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..joined.nodes() as u32).collect();
    nodes.sort_by_key(|node| joined.history.session_of(joined.txns[*node as usize]).0);
    nodes
}

/// The items that `known` wrote and that were read, from a place on, from another. Goes
/// through the smaller side.
fn meet(
    joined: &Joined<'_>,
    known: u32,
    from: u32,
    by_item: &[(u32, u32, u32)],
    mut tell: impl FnMut(u32, u32),
) {
    let writes = joined.writes.of(known);
    if writes.len() < by_item.len() {
        for write in writes {
            let at =
                by_item.partition_point(|(item, place, _)| (*item, *place) < (write.item, from));
            for (_, _, writer) in by_item[at..].iter().take_while(|(item, ..)| *item == write.item)
            {
                if *writer != known {
                    tell(write.item, *writer);
                }
            }
        }
    } else {
        for (item, place, writer) in by_item {
            if *place >= from && *writer != known && joined.wrote(known, *item).is_some() {
                tell(*item, *writer);
            }
        }
    }
}

/// Edges from a list.
pub(crate) struct Listed {
    starts: Vec<u32>,
    to: Vec<u32>,
}

impl Listed {
    pub(crate) fn of(nodes: usize, edges: Vec<(u32, u32)>) -> Listed {
        let mut starts = vec![0_u32; nodes + 1];
        for (from, _) in &edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let (mut next, mut to) = (starts.clone(), vec![0; edges.len()]);
        for (from, target) in edges {
            to[next[from as usize] as usize] = target;
            next[from as usize] += 1;
        }
        Listed { starts, to }
    }

    pub(crate) fn from(&self, node: u32) -> &[u32] {
        &self.to[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}

impl Neighbours for Listed {
    fn len(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    fn next(&self, node: u32, place: u32) -> Option<(u32, u32)> {
        self.from(node).get(place as usize).map(|to| (*to, place + 1))
    }
}

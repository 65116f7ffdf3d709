//! A total order of all operations that keeps their times and the edges of the rules, and its
//! batches.
//!
//! An operation may come when all that ended before it started have come, which is when the
//! earliest end of those that are missing is not before its start: one pointer into the ends
//! and one into the starts suffice. Of those that may come the first to end comes first. So only
//! what overlaps is ever looked at.

use super::facts::{Facts, place};
use super::{Edge, Edges, Inferred, ProtocolViolation, Rule};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub(super) fn topological_order(facts: &Facts<'_>, edges: Edges<'_, '_>) -> Inferred {
    let Edges { mut list, early, mut violations, open, .. } = edges;
    let count = place(facts.operations.len());
    let real = |node: u32| if node < count { node } else { early[(node - count) as usize] };
    // An operation that was sent early takes effect later.
    for (number, operation) in early.iter().enumerate() {
        let before = count + place(number);
        list.push(Edge { before, after: *operation, rule: Rule::Chosen });
    }
    let graph = EdgeIndex::new(count as usize + early.len(), &list, |edge| edge.before);
    let NodeOrder { order: order_nodes, cycles, given_up } =
        order_nodes(facts, &early, &list, &graph);
    for edge in &cycles {
        let Edge { before, after, .. } = list[*edge as usize];
        violations
            .entry(ProtocolViolation::Circle)
            .or_default()
            .note(real(after), Some(real(before)));
    }
    let (mut order, mut sent_early) = (Vec::with_capacity(count as usize), Vec::new());
    for node in order_nodes {
        if node < count {
            order.push(node);
        } else {
            sent_early.push((real(node), place(order.len())));
        }
    }
    let batches = batches(facts, |edge| real(list[edge as usize].after), &graph, &order);
    let mut decided: BTreeMap<Rule, u64> = BTreeMap::new();
    let mut kept = Vec::with_capacity(list.len());
    let inferred_edges = list.len() - early.len();
    for (edge, given_up) in list.into_iter().zip(given_up).take(inferred_edges) {
        if given_up {
            continue;
        }
        let by_times = facts.must(real(edge.before), real(edge.after));
        *decided.entry(if by_times { Rule::Times } else { edge.rule }).or_default() += 1;
        // An operation took effect after all that came before its submission.
        if edge.rule != Rule::Chosen && edge.before < count {
            kept.push(Edge { after: real(edge.after), ..edge });
        }
    }
    let (edges, early) = (kept, sent_early);
    Inferred { control: facts.control, order, batches, early, edges, decided, violations, open }
}

/// The numbers of the edges at each operation, on one of their sides.
struct EdgeIndex {
    starts: Vec<u32>,
    edges: Vec<u32>,
}

impl EdgeIndex {
    fn new(operations: usize, edges: &[Edge], side: fn(&Edge) -> u32) -> EdgeIndex {
        let mut starts = vec![0u32; operations + 1];
        edges.iter().for_each(|edge| starts[side(edge) as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut fill = starts.clone();
        let mut placed = vec![0; edges.len()];
        for (number, edge) in edges.iter().enumerate() {
            let next = &mut fill[side(edge) as usize];
            placed[*next as usize] = place(number);
            *next += 1;
        }
        EdgeIndex { starts, edges: placed }
    }

    fn of(&self, operation: u32) -> &[u32] {
        let at = operation as usize;
        &self.edges[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

struct NodeOrder {
    order: Vec<u32>,
    /// The edges that contradict the others, and all that the order does not keep.
    cycles: Vec<u32>,
    given_up: Vec<bool>,
}

fn order_nodes(facts: &Facts<'_>, early: &[u32], edges: &[Edge], graph: &EdgeIndex) -> NodeOrder {
    let operations = facts.operations.len();
    let count = operations + early.len();
    let real = |node: u32| {
        let early = || early[node as usize - operations];
        facts.operation(if (node as usize) < operations { node } else { early() })
    };
    let mut waits_for = vec![0u32; count];
    edges.iter().for_each(|edge| waits_for[edge.after as usize] += 1);
    let mut by_end = facts.by_end.clone();
    by_end.extend(place(operations)..place(count));
    if !early.is_empty() {
        by_end.sort_by_key(|node| real(*node).end);
    }
    let mut by_start = by_end.clone();
    by_start.sort_by_key(|node| real(*node).start);
    let (mut placed, mut admitted) = (vec![false; count], vec![false; count]);
    let (mut next_end, mut next_start) = (0, 0);
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut order = Vec::with_capacity(count);
    let mut cycles = Vec::new();
    let mut into: Option<EdgeIndex> = None;
    let mut given_up = vec![false; edges.len()];
    while order.len() < count {
        while placed[by_end[next_end] as usize] {
            next_end += 1;
        }
        let missing = by_end[next_end];
        while next_start < count && real(by_start[next_start]).start <= real(missing).end {
            let node = by_start[next_start];
            next_start += 1;
            admitted[node as usize] = true;
            if waits_for[node as usize] == 0 {
                ready.push(Reverse((real(node).end, node)));
            }
        }
        let now = match ready.pop() {
            Some(Reverse((_, node))) => node,
            None => {
                let into = into.get_or_insert_with(|| EdgeIndex::new(count, edges, |e| e.after));
                let unmet = |node: u32| {
                    let edges_in = into.of(node).iter().copied();
                    edges_in.filter(|edge| {
                        !placed[edges[*edge as usize].before as usize] && !given_up[*edge as usize]
                    })
                };
                match find_cycle(missing, edges, unmet, |node| admitted[node as usize]) {
                    // What was chosen was chosen wrongly.
                    Some(chosen) => {
                        given_up[chosen as usize] = true;
                        let after = edges[chosen as usize].after;
                        waits_for[after as usize] -= 1;
                        if waits_for[after as usize] == 0 && admitted[after as usize] {
                            ready.push(Reverse((real(after).end, after)));
                        }
                        continue;
                    }
                    // The first to end does not wait any longer.
                    None => {
                        let left: Vec<u32> = unmet(missing).collect();
                        left.iter().for_each(|edge| given_up[*edge as usize] = true);
                        cycles.extend(left);
                        missing
                    }
                }
            }
        };
        if std::mem::replace(&mut placed[now as usize], true) {
            continue;
        }
        order.push(now);
        for edge in graph.of(now).iter().filter(|edge| !given_up[**edge as usize]) {
            let after = edges[*edge as usize].after;
            let waits = &mut waits_for[after as usize];
            *waits -= 1;
            if *waits == 0 && admitted[after as usize] && !placed[after as usize] {
                ready.push(Reverse((real(after).end, after)));
            }
        }
    }
    NodeOrder { order, cycles, given_up }
}

/// An edge by choice on a cycle through an operation that may not wait for any other.
fn find_cycle<I: Iterator<Item = u32>>(
    missing: u32,
    edges: &[Edge],
    unmet: impl Fn(u32) -> I,
    admitted: impl Fn(u32) -> bool,
) -> Option<u32> {
    let (mut node, mut chosen) = (missing, None);
    let mut steps = 0;
    // An operation that is not admitted waits for the end of the missing one.
    while admitted(node) && steps <= edges.len() {
        let edge = unmet(node).next()?;
        if edges[edge as usize].rule == Rule::Chosen {
            chosen = Some(edge);
        }
        node = edges[edge as usize].before;
        steps += 1;
        if node == missing || steps > 10_000 {
            break;
        }
    }
    chosen
}

/// Cuts the line where an operation conflicts with the batch so far.
fn batches(
    facts: &Facts<'_>,
    after: impl Fn(u32) -> u32,
    graph: &EdgeIndex,
    order: &[u32],
) -> Vec<u32> {
    let items = facts.trace.items.len();
    // The last batch that read, wrote, or was said to come before.
    let (mut read, mut wrote) = (vec![0u32; items], vec![0u32; items]);
    let mut sent = vec![0u32; facts.trace.sessions.len()];
    let mut behind = vec![0u32; facts.operations.len()];
    let mut ends = Vec::new();
    let mut batch = 1;
    for (number, at) in order.iter().enumerate() {
        let session = facts.operation(*at).session as usize;
        let (reads, writes) = (facts.reads(*at), facts.writes(*at));
        let conflicts = sent[session] == batch
            || behind[*at as usize] == batch
            || reads.iter().any(|a| wrote[a.item as usize] == batch)
            || { writes.iter() }
                .any(|a| wrote[a.item as usize] == batch || read[a.item as usize] == batch);
        if conflicts {
            ends.push(place(number));
            batch += 1;
        }
        sent[session] = batch;
        reads.iter().for_each(|a| read[a.item as usize] = batch);
        writes.iter().for_each(|a| wrote[a.item as usize] = batch);
        graph.of(*at).iter().for_each(|edge| behind[after(*edge) as usize] = batch);
    }
    if !order.is_empty() {
        ends.push(place(order.len()));
    }
    ends
}

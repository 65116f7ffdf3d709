//! Infers all edges of causal consistency, with one vector clock per transaction: for every
//! session the number of its transactions that precede the transaction causally.

use super::known_edges::causal_edges;
use super::types::InferredEdge;
use crate::digraph::Components;
use crate::digraph::Rows;
use crate::resolve::ResolvedHistory;
use crate::types::INITIAL;

/// The most entries of all clocks together: 8 GB.
const ROOM: usize = 2_000_000_000;

/// Visits all inferred edges. False if there are too many sessions for clocks.
pub(super) fn for_each_inferred(
    resolved: &ResolvedHistory<'_>,
    mut infer: impl FnMut(InferredEdge),
) -> bool {
    let nodes = resolved.nodes();
    let sessions = resolved.history.session_count();
    if nodes.saturating_mul(sessions) > ROOM {
        return false;
    }
    // Only wr and session order: known version orders are not causal.
    let mut edges = Vec::new();
    causal_edges(resolved, true, |from, to, _, _| edges.push((from, to)));
    let graph = Rows::of_edges(nodes, edges);
    let components = Components::of(&graph);
    if !components.is_acyclic() {
        // A cycle of wr and session order alone is found among the known edges.
        return true;
    }
    let mut in_order = vec![0_u32; nodes];
    for node in 0..nodes as u32 {
        // Components are numbered in reverse topological order.
        in_order[nodes - 1 - components.of[node as usize] as usize] = node;
    }
    // The position of each node in its session, from 1 on; 0 in a clock means none.
    let mut position = vec![0_u32; nodes];
    let mut counts = vec![0_u32; sessions];
    for node in 0..nodes as u32 {
        let session = session_of(resolved, node);
        counts[session] += 1;
        position[node as usize] = counts[session];
    }
    let mut clocks = vec![0_u32; nodes * sessions];
    for node in in_order {
        let at = node as usize * sessions;
        clocks[at + session_of(resolved, node)] = position[node as usize];
        for next in graph.of(node) {
            let to = *next as usize * sessions;
            let (low, high) =
                if at < to { clocks.split_at_mut(to) } else { clocks.split_at_mut(at) };
            let (mine, theirs) = if at < to {
                (&low[at..at + sessions], &mut high[..sessions])
            } else {
                (&high[..sessions], &mut low[to..to + sessions])
            };
            for (their, my) in theirs.iter_mut().zip(mine) {
                *their = (*their).max(*my);
            }
        }
    }
    let writers = writers_by_session(resolved, &position);
    let mut read_clock = vec![0_u32; sessions];
    for reader in 0..nodes as u32 {
        let clock = &clocks[reader as usize * sessions..][..sessions];
        let own = session_of(resolved, reader);
        for read in resolved.reads.of(reader) {
            // What precedes the writer of the version read precedes that version anyway.
            if read.writer == INITIAL {
                read_clock.fill(0);
            } else {
                read_clock.copy_from_slice(&clocks[read.writer as usize * sessions..][..sessions]);
            }
            let mut all = writers.of(read.item);
            while let Some((session, ..)) = all.first() {
                let session = *session;
                let end = all.partition_point(|(of, ..)| *of == session);
                let (of_session, rest) = all.split_at(end);
                all = rest;
                let at = session as usize;
                // Of its own session the earlier transactions are visible.
                let known = if at == own { position[reader as usize] - 1 } else { clock[at] };
                if known <= read_clock[at] {
                    continue;
                }
                let upto = of_session.partition_point(|(_, position, _)| *position <= known);
                if let Some((_, position, writer)) =
                    upto.checked_sub(1).map(|last| of_session[last])
                    && position > read_clock[at]
                    && writer != read.writer
                {
                    infer(InferredEdge {
                        earlier: writer,
                        later: read.writer,
                        item: read.item,
                        reader,
                    });
                }
            }
        }
    }
    true
}

fn session_of(resolved: &ResolvedHistory<'_>, node: u32) -> usize {
    resolved.history.session_of(resolved.txns[node as usize]).0 as usize
}

/// One row per item: its writers as (session, position in the session, node), sorted.
fn writers_by_session(resolved: &ResolvedHistory<'_>, position: &[u32]) -> Rows<(u32, u32, u32)> {
    let items = resolved.history.item_count();
    let by_item = |node: u32| {
        let writer = (session_of(resolved, node) as u32, position[node as usize], node);
        resolved.writes.of(node).iter().map(move |write| (write.item, writer))
    };
    let mut writers = Rows::from_pairs(items, (0..resolved.nodes() as u32).flat_map(by_item));
    for item in 0..items as u32 {
        let [from, to] = writers.bounds(item);
        writers.all[from..to].sort_unstable();
    }
    writers
}

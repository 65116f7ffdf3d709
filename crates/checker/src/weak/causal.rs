//! What each transaction was bound to know: of every session its transactions up to
//! one. A clock for each transaction says which.

use super::{Listed, Told, knowledge};
use crate::graph::Components;
use crate::joined::Joined;
use crate::registers::{INITIAL, Rows};

/// So many entries may all clocks together have: 8 GB.
const ROOM: usize = 2_000_000_000;

/// False if there are too many sessions for clocks.
pub(super) fn each_told(joined: &Joined<'_>, mut told: impl FnMut(Told)) -> bool {
    let nodes = joined.nodes();
    let sessions = joined.history.session_count();
    if nodes.saturating_mul(sessions) > ROOM {
        return false;
    }
    // Only reads and sessions: known orders of versions are not knowledge.
    let mut edges = Vec::new();
    knowledge(joined, true, |from, to, _, _| edges.push((from, to)));
    let graph = Listed::of(nodes, edges);
    let components = Components::of(&graph);
    if !components.is_acyclic() {
        // A cycle of reads and sessions is told by known edges alone.
        return true;
    }
    let mut in_order = vec![0_u32; nodes];
    for node in 0..nodes as u32 {
        // Components are numbered from the end.
        in_order[nodes - 1 - components.of[node as usize] as usize] = node;
    }
    // The place of each node in its session, from 1 on; 0 in a clock means nobody.
    let mut place = vec![0_u32; nodes];
    let mut counts = vec![0_u32; sessions];
    for node in 0..nodes as u32 {
        let session = session_of(joined, node);
        counts[session] += 1;
        place[node as usize] = counts[session];
    }
    let mut clocks = vec![0_u32; nodes * sessions];
    for node in in_order {
        let at = node as usize * sessions;
        clocks[at + session_of(joined, node)] = place[node as usize];
        for next in graph.from(node) {
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
    let writers = writers_by_session(joined, &place);
    let mut read_clock = vec![0_u32; sessions];
    for reader in 0..nodes as u32 {
        let knows = &clocks[reader as usize * sessions..][..sessions];
        let own = session_of(joined, reader);
        for read in joined.reads.of(reader) {
            // What the version's writer knew as well comes before it anyway.
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
                // Of its own session it knows what came before it.
                let known = if at == own { place[reader as usize] - 1 } else { knows[at] };
                if known <= read_clock[at] {
                    continue;
                }
                let upto = of_session.partition_point(|(_, place, _)| *place <= known);
                if let Some((_, place, writer)) = upto.checked_sub(1).map(|last| of_session[last])
                    && place > read_clock[at]
                    && writer != read.writer
                {
                    told(Told { earlier: writer, later: read.writer, item: read.item, reader });
                }
            }
        }
    }
    true
}

fn session_of(joined: &Joined<'_>, node: u32) -> usize {
    joined.history.session_of(joined.txns[node as usize]).0 as usize
}

/// For each item its writers: session, place in it, node; sorted.
fn writers_by_session(joined: &Joined<'_>, place: &[u32]) -> Rows<(u32, u32, u32)> {
    let items = joined.history.item_count();
    let mut starts = vec![0_u32; items + 1];
    for write in &joined.writes.all {
        starts[write.item as usize + 1] += 1;
    }
    for item in 0..items {
        starts[item + 1] += starts[item];
    }
    let mut next = starts.clone();
    let mut all = vec![(0, 0, 0); joined.writes.all.len()];
    for node in 0..joined.nodes() as u32 {
        for write in joined.writes.of(node) {
            let slot = &mut next[write.item as usize];
            all[*slot as usize] = (session_of(joined, node) as u32, place[node as usize], node);
            *slot += 1;
        }
    }
    for item in 0..items {
        all[starts[item] as usize..starts[item + 1] as usize].sort_unstable();
    }
    Rows { starts, all }
}

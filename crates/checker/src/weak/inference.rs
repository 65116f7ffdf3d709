//! Infers all edges of a weak level.

use super::causal;
use super::types::{InferredEdge, Visibility};
use crate::resolve::{Read, ResolvedHistory};
use crate::types::INITIAL;

/// Visits all inferred edges. False if there are too many sessions for that.
pub(super) fn for_each_inferred(
    resolved: &ResolvedHistory<'_>,
    visibility: Visibility,
    sessions: bool,
    mut infer: impl FnMut(InferredEdge),
) -> bool {
    if visibility == Visibility::Causal {
        return causal::for_each_inferred(resolved, infer);
    }
    let items = resolved.history.item_count();
    // The last writer of each item in the current session.
    let mut last_writer = vec![(INITIAL, INITIAL); if sessions { items } else { 0 }];
    let mut by_item: Vec<(u32, u32, u32)> = Vec::new();
    let mut sources: Vec<(u32, u32)> = Vec::new();
    let nodes: Vec<u32> =
        if sessions { by_session(resolved) } else { (0..resolved.nodes() as u32).collect() };
    for reader in nodes {
        let reads = resolved.reads.of(reader);
        by_item.clear();
        by_item.extend(
            reads.iter().zip(0..).map(|(read, position)| (read.item, position, read.writer)),
        );
        by_item.sort_unstable();
        sources.clear();
        sources.extend(
            reads
                .iter()
                .zip(0..)
                .filter(|(r, _)| r.writer != INITIAL && r.writer != reader)
                .map(|(read, position)| (read.writer, position)),
        );
        sources.sort_unstable();
        sources.dedup_by_key(|(writer, _)| *writer);
        for (known, first) in &sources {
            let from = if visibility == Visibility::Monotonic { *first + 1 } else { 0 };
            for_each_common_item(resolved, *known, from, &by_item, |item, writer| {
                infer(InferredEdge { earlier: *known, later: writer, item, reader });
            });
        }
        if sessions {
            let session = resolved.history.session_of(resolved.txns[reader as usize]).0;
            if visibility == Visibility::Atomic {
                for Read { item, writer, .. } in reads {
                    let (of, last) = last_writer[*item as usize];
                    if of == session && last != *writer {
                        infer(InferredEdge { earlier: last, later: *writer, item: *item, reader });
                    }
                }
            }
            for write in resolved.writes.of(reader) {
                last_writer[write.item as usize] = (session, reader);
            }
        }
    }
    true
}

/// The nodes session by session, each in session order.
fn by_session(resolved: &ResolvedHistory<'_>) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..resolved.nodes() as u32).collect();
    nodes.sort_by_key(|node| resolved.history.session_of(resolved.txns[*node as usize]).0);
    nodes
}

/// Visits the items that `known` wrote and that the reader read from another writer, from read
/// number `from` on. Iterates over the smaller side.
fn for_each_common_item(
    resolved: &ResolvedHistory<'_>,
    known: u32,
    from: u32,
    by_item: &[(u32, u32, u32)],
    mut infer: impl FnMut(u32, u32),
) {
    let writes = resolved.writes.of(known);
    if writes.len() < by_item.len() {
        for write in writes {
            let at = by_item
                .partition_point(|(item, position, _)| (*item, *position) < (write.item, from));
            for (_, _, writer) in by_item[at..].iter().take_while(|(item, ..)| *item == write.item)
            {
                if *writer != known {
                    infer(write.item, *writer);
                }
            }
        }
    } else {
        for (item, position, writer) in by_item {
            if *position >= from && *writer != known && resolved.last_write(known, *item).is_some()
            {
                infer(*item, *writer);
            }
        }
    }
}

//! Visits the edges that need no inference.

use crate::anomaly::EdgeKind;
use crate::resolve::ResolvedHistory;
use crate::types::INITIAL;

/// Visits the edges that need no inference: wr, session order if `sessions`, and known version
/// orders, each with its kind and item.
pub(super) fn known_edges(
    resolved: &ResolvedHistory<'_>,
    sessions: bool,
    mut edge: impl FnMut(u32, u32, EdgeKind, u32),
) {
    causal_edges(resolved, sessions, &mut edge);
    known_version_orders(resolved, |from, to, item| edge(from, to, EdgeKind::Ww, item));
}

/// Visits the ww edges of the known version orders.
pub(super) fn known_version_orders(
    resolved: &ResolvedHistory<'_>,
    mut edge: impl FnMut(u32, u32, u32),
) {
    for item in 0..resolved.order.len() as u32 {
        let order = resolved.order.of(item);
        for pair in order.windows(2) {
            edge(pair[0], pair[1], item);
        }
        if let Some(last) = order.last() {
            for writer in resolved.tail.of(item) {
                edge(*last, *writer, item);
            }
        }
    }
}

/// Visits the wr edges, and those of session order if `sessions`.
pub(super) fn causal_edges(
    resolved: &ResolvedHistory<'_>,
    sessions: bool,
    mut edge: impl FnMut(u32, u32, EdgeKind, u32),
) {
    let mut last = vec![INITIAL; if sessions { resolved.history.session_count() } else { 0 }];
    for node in 0..resolved.nodes() as u32 {
        for read in resolved.reads.of(node) {
            if read.writer != INITIAL && read.writer != node {
                edge(read.writer, node, EdgeKind::Wr, read.item);
            }
        }
        if sessions {
            let session = resolved.history.session_of(resolved.txns[node as usize]).0 as usize;
            if last[session] != INITIAL {
                edge(last[session], node, EdgeKind::Session, 0);
            }
            last[session] = node;
        }
    }
}

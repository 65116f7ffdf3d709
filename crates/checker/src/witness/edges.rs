//! Edges of a witness, with their values and SQL texts.

use crate::anomaly::{Certainty, Edge, EdgeKind};
use crate::graph::{Arc, Graph};
use crate::history::{Item, Value};
use crate::resolve::{ResolvedHistory, UNKNOWN_POSITION};
use crate::types::INITIAL;

/// The edges of a cycle, with all that is known about each.
pub(crate) fn edges(
    resolved: &ResolvedHistory<'_>,
    graph: &Graph,
    cycle: &[(u32, Arc)],
) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut since = None;
    let first = cycle.iter().position(|(from, _)| *from < graph.nodes).unwrap_or(0);
    for (from, arc) in cycle[first..].iter().chain(&cycle[..first]) {
        if *from < graph.nodes {
            since = Some(*from);
        }
        if arc.to < graph.nodes
            && let Some(from) = since.take()
        {
            edges.push(edge(resolved, from, *arc));
        }
    }
    edges
}

fn edge(resolved: &ResolvedHistory<'_>, from: u32, arc: Arc) -> Edge {
    let kind = arc.kind();
    if matches!(kind, EdgeKind::PredicateWr | EdgeKind::PredicateRw) {
        let read = &resolved.predicate_reads[arc.subject() as usize];
        let predicate = resolved.history.ops[read.op as usize].item;
        let statement = resolved.history.statement(read.op as usize).map(str::to_owned);
        let name = Some(resolved.history.predicates.name(predicate, ""));
        let reads_first = kind == EdgeKind::PredicateRw;
        return Edge {
            predicate: name,
            from_statement: if reads_first { statement.clone() } else { None },
            to_statement: if reads_first { None } else { statement },
            ..plain(resolved, from, arc.to, kind)
        };
    }
    let item = arc.subject();
    dependency(resolved, (from, arc.to), kind, item)
}

fn plain(resolved: &ResolvedHistory<'_>, from: u32, to: u32, kind: EdgeKind) -> Edge {
    Edge {
        from: resolved.txns[from as usize],
        to: resolved.txns[to as usize],
        kind,
        item: None,
        predicate: None,
        from_value: None,
        to_value: None,
        from_statement: None,
        to_statement: None,
        certainty: Certainty::Observed,
    }
}

/// An edge of a dependency on an item, or of session or real-time order.
pub(crate) fn dependency(
    resolved: &ResolvedHistory<'_>,
    (from, to): (u32, u32),
    kind: EdgeKind,
    item: u32,
) -> Edge {
    let edge = plain(resolved, from, to, kind);
    if matches!(kind, EdgeKind::Session | EdgeKind::RealTime) {
        return edge;
    }
    let read_by = |node: u32, of_writer: Option<u32>| {
        let reads = || resolved.reads.of(node).iter().filter(|read| read.item == item);
        reads()
            .find(|read| match of_writer {
                Some(writer) => read.writer == writer,
                None => {
                    read.position == UNKNOWN_POSITION
                        || resolved
                            .order
                            .of(item)
                            .get(read.position as usize)
                            .is_none_or(|next| *next == to)
                }
            })
            .or_else(|| reads().next())
    };
    let value_read = |op: u32| {
        let op = resolved.history.ops[op as usize];
        match resolved.history.list(op) {
            Some(list) => list.last().map_or(Value::INITIAL, |element| Value(*element)),
            None => Value(op.value),
        }
    };
    let text = |op: u32| resolved.history.statement(op as usize).map(str::to_owned);
    let last_write = |node: u32| resolved.last_write(node, item);
    let read = match kind {
        EdgeKind::Wr => read_by(to, Some(from)),
        EdgeKind::Rw => read_by(from, None),
        _ => None,
    };
    let (from_op, to_op) = match kind {
        EdgeKind::Wr => (last_write(from).map(|write| write.op), read.map(|read| read.op)),
        EdgeKind::Rw => (read.map(|read| read.op), last_write(to).map(|write| write.op)),
        _ => (last_write(from).map(|write| write.op), last_write(to).map(|write| write.op)),
    };
    let seen = read.map(|read| value_read(read.op));
    let written = |node: u32| if node == INITIAL { None } else { resolved.value_of(node, item) };
    Edge {
        item: Some(Item(item)),
        from_value: if kind == EdgeKind::Wr || kind == EdgeKind::Rw { seen } else { written(from) },
        to_value: if kind == EdgeKind::Wr { seen } else { written(to) },
        from_statement: from_op.and_then(text),
        to_statement: to_op.and_then(text),
        ..edge
    }
}

//! Edges of a witness, with the values and statements behind them.

use crate::anomaly::{Certainty, Edge, Kind};
use crate::graph::{Arc, Graph};
use crate::history::{Item, Value};
use crate::joined::{Joined, UNPLACED};
use crate::registers::INITIAL;

/// The edges of a cycle, with all that is known about each.
pub(crate) fn edges(joined: &Joined<'_>, graph: &Graph, cycle: &[(u32, Arc)]) -> Vec<Edge> {
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
            edges.push(edge(joined, from, *arc));
        }
    }
    edges
}

fn edge(joined: &Joined<'_>, from: u32, arc: Arc) -> Edge {
    let kind = arc.kind();
    if matches!(kind, Kind::PredicateWr | Kind::PredicateRw) {
        let read = &joined.predicate_reads[arc.about() as usize];
        let predicate = joined.history.ops[read.op as usize].item;
        let statement = joined.history.statement(read.op as usize).map(str::to_owned);
        let name = Some(joined.history.predicates.name(predicate, ""));
        let reads_first = kind == Kind::PredicateRw;
        return Edge {
            predicate: name,
            from_statement: if reads_first { statement.clone() } else { None },
            to_statement: if reads_first { None } else { statement },
            ..plain(joined, from, arc.to, kind)
        };
    }
    let item = arc.about();
    dependency(joined, (from, arc.to), kind, item)
}

fn plain(joined: &Joined<'_>, from: u32, to: u32, kind: Kind) -> Edge {
    Edge {
        from: joined.txns[from as usize],
        to: joined.txns[to as usize],
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

/// An edge of a read, a write or an anti-dependency about an item, or of an order.
pub(crate) fn dependency(
    joined: &Joined<'_>,
    (from, to): (u32, u32),
    kind: Kind,
    item: u32,
) -> Edge {
    let edge = plain(joined, from, to, kind);
    if matches!(kind, Kind::Session | Kind::Time) {
        return edge;
    }
    let read_by = |node: u32, of_writer: Option<u32>| {
        let reads = || joined.reads.of(node).iter().filter(|read| read.item == item);
        reads()
            .find(|read| match of_writer {
                Some(writer) => read.writer == writer,
                None => {
                    read.place == UNPLACED
                        || joined
                            .order
                            .of(item)
                            .get(read.place as usize)
                            .is_none_or(|next| *next == to)
                }
            })
            .or_else(|| reads().next())
    };
    let value_read = |op: u32| {
        let op = joined.history.ops[op as usize];
        match joined.history.list(op) {
            Some(list) => list.last().map_or(Value::INITIAL, |element| Value(*element)),
            None => Value(op.value),
        }
    };
    let text = |op: u32| joined.history.statement(op as usize).map(str::to_owned);
    let wrote = |node: u32| joined.wrote(node, item);
    let read = match kind {
        Kind::Wr => read_by(to, Some(from)),
        Kind::Rw => read_by(from, None),
        _ => None,
    };
    let (from_op, to_op) = match kind {
        Kind::Wr => (wrote(from).map(|write| write.op), read.map(|read| read.op)),
        Kind::Rw => (read.map(|read| read.op), wrote(to).map(|write| write.op)),
        _ => (wrote(from).map(|write| write.op), wrote(to).map(|write| write.op)),
    };
    let seen = read.map(|read| value_read(read.op));
    let written = |node: u32| if node == INITIAL { None } else { joined.value_of(node, item) };
    Edge {
        item: Some(Item(item)),
        from_value: if kind == Kind::Wr || kind == Kind::Rw { seen } else { written(from) },
        to_value: if kind == Kind::Wr { seen } else { written(to) },
        from_statement: from_op.and_then(text),
        to_statement: to_op.and_then(text),
        ..edge
    }
}

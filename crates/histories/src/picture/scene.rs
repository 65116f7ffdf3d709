//! A witness as boxes and arrows: what a picture shows, without a layout.

use isolde_checker::{
    Anomaly, Certainty, Edge, EdgeKind, History, Item, Op, OpKind, Status, Txn, Witness,
};

/// The most operations that a box shows.
const MOST_LINES: usize = 8;
const LONGEST_LINE: usize = 34;
const LONGEST_LABEL: usize = 22;

pub(crate) struct Scene {
    pub(crate) boxes: Vec<TxnBox>,
    pub(crate) arrows: Vec<Arrow>,
}

pub(crate) struct TxnBox {
    pub(crate) name: String,
    pub(crate) session: String,
    pub(crate) lines: Vec<Line>,
}

pub(crate) struct Line {
    pub(crate) text: String,
    /// Whether an arrow refers to it.
    pub(crate) strong: bool,
}

/// An arrow from one box to another, by their indexes.
pub(crate) struct Arrow {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: EdgeKind,
    /// The item, and its versions.
    pub(crate) label: Vec<String>,
    /// Whether the edge is observed; otherwise it was inferred.
    pub(crate) observed: bool,
    pub(crate) why: String,
}

impl Scene {
    pub(crate) fn of(history: &History, anomaly: &Anomaly) -> Scene {
        match &anomaly.witness {
            Witness::Cycle(edges) => Scene::of_cycle(history, edges),
            Witness::Operation { txn, item, value, other } => {
                let writer = other.filter(|other| other != txn);
                let txns = writer.into_iter().chain([*txn]);
                let boxes = txns.map(|txn| TxnBox::of(history, txn, &[*item])).collect();
                let seen = format!("{} = {}", history.item_name(*item), history.value_name(*value));
                let arrows = writer.map(|_| Arrow {
                    from: 0,
                    to: 1,
                    kind: EdgeKind::Wr,
                    label: vec![short(&seen, LONGEST_LABEL)],
                    observed: true,
                    why: anomaly.sentences(history).join("; "),
                });
                Scene { boxes, arrows: arrows.into_iter().collect() }
            }
        }
    }

    fn of_cycle(history: &History, edges: &[Edge]) -> Scene {
        let count = edges.len();
        let boxes = edges.iter().enumerate().map(|(position, edge)| {
            let before = &edges[(position + count - 1) % count];
            let items: Vec<Item> = [before.item, edge.item].into_iter().flatten().collect();
            TxnBox::of(history, edge.from, &items)
        });
        let arrows = edges.iter().enumerate().map(|(position, edge)| {
            let about = match (&edge.predicate, edge.item) {
                (Some(predicate), _) => predicate.clone(),
                (None, Some(item)) => history.item_name(item),
                (None, None) => String::new(),
            };
            let versions: Vec<String> = [edge.from_value, edge.to_value]
                .into_iter()
                .flatten()
                .map(|value| history.value_name(value))
                .collect();
            let first = format!("{} {about}", edge.kind);
            let mut label = vec![short(first.trim(), LONGEST_LABEL)];
            if versions.len() == 2 && versions[0] != versions[1] {
                label.push(short(&versions.join(" → "), LONGEST_LABEL));
            } else if let Some(version) = versions.first() {
                label.push(short(version, LONGEST_LABEL));
            }
            let observed = edge.certainty == Certainty::Observed;
            let (from, to) = (position, (position + 1) % count);
            Arrow { from, to, kind: edge.kind, label, observed, why: edge.explanation(history) }
        });
        Scene { boxes: boxes.collect(), arrows: arrows.collect() }
    }
}

impl TxnBox {
    fn of(history: &History, txn: Txn, items: &[Item]) -> TxnBox {
        let status = match history.status(txn) {
            Status::Committed => "",
            Status::Aborted => ", rolled back",
            Status::Unknown => ", end unknown",
        };
        let session = history.session_name(history.session_of(txn));
        let ops = history.ops(txn);
        let strong = |op: &Op| {
            op.item().map_or(op.kind() == OpKind::PredicateRead, |item| items.contains(&item))
        };
        let all = ops.len() <= MOST_LINES;
        let mut lines: Vec<Line> = Vec::new();
        for (position, op) in ops.iter().enumerate() {
            let strong = strong(op);
            if (all || strong) && lines.len() < MOST_LINES {
                lines.push(Line { text: describe(history, txn, position), strong });
            }
        }
        if lines.len() < ops.len() {
            let more = ops.len() - lines.len();
            lines.push(Line { text: format!("… {more} more"), strong: false });
        }
        TxnBox {
            name: short(&history.txn_name(txn), LONGEST_LABEL),
            session: short(&format!("{session}{status}"), LONGEST_LINE),
            lines,
        }
    }
}

/// An operation on one line: its SQL text, or what it read or wrote.
fn describe(history: &History, txn: Txn, position: usize) -> String {
    let op = history.ops(txn)[position];
    let item = op.item().map(|item| history.item_name(item)).unwrap_or_default();
    let value = op.value().map(|value| history.value_name(value)).unwrap_or_default();
    let text = match op.kind() {
        OpKind::Write => format!("w {item} = {value}"),
        OpKind::Append => format!("append {item} {value}"),
        OpKind::Read => format!("r {item} = {value}"),
        OpKind::LockingRead => format!("r {item} = {value} (locking)"),
        OpKind::ReadList => {
            let list = history.whole_list(txn, position).unwrap_or_default();
            let names: Vec<String> = list.iter().map(|value| history.value_name(*value)).collect();
            // The end of a list is what other transactions changed.
            let mut shown = names.join(" ");
            let mut from = 0;
            while shown.chars().count() > LONGEST_LINE - 12 && from + 1 < names.len() {
                from += 1;
                shown = format!("… {}", names[from..].join(" "));
            }
            format!("r {item} = [{shown}]")
        }
        OpKind::PredicateRead => {
            let found = history.matched(op).map_or(0, <[_]>::len);
            format!("{}: {found} found", history.predicate_name(op).unwrap_or_default())
        }
    };
    let text = history.statement_of(txn, position).map_or(text, str::to_string);
    short(&text, LONGEST_LINE)
}

fn short(text: &str, longest: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

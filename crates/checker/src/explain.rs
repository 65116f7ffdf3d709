//! Renders witnesses as English sentences.

use crate::anomaly::{Anomaly, Certainty, Edge, EdgeKind, Witness};
use crate::history::{History, Item, Value};

impl Edge {
    /// One sentence that says why `from` comes before `to`.
    pub fn explanation(&self, history: &History) -> String {
        let (from, to) = (history.txn_name(self.from), history.txn_name(self.to));
        let item = self.item.map_or_else(String::new, |item| display_item(history, item));
        let assignment = |value: Option<Value>| {
            value.map_or_else(String::new, |value| format!(" = {}", history.value_name(value)))
        };
        let (from_value, to_value) = (assignment(self.from_value), assignment(self.to_value));
        let predicate = self.predicate.as_deref().unwrap_or_default();
        let text = match self.kind {
            EdgeKind::Session => format!("{from} ran before {to} in the same session"),
            EdgeKind::RealTime => format!("{from} had ended before {to} began"),
            EdgeKind::Wr => format!("{to} read {item}{to_value}, which {from} wrote"),
            EdgeKind::Ww => format!("{to} wrote {item}{to_value} over {from}'s {item}{from_value}"),
            EdgeKind::Rw if self.from_value == Some(Value::INITIAL) => {
                format!(
                    "{from} read the initial version of {item}, before {to} wrote {item}{to_value}"
                )
            }
            EdgeKind::Rw => {
                format!(
                    "{from} read {item}{from_value}, which {to} overwrote with {item}{to_value}"
                )
            }
            EdgeKind::PredicateWr => {
                format!("{to} queried {predicate} and saw a change of it by {from}")
            }
            EdgeKind::PredicateRw => {
                format!("{from} queried {predicate} and found it as it was before {to} changed it")
            }
        };
        let certain = match &self.certainty {
            Certainty::Observed => "",
            Certainty::Inferred(steps) => {
                let steps: Vec<String> =
                    steps.iter().map(|edge| edge.explanation(history)).collect();
                &format!(" (the reverse is impossible, since {})", steps.join(", and "))
            }
            Certainty::Assumed => " (assumed for contradiction)",
            Certainty::Searched => " (every version order contains this edge or another cycle)",
        };
        format!("{text}, so {from} comes before {to}{certain}")
    }
}

impl Anomaly {
    /// The witness in words: one sentence per edge, or one for the operation.
    pub fn sentences(&self, history: &History) -> Vec<String> {
        match &self.witness {
            Witness::Cycle(edges) => edges
                .iter()
                .enumerate()
                .map(|(position, edge)| {
                    let explanation = edge.explanation(history);
                    if position + 1 == edges.len() && position > 0 {
                        format!("but {explanation}")
                    } else {
                        explanation
                    }
                })
                .collect(),
            Witness::Operation { txn, item, value, other } => {
                let (txn, item) = (history.txn_name(*txn), display_item(history, *item));
                let value = history.value_name(*value);
                let other = other.map(|other| format!(", which is {}'s", history.txn_name(other)));
                let meaning = self.class.meaning();
                vec![format!("{txn}, {item} = {value}{}: {meaning}", other.unwrap_or_default())]
            }
        }
    }
}

/// The name of an item; numbers get a prefix, so that they do not look like values.
fn display_item(history: &History, item: Item) -> String {
    let name = history.item_name(item);
    if name.parse::<u64>().is_ok() { format!("key {name}") } else { name }
}

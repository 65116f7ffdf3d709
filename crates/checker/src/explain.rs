//! Witnesses in words.

use crate::anomaly::{Anomaly, Certainty, Edge, Kind, Witness};
use crate::history::{History, Item, Value};

impl Edge {
    /// Why the first transaction comes before the second, as a sentence.
    pub fn why(&self, history: &History) -> String {
        let (from, to) = (history.txn_name(self.from), history.txn_name(self.to));
        let item = self.item.map_or_else(String::new, |item| called(history, item));
        let said = |value: Option<Value>| {
            value.map_or_else(String::new, |value| format!(" = {}", history.value_name(value)))
        };
        let (mine, theirs) = (said(self.from_value), said(self.to_value));
        let predicate = self.predicate.as_deref().unwrap_or_default();
        let text = match self.kind {
            Kind::Session => format!("{from} ran before {to} in the same session"),
            Kind::Time => format!("{from} had ended before {to} began"),
            Kind::Wr => format!("{to} read {item}{theirs}, which {from} wrote"),
            Kind::Ww => format!("{to} wrote {item}{theirs} over {from}'s {item}{mine}"),
            Kind::Rw if self.from_value == Some(Value::INITIAL) => {
                format!(
                    "{from} read {item} as it was in the beginning, before {to} wrote {item}{theirs}"
                )
            }
            Kind::Rw => format!("{from} read {item}{mine}, which {to} replaced by {item}{theirs}"),
            Kind::PredicateWr => {
                format!("{to} looked for {predicate} and saw what {from} had changed about it")
            }
            Kind::PredicateRw => {
                format!(
                    "{from} looked for {predicate} and found it as it was before {to} changed it"
                )
            }
        };
        let certain = match &self.certainty {
            Certainty::Observed => "",
            Certainty::Otherwise(steps) => {
                let steps: Vec<String> = steps.iter().map(|edge| edge.why(history)).collect();
                &format!(" (it cannot be the other way round, since {})", steps.join(", and "))
            }
            Certainty::Assumed => " (assumed, to be refuted)",
            Certainty::Searched => " (no order of the versions works without it)",
        };
        format!("{text}, so {from} comes before {to}{certain}")
    }
}

impl Anomaly {
    /// The witness, a sentence for each edge or for the operation.
    pub fn sentences(&self, history: &History) -> Vec<String> {
        match &self.witness {
            Witness::Cycle(edges) => edges
                .iter()
                .enumerate()
                .map(|(place, edge)| {
                    let why = edge.why(history);
                    if place + 1 == edges.len() && place > 0 { format!("but {why}") } else { why }
                })
                .collect(),
            Witness::Operation { txn, item, value, other } => {
                let (txn, item) = (history.txn_name(*txn), called(history, *item));
                let value = history.value_name(*value);
                let other = other.map(|other| format!(", which is {}'s", history.txn_name(other)));
                let meaning = self.class.meaning();
                vec![format!("{txn}, {item} = {value}{}: {meaning}", other.unwrap_or_default())]
            }
        }
    }
}

/// The name of an item, so that a number is not taken for a value.
fn called(history: &History, item: Item) -> String {
    let name = history.item_name(item);
    if name.parse::<u64>().is_ok() { format!("key {name}") } else { name }
}

//! The report of the topological oracle: files, counters and sentences about
//! the graph of a case.

use super::draw;
use super::graph::Kind;
use super::topology::Topology;
use crate::report::OracleReport;
use crate::tally::{Counter, CounterSet, OracleTally};
use isolde_model::History;
use isolde_reference::cause::Cause;
use serde_json::{Value, json};

/// The sums over all statement-dependency graphs.
pub(super) static COUNTERS: CounterSet = CounterSet {
    key: "topology",
    counters: &[
        // Cases with a graph.
        Counter::Total(GRAPHS),
        // Topological orders that were run.
        Counter::Total(ORDERS),
        // Edges by kind.
        Counter::ByKey(EDGES),
        // Edges that exact matches made unnecessary.
        Counter::Total(SPARED),
        // The number of cases by how many further runs they needed, because a statement was
        // blocked or ambiguous, and because of a cycle.
        Counter::ByKey(BLOCKED),
        Counter::ByKey(CYCLIC),
        // Statements that were left out, by reason.
        Counter::ByKey(LEFT_OUT),
        // Cases without a verdict, by reason.
        Counter::ByKey(UNKNOWN),
    ],
};

const GRAPHS: &str = "graphs";
const ORDERS: &str = "orders";
const EDGES: &str = "edges";
const SPARED: &str = "spared";
const BLOCKED: &str = "blocked";
const CYCLIC: &str = "cyclic";
const LEFT_OUT: &str = "left_out";
const UNKNOWN: &str = "unknown";

/// Lines for the terminal: graphs and their edges, further runs, what was left out.
pub(super) fn summary(tally: &OracleTally) -> Vec<String> {
    let listed = |counter: &str, separator: &str| {
        let all = tally.by_key(counter).map(|(key, count)| format!("{key}{separator}{count}"));
        all.collect::<Vec<_>>().join(", ")
    };
    let (graphs, orders) = (tally.total(GRAPHS), tally.total(ORDERS));
    let mut lines = vec![format!("{graphs} graphs, {orders} orders")];
    if tally.by_key(EDGES).any(|(_, count)| count > 0) {
        let (kinds, spared) = (listed(EDGES, " "), tally.total(SPARED));
        lines.push(format!("  edges: {kinds}; exact matches removed {spared}"));
    }
    for (reason, counter) in [("lock waits", BLOCKED), ("cycles", CYCLIC)] {
        let cases = listed(counter, ": ");
        lines.push(format!("  further runs because of {reason} (runs: cases): {cases}"));
    }
    for (why, count) in tally.by_key(LEFT_OUT) {
        lines.push(format!("  {count} statements left out: {why}"));
    }
    for (why, count) in tally.by_key(UNKNOWN) {
        lines.push(format!("  {count} cases unknown: {why}"));
    }
    lines
}

impl OracleReport for Topology {
    fn files(&self) -> Vec<(&'static str, String)> {
        draw::files(self)
    }

    fn count(&self, tally: &mut OracleTally) {
        if !self.graph.nodes.is_empty() {
            tally.add(GRAPHS, 1);
        }
        tally.add(ORDERS, self.orders as u64);
        tally.add(SPARED, self.spared);
        tally.add_to(BLOCKED, self.rounds.blocked, 1);
        tally.add_to(CYCLIC, self.rounds.cyclic, 1);
        for (kind, count) in &self.edges {
            tally.add_to(EDGES, kind.name(), *count);
        }
        for (_, why) in &self.left_out {
            tally.add_to(LEFT_OUT, why.as_str(), 1);
        }
        if let Some(why) = &self.unknown {
            tally.add_to(UNKNOWN, why.as_str(), 1);
        }
    }

    fn cause(&self) -> Option<Cause> {
        self.cause.clone()
    }

    /// The run of the instrumented case, if it is a run of the whole case.
    fn shown_run(&self) -> Option<&History> {
        self.run.as_ref().filter(|_| self.left_out.is_empty())
    }

    fn explanation(&self) -> Vec<String> {
        let labels = self.order_labels();
        match labels.is_empty() {
            true => Vec::new(),
            false => vec![format!("The order was {}.", labels.join(", "))],
        }
    }

    fn lines(&self) -> Vec<String> {
        let left_out = self.left_out.iter().map(|(sql, why)| format!("left out: {sql}: {why}"));
        let edges = self.graph.edges.iter().map(|((from, to, kind), row)| {
            let (from, to, kind) = (self.label(*from), self.label(*to), kind.name());
            format!("{from} before {to}: {kind}, row {row}")
        });
        let labels = self.order_labels();
        let order =
            (!labels.is_empty()).then(|| format!("alone in the order {}:", labels.join(", ")));
        left_out.chain(edges).chain(order).collect()
    }

    fn success(&self) -> Option<String> {
        let (statements, orders) = (self.graph.nodes.len(), self.orders);
        Some(format!("{statements} statements return and leave the same in {orders} orders"))
    }

    fn json(&self) -> Value {
        let edge = |((from, to, kind), row): (&(usize, usize, Kind), &String)| {
            json!({"from": self.label(*from), "to": self.label(*to), "kind": kind.name(),
                "row": row})
        };
        let left = |(sql, why): &(String, String)| json!({"sql": sql, "why": why});
        let labels = self.graph.nodes.iter().map(|node| node.label.as_str());
        json!({"statements": labels.collect::<Vec<_>>(),
            "edges": self.graph.edges.iter().map(edge).collect::<Vec<_>>(),
            "orders": self.orders, "order": self.order_labels(),
            "left_out": self.left_out.iter().map(left).collect::<Vec<_>>()})
    }
}

//! A case judged by an oracle that makes runs of its own: topological and merged.

use crate::exit_code::{ExitCode, Failure};
use isolde_core::oracle::topological::Topology;
use isolde_core::oracle::{Difference, Oracle};
use isolde_core::{Case, Level};
use isolde_hunt::HuntError;
use isolde_hunt::cause::{self, Cause, Label};
use isolde_hunt::check::check;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_hunt::explain::difference;
use serde_json::{Value, json};

pub struct Judged<'a> {
    pub case: &'a Case,
    pub target: &'a str,
    pub level: Level,
    pub oracle: Oracle,
}

/// What came of it.
pub struct Judgement {
    unknown: Option<String>,
    differences: Vec<Difference>,
    cause: Option<Cause>,
    topology: Option<Box<Topology>>,
}

pub fn judged(
    executor: &mut Executor,
    (case, level): (&Case, Level),
    oracle: Oracle,
) -> Result<Judgement, Failure> {
    let on = executor.runner.engine.info().clone();
    let fixture = Fixture::of_case(case, &on, level);
    let checked = match check(executor, &fixture, case, &[oracle]) {
        Ok(checked) => checked,
        Err(HuntError::Broke(broke)) => broke.checked,
        Err(HuntError::Fixture { error, .. }) => {
            let unknown = Some(format!("its tables: {error}"));
            let (differences, cause, topology) = (Vec::new(), None, None);
            return Ok(Judgement { unknown, differences, cause, topology });
        }
        Err(error) => return Err(error.into()),
    };
    let cause = match checked.violated() {
        true => Some(cause::find(executor, (&fixture, case), &checked)?),
        false => None,
    };
    let unknown = checked.silent.clone().or_else(|| checked.unknown.map(str::to_string));
    let differences = checked.violations.into_iter().flat_map(|v| v.differences).collect();
    Ok(Judgement { unknown, differences, cause, topology: checked.topology })
}

impl Judgement {
    pub fn code(&self) -> ExitCode {
        match (&self.cause, &self.unknown) {
            (Some(cause), _) => match cause.label {
                Label::Bug => ExitCode::Violation,
                Label::Undecided => ExitCode::Undecided,
                Label::Documented => ExitCode::Fine,
            },
            (None, Some(_)) => ExitCode::Undecided,
            (None, None) => ExitCode::Fine,
        }
    }
}

impl Judged<'_> {
    pub fn text(&self, judged: &Judgement) -> String {
        let Judged { case, target, level, oracle } = self;
        let mut text = format!("{} on {target} at {level}, {oracle}\n", case.id);
        if let Some(topology) = &judged.topology {
            for (sql, why) in &topology.left_out {
                text.push_str(&format!("  left out: {sql}: {why}\n"));
            }
            for ((from, to, kind), row) in &topology.graph.edges {
                let label = |node: &usize| &topology.graph.nodes[*node].label;
                let (from, to, kind) = (label(from), label(to), kind.name());
                text.push_str(&format!("  {from} before {to}: {kind}, row {row}\n"));
            }
            if !topology.order.is_empty() {
                let labels = topology.order.iter().map(|n| topology.graph.nodes[*n].label.as_str());
                let order = labels.collect::<Vec<_>>().join(", ");
                text.push_str(&format!("  alone in the order {order}:\n"));
            }
        }
        for found in &judged.differences {
            text.push_str(&format!("  {}\n", difference(found)));
        }
        match (&judged.cause, &judged.unknown, &judged.topology) {
            (Some(cause), _, _) => {
                text.push_str(&format!("  {}\n", cause.name()));
                cause.evidence.iter().for_each(|e| text.push_str(&format!("    {e}\n")));
            }
            (None, Some(why), _) => text.push_str(&format!("  unknown: {why}\n")),
            (None, None, Some(topology)) => {
                let (n, orders) = (topology.graph.nodes.len(), topology.orders);
                let alike = format!("{n} statements return and leave the same in {orders} orders");
                text.push_str(&format!("  {alike}\n"));
            }
            (None, None, None) => text.push_str("  nothing differs\n"),
        }
        text
    }

    pub fn json(&self, judged: &Judgement) -> Value {
        let topology = judged.topology.as_ref().map(|topology| {
            let nodes = &topology.graph.nodes;
            let edge = |((from, to, kind), row): (&(usize, usize, _), &String)| {
                let kind: &isolde_core::oracle::topological::Kind = kind;
                json!({"from": nodes[*from].label, "to": nodes[*to].label, "kind": kind.name(),
                    "row": row})
            };
            let left = |(sql, why): &(String, String)| json!({"sql": sql, "why": why});
            let order = topology.order.iter().map(|n| nodes[*n].label.as_str());
            json!({"statements": nodes.iter().map(|n| n.label.as_str()).collect::<Vec<_>>(),
                "edges": topology.graph.edges.iter().map(edge).collect::<Vec<_>>(),
                "orders": topology.orders, "order": order.collect::<Vec<_>>(),
                "left_out": topology.left_out.iter().map(left).collect::<Vec<_>>()})
        });
        json!({"case": self.case.id, "target": self.target, "level": self.level,
            "oracle": self.oracle.name(), "unknown": judged.unknown,
            "differences": judged.differences, "cause": judged.cause, "graph": topology})
    }
}

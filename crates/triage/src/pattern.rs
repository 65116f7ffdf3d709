//! The dependency pattern of a case: which statement met which over the same
//! table, in which order and how, whatever the sessions are called.

use super::run::Run;
use std::collections::BTreeSet;

/// More sessions than this are not put into every order: the pattern is then
/// that of the order in which they first appear.
const MOST_SESSIONS: usize = 6;

/// An edge between two statements: `delete -ww-> update`.
struct Edge {
    from: (usize, &'static str),
    to: (usize, &'static str),
    label: &'static str,
}

/// Edges without sessions: each once, in order.
pub fn edges(run: &Run<'_>) -> BTreeSet<String> {
    all(run).iter().map(|e| format!("{} -{}-> {}", e.from.1, e.label, e.to.1)).collect()
}

/// The whole graph as one text, the same for every naming of the sessions.
pub fn canonical(run: &Run<'_>) -> String {
    let edges = all(run);
    let sessions = run.case.sessions().len();
    let text = |names: &[usize]| {
        let mut lines: Vec<String> = edges
            .iter()
            .map(|e| {
                let (a, b) = (names[e.from.0], names[e.to.0]);
                format!("{a}.{} -{}-> {b}.{}", e.from.1, e.label, e.to.1)
            })
            .collect();
        lines.sort();
        lines.dedup();
        lines.join(", ")
    };
    let plain: Vec<usize> = (1..=sessions).collect();
    if sessions > MOST_SESSIONS {
        return text(&plain);
    }
    let mut best: Option<String> = None;
    for_each_order(&mut plain.clone(), 0, &mut |names| {
        let this = text(names);
        if best.as_ref().is_none_or(|b| this < *b) {
            best = Some(this);
        }
    });
    best.unwrap_or_default()
}

fn for_each_order(names: &mut Vec<usize>, from: usize, see: &mut dyn FnMut(&[usize])) {
    if from >= names.len() {
        return see(names);
    }
    for at in from..names.len() {
        names.swap(from, at);
        for_each_order(names, from + 1, see);
        names.swap(from, at);
    }
}

fn all(run: &Run<'_>) -> Vec<Edge> {
    let sessions = run.case.sessions();
    let session = |step: usize| {
        sessions.iter().position(|s| *s == run.case.steps[step].session).unwrap_or_default()
    };
    let data: Vec<usize> =
        run.order.iter().copied().filter(|s| run.statements[*s].is_data()).collect();
    let mut edges = Vec::new();
    for (at, first) in data.iter().enumerate() {
        for second in &data[at + 1..] {
            let (a, b) = (&run.statements[*first], &run.statements[*second]);
            let wrote = |table: &Option<String>, by: &super::statement::StatementProfile| {
                table.as_ref().is_some_and(|t| by.writes.as_ref() == Some(t))
            };
            let reads = |table: &Option<String>, by: &super::statement::StatementProfile| {
                table.as_ref().is_some_and(|t| by.reads.contains(t))
            };
            let label = if session(*first) == session(*second) {
                let shared = run.tables(*first).intersection(&run.tables(*second)).count() > 0;
                let writes = a.writes.is_some() || b.writes.is_some();
                (shared && writes).then_some("then")
            } else if wrote(&a.writes, b) {
                Some("ww")
            } else if reads(&a.writes, b) {
                Some("wr")
            } else if reads(&b.writes, a) {
                Some("rw")
            } else {
                None
            };
            if let Some(label) = label {
                let (from, to) = ((session(*first), a.kind), (session(*second), b.kind));
                edges.push(Edge { from, to, label });
            }
        }
    }
    edges
}

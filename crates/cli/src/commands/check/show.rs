//! The report of `isolde check`, as text and as JSON.

use super::{CheckedHistory, note_on_names};
use crate::console::{Console, Style};
use crate::table;
use isolde_checker::{Anomaly, Edge, History, Level, Verdict, Witness};
use serde_json::{Map, Value, json};

pub fn json_of(checked: &CheckedHistory, level: Level) -> Value {
    let CheckedHistory { history, report, .. } = checked;
    let mut levels = Map::new();
    for level in Level::ALL {
        let verdict = match report.verdict(level) {
            Verdict::Holds => true.into(),
            Verdict::Violated => false.into(),
            Verdict::Unknown => "unknown".into(),
            Verdict::NotApplicable => Value::Null,
            Verdict::NotAsked => continue,
        };
        levels.insert(level.name().into(), verdict);
    }
    let anomalies: Vec<Value> =
        report.anomalies.iter().map(|anomaly| json_of_anomaly(history, anomaly)).collect();
    json!({
        "file": checked.file,
        "format": checked.format,
        "transactions": report.transactions,
        "committed": report.committed,
        "level": level.name(),
        "levels": levels,
        "strongest": report.strongest().map(Level::name),
        "anomalies": anomalies,
    })
}

fn json_of_anomaly(history: &History, anomaly: &Anomaly) -> Value {
    let mut value = json!({
        "class": anomaly.name(),
        "meaning": anomaly.class.meaning(),
        "count": anomaly.count,
    });
    match &anomaly.witness {
        Witness::Cycle(edges) => {
            value["cycle"] = edges.iter().map(|edge| json_of_edge(history, edge)).collect();
        }
        Witness::Operation { txn, item, value: seen, other } => {
            value["cycle"] = json!([]);
            value["operation"] = json!({
                "txn": history.txn_name(*txn),
                "item": history.item_name(*item),
                "value": history.value_name(*seen),
                "other": other.map(|other| history.txn_name(other)),
                "why": anomaly.sentences(history).join("; "),
            });
        }
    }
    value
}

fn json_of_edge(history: &History, edge: &Edge) -> Value {
    let mut value = json!({
        "from": history.txn_name(edge.from),
        "to": history.txn_name(edge.to),
        "kind": edge.kind.name(),
        "item": edge.item.map(|item| history.item_name(item)),
        "why": edge.explanation(history),
    });
    if let Some(predicate) = &edge.predicate {
        value["predicate"] = predicate.clone().into();
    }
    for (name, statement) in
        [("from_statement", &edge.from_statement), ("to_statement", &edge.to_statement)]
    {
        if let Some(statement) = statement {
            value[name] = statement.clone().into();
        }
    }
    value
}

pub fn text_of(checked: &CheckedHistory, level: Level, console: &Console) -> String {
    let CheckedHistory { file, history, report, .. } = checked;
    let verdict = report.verdict(level);
    let mut text = format!("{file}: {level} {}\n", painted(console, verdict));
    let committed = report.committed;
    text.push_str(&format!(
        "  {} transactions, {committed} committed, in {} sessions\n",
        report.transactions,
        history.session_count()
    ));
    text.push_str(&levels_of(checked, console));
    let strongest = report.strongest().map_or("none", Level::name);
    text.push_str(&format!("  strongest level that holds: {strongest}\n"));
    for note in notes(checked, level) {
        text.push_str(&format!("  note: {note}\n"));
    }
    for (n, anomaly) in report.anomalies.iter().enumerate() {
        let name = console.paint(Style::Strong, &anomaly.name());
        text.push_str(&format!("\n{name}, {} found: {}\n", anomaly.count, anomaly.class.meaning()));
        if let Some(earlier) = earlier_with_same_witness(&report.anomalies, n) {
            text.push_str(&format!("  the same cycle as for {}\n", earlier.name()));
            continue;
        }
        for sentence in anomaly.sentences(history) {
            text.push_str(&format!("  {sentence}\n"));
        }
        text.push_str(&statements_of(anomaly, history));
    }
    text
}

/// The earlier anomaly with the same witness as the one at index `n`; a write
/// skew, for example, is also a G2-item.
pub fn earlier_with_same_witness(anomalies: &[Anomaly], n: usize) -> Option<&Anomaly> {
    anomalies[..n].iter().find(|earlier| earlier.witness == anomalies[n].witness)
}

fn painted(console: &Console, verdict: Verdict) -> String {
    let (style, word) = match verdict {
        Verdict::Holds => (Style::Good, "holds"),
        Verdict::Violated => (Style::Bad, "is violated"),
        Verdict::Unknown => (Style::Doubt, "is unknown"),
        Verdict::NotApplicable => (Style::Doubt, "does not apply"),
        Verdict::NotAsked => (Style::Doubt, "was not checked"),
    };
    console.paint(style, word)
}

/// One line per verdict, with the levels that have it.
fn levels_of(checked: &CheckedHistory, console: &Console) -> String {
    let verdicts = [
        (Verdict::Holds, Style::Good),
        (Verdict::Violated, Style::Bad),
        (Verdict::Unknown, Style::Doubt),
        (Verdict::NotApplicable, Style::Dim),
        (Verdict::NotAsked, Style::Dim),
    ];
    let mut rows = Vec::new();
    let mut styles = Vec::new();
    for (verdict, style) in verdicts {
        let of = |level: &Level| checked.report.verdict(*level) == verdict;
        let levels: Vec<&str> = Level::ALL.into_iter().filter(of).map(Level::name).collect();
        if !levels.is_empty() {
            rows.push(vec![format!("  {verdict}"), levels.join(", ")]);
            styles.push(style);
        }
    }
    let width = console.width().unwrap_or(100).clamp(60, 110);
    table::layout(&rows, width - 20, &|row, column, text| match column {
        0 => console.paint(styles[row], text),
        _ => text.into(),
    })
}

fn notes(checked: &CheckedHistory, level: Level) -> Vec<String> {
    let report = &checked.report;
    let mut notes = Vec::new();
    if report.verdict(level) == Verdict::NotApplicable {
        notes.push(format!("{level} depends on real time, and this history has no timestamps"));
    }
    for open in report.inconclusive.iter().filter(|open| open.level == level) {
        notes.push(format!(
            "the search was stopped with {} pairs of versions unordered, among {} transactions",
            open.pairs, open.transactions
        ));
    }
    if report.ambiguous_reads > 0 {
        notes.push(format!(
            "{} reads returned values that were written more than once, so their writer is \
             unknown: write each value to an item only once",
            report.ambiguous_reads
        ));
    }
    if report.unplaced_predicate_reads > 0 {
        notes.push(format!(
            "{} predicate reads could not be ordered among the versions of an item",
            report.unplaced_predicate_reads
        ));
    }
    notes.extend(note_on_names(report));
    notes
}

/// The statements that the edges come from, where the history has them.
fn statements_of(anomaly: &Anomaly, history: &History) -> String {
    let Witness::Cycle(edges) = &anomaly.witness else { return String::new() };
    let mut lines: Vec<String> = Vec::new();
    for edge in edges {
        for (txn, statement) in [(edge.from, &edge.from_statement), (edge.to, &edge.to_statement)] {
            let line =
                statement.as_ref().map(|sql| format!("    {}: {sql}\n", history.txn_name(txn)));
            lines.extend(line.filter(|line| !lines.contains(line)));
        }
    }
    lines.concat()
}

//! Writes histories: in Isolde's own format, which is lossless, and in Elle's two formats, which
//! have no predicates, locks, SQL texts or declared version orders.

use crate::own::FORMAT_VERSION;
use isolde_checker::{History, Label, OpKind, Status, Txn, Value};
use serde_json::{Map, Value as Json, json};
use std::io::{self, Write};

/// Writes Isolde's own format: JSON lines, one transaction each.
pub fn write_own(history: &History, out: &mut impl Write) -> io::Result<()> {
    write_own_about(history, &Json::Null, out)
}

/// Writes Isolde's own format, with a description of the origin of the history.
pub fn write_own_about(history: &History, about: &Json, out: &mut impl Write) -> io::Result<()> {
    let mut head = json!({"isolde-history": FORMAT_VERSION});
    if !about.is_null() {
        head["about"] = about.clone();
    }
    writeln!(out, "{head}")?;
    for txn in history.transactions() {
        let mut line = Map::new();
        let mut put = |name: &str, label: Label<'_>| {
            if label != Label::None {
                line.insert(name.into(), json_of(label));
            }
        };
        put("session", history.session_label(history.session_of(txn)));
        put("txn", history.txn_label(txn));
        let status = match history.status(txn) {
            Status::Committed => "committed",
            Status::Aborted => "aborted",
            Status::Unknown => "unknown",
        };
        line.insert("status".into(), status.into());
        if let Some((begin, end)) = history.times(txn) {
            line.insert("begin".into(), begin.into());
            if end != u64::MAX {
                line.insert("end".into(), end.into());
            }
        }
        let count = history.ops(txn).len();
        let ops: Vec<Json> = (0..count).map(|position| own_op(history, txn, position)).collect();
        line.insert("ops".into(), ops.into());
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    for (item, order) in history.version_orders() {
        let versions: Vec<Json> = order.iter().map(|v| value_of(history, Value(*v))).collect();
        let item = json_of(history.item_label(item));
        writeln!(out, "{}", json!({"order": item, "versions": versions}))?;
    }
    for (predicate, versions) in history.satisfying() {
        let versions = versions_of(history, versions);
        writeln!(out, "{}", json!({"predicate": predicate, "satisfied-by": versions}))?;
    }
    Ok(())
}

fn json_of(label: Label<'_>) -> Json {
    match label {
        Label::Number(number) => number.into(),
        Label::Text(text) => text.into(),
        Label::None => Json::Null,
    }
}

fn value_of(history: &History, value: Value) -> Json {
    json_of(history.value_label(value))
}

fn versions_of(history: &History, versions: &[isolde_checker::Version]) -> Json {
    let pair = |(item, value): &isolde_checker::Version| {
        json!([json_of(history.item_label(*item)), value_of(history, *value)])
    };
    versions.iter().map(pair).collect()
}

fn list_of(history: &History, txn: Txn, position: usize) -> Json {
    let list = history.whole_list(txn, position).unwrap_or_default();
    list.iter().map(|value| value_of(history, *value)).collect()
}

fn own_op(history: &History, txn: Txn, position: usize) -> Json {
    let op = history.ops(txn)[position];
    let item = op.item().map_or(Json::Null, |item| json_of(history.item_label(item)));
    let value = op.value().map_or(Json::Null, |value| value_of(history, value));
    let mut options = Map::new();
    let mut fields = match op.kind() {
        OpKind::Write => vec!["w".into(), item, value],
        OpKind::Append => vec!["append".into(), item, value],
        OpKind::Read => vec!["r".into(), item, value],
        OpKind::LockingRead => {
            options.insert("locking".into(), true.into());
            vec!["r".into(), item, value]
        }
        OpKind::ReadList => vec!["r".into(), item, list_of(history, txn, position)],
        OpKind::PredicateRead => {
            let matched = versions_of(history, history.matched(op).unwrap_or_default());
            vec!["predicate".into(), history.predicate_name(op).into(), matched]
        }
    };
    if let Some(sql) = history.statement_of(txn, position) {
        options.insert("sql".into(), sql.into());
    }
    if !options.is_empty() {
        fields.push(options.into());
    }
    fields.into()
}

/// Writes Elle's EDN, one operation per line.
pub fn write_elle_edn(history: &History, out: &mut impl Write) -> io::Result<()> {
    write_elle(history, out, true)
}

/// Writes Elle's JSON, one operation per line.
pub fn write_elle_json(history: &History, out: &mut impl Write) -> io::Result<()> {
    write_elle(history, out, false)
}

/// Writes operations in the order of time, with their invocations; if there are no times, or a
/// session is in two transactions at once, only the completions.
fn write_elle(history: &History, out: &mut impl Write, edn: bool) -> io::Result<()> {
    let mut events: Vec<(u64, bool, Txn)> = Vec::new();
    let timed = history.has_times() && sessions_are_sequential(history);
    for txn in history.transactions() {
        match history.times(txn).filter(|_| timed) {
            Some((begin, end)) => {
                events.push((begin, false, txn));
                // A transaction of unknown status has no completion.
                if history.status(txn) != Status::Unknown {
                    events.push((end, true, txn));
                }
            }
            None => events.push((u64::from(txn.0), true, txn)),
        }
    }
    // A transaction that begins when another one ends is concurrent with it.
    events.sort_by_key(|(time, ends, txn)| (*time, *ends, txn.0));
    let mut line = String::new();
    for (index, (_, ends, txn)) in events.into_iter().enumerate() {
        let kind = match (ends, history.status(txn)) {
            (false, _) => "invoke",
            (true, Status::Committed) => "ok",
            (true, Status::Aborted) => "fail",
            (true, Status::Unknown) => "info",
        };
        let process = history.session_of(txn).0;
        line.clear();
        line.push_str(&match edn {
            true => {
                format!("{{:index {index}, :type :{kind}, :process {process}, :f :txn, :value [")
            }
            false => format!(
                r#"{{"index":{index},"type":"{kind}","process":{process},"f":"txn","value":["#
            ),
        });
        let mut first = true;
        for position in 0..history.ops(txn).len() {
            let op = history.ops(txn)[position];
            let (name, value) = match op.kind() {
                OpKind::Append => ("append", op.value().map(|value| value_of(history, value))),
                OpKind::Write => ("w", op.value().map(|value| value_of(history, value))),
                OpKind::PredicateRead => continue,
                // The result of an invoked read is not known yet.
                _ if kind != "ok" => ("r", None),
                OpKind::Read | OpKind::LockingRead => {
                    ("r", op.value().map(|value| value_of(history, value)))
                }
                OpKind::ReadList => ("r", Some(list_of(history, txn, position))),
            };
            let item = op.item().map_or(Json::Null, |item| json_of(history.item_label(item)));
            if !std::mem::take(&mut first) {
                line.push(if edn { ' ' } else { ',' });
            }
            match edn {
                true => {
                    line.push_str(&format!("[:{name} {} ", edn_of(&item)));
                    line.push_str(&edn_of(&value.unwrap_or_default()));
                    line.push(']');
                }
                false => line.push_str(&json!([name, item, value]).to_string()),
            }
        }
        line.push_str("]}\n");
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn sessions_are_sequential(history: &History) -> bool {
    let mut ends = vec![0; history.session_count()];
    history.transactions().all(|txn| {
        let last = &mut ends[history.session_of(txn).0 as usize];
        history.times(txn).is_none_or(|(begin, end)| {
            let after = *last <= begin && begin <= end;
            // A session continues at any time after a transaction of unknown status.
            *last = if history.status(txn) == Status::Unknown { begin } else { end };
            after
        })
    })
}

fn edn_of(value: &Json) -> String {
    match value {
        Json::Null => "nil".into(),
        Json::Array(values) => {
            let values: Vec<String> = values.iter().map(edn_of).collect();
            format!("[{}]", values.join(" "))
        }
        // JSON strings are EDN strings: both escape in the same way.
        other => other.to_string(),
    }
}

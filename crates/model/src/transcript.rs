//! A history as text: one line per statement, with waits and resumptions where
//! they happened.

use crate::case::ANYWAY;
use crate::history::{EventKind, History, TxEnd};
use crate::value::show_rows;

/// What became of one step, on one line: `waits for s1, then 1 row`.
pub fn summary(history: &History, step: usize) -> String {
    let outcome = history.outcome(step);
    let result = match (outcome.reply, end_of(history, step)) {
        // A COMMIT that answers but was a rollback must not read as "ok".
        (Some(EventKind::Done), Some(TxEnd::Committed)) => Some("committed".into()),
        (Some(EventKind::Done), Some(TxEnd::RolledBack | TxEnd::Aborted)) => {
            Some("rolled back".into())
        }
        (reply, _) => reply.map(reply_text),
    };
    if !outcome.waited {
        return result.unwrap_or_else(|| "not reached".into());
    }
    let waits = if outcome.waited_for.is_empty() {
        "waits".to_string()
    } else {
        format!("waits for {}", outcome.waited_for.join(", "))
    };
    match result {
        Some(text) => format!("{waits}, then {text}"),
        None => waits,
    }
}

/// How the transaction ended at this step, if one did.
fn end_of(history: &History, step: usize) -> Option<TxEnd> {
    history.events.iter().rev().find_map(|e| match e.what {
        EventKind::Ended { how, .. } if e.step == Some(step) => Some(how),
        _ => None,
    })
}

pub fn reply_text(what: &EventKind) -> String {
    match what {
        EventKind::Rows { rows, .. } => match rows.len() {
            0 => "no rows".into(),
            _ => cut(show_rows(rows)),
        },
        EventKind::Affected { count: 1 } => "1 row".into(),
        EventKind::Affected { count } => format!("{count} rows"),
        EventKind::Done => "ok".into(),
        EventKind::Error(error) => format!("error {}", error.code),
        EventKind::NotSent { .. } => "not sent".into(),
        other => format!("{other:?}"),
    }
}

/// Long values are for the history, not for the screen.
fn cut(text: String) -> String {
    const LONGEST: usize = 400;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// The whole run in the order in which things happened.
pub fn transcript(history: &History) -> String {
    let width = history
        .steps
        .iter()
        .map(|s| s.session.len() + s.sql.lines().next().unwrap_or("").chars().count() + 3)
        .max()
        .unwrap_or(0)
        .min(72);
    let mut lines: Vec<String> = Vec::new();
    for event in &history.events {
        let sql = |as_sql: &Option<String>| {
            let step = event.step.map_or("", |i| history.steps[i].sql.as_str());
            as_sql.clone().unwrap_or_else(|| step.to_string())
        };
        match &event.what {
            EventKind::Sent { as_sql } => {
                let anyway = event.step.is_some_and(|i| history.steps[i].anyway);
                let mark = if anyway { format!("({ANYWAY})") } else { String::new() };
                let sql = sql(as_sql).replace('\n', "\n    ");
                lines.push(format!("{}{mark}> {sql};", event.session));
            }
            EventKind::Waiting { on } if on.is_empty() => attach(&mut lines, width, "waits ..."),
            EventKind::Waiting { on } => {
                attach(&mut lines, width, &format!("waits for {} ...", on.join(", ")));
            }
            EventKind::Resumed => {
                let label = event.step.map_or("", |i| history.steps[i].label.as_str());
                lines.push(format!("... {label} resumes"));
            }
            EventKind::NotSent { why } => {
                let text = event.step.map_or("", |i| history.steps[i].sql.as_str());
                lines.push(format!("({}> {text};)", event.session));
                attach(&mut lines, width, &format!("not sent: {why}"));
            }
            EventKind::Ended { how: TxEnd::Committed, .. } => {
                attach(&mut lines, width, "committed")
            }
            EventKind::Ended { how, .. } => {
                attach(&mut lines, width, &format!("transaction {}", how.name()));
            }
            EventKind::RolledBackByRunner { why } => {
                lines.push(format!("({}> rollback;)", event.session));
                attach(&mut lines, width, &format!("by Isolde: {why}"));
            }
            EventKind::Error(error) => {
                attach(&mut lines, width, &format!("error {}: {}", error.code, error.message));
            }
            EventKind::Cancelled => attach(&mut lines, width, "cancelled by Isolde"),
            EventKind::Done => {}
            what => attach(&mut lines, width, &reply_text(what)),
        }
    }
    for table in &history.final_state {
        let rows = match &table.error {
            Some(error) => format!("error {error}"),
            None => show_rows(&table.rows),
        };
        lines.push(format!("finally: {};  {rows}", table.query));
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// Puts a remark behind the last line, in a column of its own.
fn attach(lines: &mut [String], width: usize, remark: &str) {
    let Some(line) = lines.last_mut() else { return };
    if line.contains("  -- ") {
        line.push_str(", ");
    } else {
        let last = line.lines().last().unwrap_or("").chars().count();
        line.push_str(&" ".repeat(width.saturating_sub(last)));
        line.push_str("  -- ");
    }
    line.push_str(remark);
}

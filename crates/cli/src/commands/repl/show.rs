//! Events and session states as short aligned lines.

use crate::console::{Console, Style};
use crate::table::layout;
use isolde_engines::runner::interactive::{Interactive, SessionState};
use isolde_model::History;
use isolde_model::history::{DbError, ErrorEffect, Event, EventKind, TxEnd};
use isolde_model::value::{Row, Value, show_row};
use isolde_sql as sql;
use isolde_sql::Kind;
use std::collections::HashMap;
use std::time::Instant;

/// The width of the label column, enough for `s10.12`.
const LABEL: usize = 6;
const LONGEST_TABLE: usize = 100;

/// Turns the events of a history into text, each once.
#[derive(Default)]
pub struct EventPrinter {
    shown: usize,
    waiting_since: HashMap<usize, Instant>,
    noted_all_blocked: bool,
}

impl EventPrinter {
    /// The text of the events since the last call.
    pub fn news(&mut self, console: &Console, lab: &Interactive) -> String {
        let history = lab.history();
        let mut out = String::new();
        let new = history.events.get(self.shown..).unwrap_or_default();
        for (i, event) in new.iter().enumerate() {
            out.push_str(&self.event_text(console, lab, event, &new[i + 1..]));
        }
        self.shown = history.events.len();
        let all_blocked = lab.all_blocked();
        if all_blocked && !self.noted_all_blocked {
            let mut waiting = lab.sessions().into_iter().rev();
            let last = waiting.find(|s| matches!(s.state, SessionState::Waiting { .. }));
            let name = last.map_or_else(|| "s1".into(), |s| s.name);
            let text = format!(
                "Every session is blocked, and none can release a lock: .cancel {name} ends its statement."
            );
            out.push_str(&remark(&console.paint(Style::Doubt, &text)));
        }
        self.noted_all_blocked = all_blocked;
        out
    }

    fn event_text(
        &mut self,
        console: &Console,
        lab: &Interactive,
        event: &Event,
        later: &[Event],
    ) -> String {
        let history = lab.history();
        let label = event.step.map_or(event.session.as_str(), |i| history.steps[i].label.as_str());
        let line = |text: &str| format!("{label:>LABEL$}  {text}\n");
        let mut waited = String::new();
        if let Some(step) = event.step
            && is_reply(&event.what)
            && let Some(since) = self.waiting_since.remove(&step)
        {
            let seconds = since.elapsed().as_secs_f64();
            let long = if seconds < 0.1 { String::new() } else { format!(" {seconds:.1} s") };
            waited = console.paint(Style::Dim, &format!("   after waiting{long}"));
        }
        match &event.what {
            EventKind::Waiting { on } => {
                if let Some(step) = event.step {
                    self.waiting_since.insert(step, Instant::now());
                }
                let text = lock_wait(on, &lab.possible_lock_holders(&event.session));
                line(&console.paint(Style::Doubt, &format!("{text} …")))
            }
            EventKind::Rows { columns, rows } => match rows.as_slice() {
                [] => line(&format!("no rows{waited}")),
                [row] if row.len() <= 4 => line(&format!("{}{waited}", one_row(columns, row))),
                rows => format!(
                    "{}{}",
                    line(&format!("{} row{}{waited}", rows.len(), plural(rows.len()))),
                    table(console, columns, rows)
                ),
            },
            EventKind::Affected { count: 0 } => {
                line(&format!("{}{waited}", console.paint(Style::Doubt, "0 rows changed")))
            }
            EventKind::Affected { count } => {
                let rows = plural(usize::try_from(*count).unwrap_or(2));
                let text = format!("{count} row{rows} changed");
                line(&format!("{}{waited}", console.paint(Style::Good, &text)))
            }
            EventKind::Done => {
                let text = done_text(history, event, later);
                line(&format!("{}{waited}", console.paint(Style::Good, text)))
            }
            EventKind::Error(error) => {
                let text = format!("error {}: {}", error.code, error.message);
                let mut out = line(&format!("{}{waited}", console.paint(Style::Bad, &text)));
                let effect = effect_text(lab, event, error, later);
                if !effect.is_empty() {
                    out.push_str(&remark(&console.paint(Style::Bad, &effect)));
                }
                out
            }
            EventKind::NotSent { why } => {
                let session = &event.session;
                let hint = if why.contains("ended") { "; begin starts a new one" } else { "" };
                let anyway = match why.contains("transaction") {
                    true => format!("; {session}(anyway)> sends it anyway"),
                    false => String::new(),
                };
                line(&console.paint(Style::Doubt, &format!("not sent: {why}{hint}{anyway}")))
            }
            EventKind::Cancelled => line(&console.paint(Style::Doubt, "cancelled")),
            EventKind::Sent { .. }
            | EventKind::Resumed
            | EventKind::Ended { .. }
            | EventKind::RolledBackByRunner { .. } => String::new(),
        }
    }
}

fn is_reply(what: &EventKind) -> bool {
    matches!(
        what,
        EventKind::Rows { .. } | EventKind::Affected { .. } | EventKind::Done | EventKind::Error(_)
    )
}

/// The sessions that a statement waits for. `suspects` are the sessions with
/// open transactions, for engines that do not report the lock holder.
fn lock_wait(on: &[String], suspects: &[String]) -> String {
    match (on, suspects) {
        ([], []) => "waits for a lock".into(),
        ([], [one]) => format!("waits for {one}, whose transaction is open"),
        ([], many) => format!("waits for one of {}", many.join(", ")),
        (on, _) => format!("waits for {}", on.join(", ")),
    }
}

/// An indented line that comments on the line above it.
pub fn remark(text: &str) -> String {
    format!("{:LABEL$}  {text}\n", "")
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn end_at<'a>(event: &Event, later: &'a [Event]) -> Option<&'a TxEnd> {
    later.iter().take_while(|e| e.session == event.session).find_map(|e| match &e.what {
        EventKind::Ended { how, .. } if e.step == event.step => Some(how),
        _ => None,
    })
}

fn done_text(history: &History, event: &Event, later: &[Event]) -> &'static str {
    let kind = event.step.map_or(Kind::Other, |i| sql::kind(&history.steps[i].sql));
    match (kind, end_at(event, later)) {
        (Kind::Begin, _) => "transaction open",
        (Kind::Commit, Some(TxEnd::Committed)) => "committed",
        (Kind::Commit, Some(_)) => "rolled back instead of committed: the transaction had failed",
        (Kind::Rollback, _) => "rolled back",
        (_, Some(TxEnd::Committed)) => "ok, and the open transaction was committed",
        _ => "ok",
    }
}

fn effect_text(lab: &Interactive, event: &Event, error: &DbError, later: &[Event]) -> String {
    let ended = end_at(event, later).is_some();
    let state = lab.sessions().into_iter().find(|s| s.name == event.session).map(|s| s.state);
    match (error.effect, state) {
        (ErrorEffect::Lost, _) => "the connection is lost; .reset starts over".into(),
        _ if ended => "its whole transaction was rolled back".into(),
        (_, Some(SessionState::Failed)) => {
            "its transaction has failed and accepts only ROLLBACK".into()
        }
        (_, Some(SessionState::Open)) => {
            "only this statement is undone; its transaction stays open".into()
        }
        _ => String::new(),
    }
}

fn one_row(columns: &[String], row: &Row) -> String {
    let named = |(name, value): (&String, &Value)| format!("{name} = {value}");
    let is_name = |c: &String| c.chars().all(|c| c.is_alphanumeric() || c == '_');
    let anonymous = columns
        .iter()
        .any(|c| !is_name(c) || c.is_empty() || c.starts_with(|c: char| c.is_ascii_digit()));
    if anonymous || columns.len() != row.len() {
        return show_row(row);
    }
    columns.iter().zip(row).map(named).collect::<Vec<_>>().join(", ")
}

fn table(console: &Console, columns: &[String], rows: &[Row]) -> String {
    let mut cells: Vec<Vec<String>> = vec![columns.to_vec()];
    let plain = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        other => other.to_string(),
    };
    cells.extend(rows.iter().take(LONGEST_TABLE).map(|r| r.iter().map(plain).collect()));
    let text = layout(&cells, 40, &|row, _, text| match row {
        0 => console.paint(Style::Strong, text),
        _ => text.to_string(),
    });
    let mut out: String = text.lines().map(remark).collect();
    if rows.len() > LONGEST_TABLE {
        out.push_str(&remark(&format!("… and {} more", rows.len() - LONGEST_TABLE)));
    }
    out
}

/// The table of sessions: name, level of new transactions, and state.
pub fn sessions(console: &Console, lab: &Interactive) -> String {
    let all = lab.sessions();
    if all.is_empty() {
        return "No sessions yet; a session opens when it is first named.".into();
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|s| {
            let mut state = match &s.state {
                SessionState::Idle => "idle".to_string(),
                SessionState::Open => "transaction open".into(),
                SessionState::Failed => "transaction failed: accepts only ROLLBACK".into(),
                SessionState::Ended => "transaction ended by the engine".into(),
                SessionState::Gone => "connection lost".into(),
                SessionState::Working { sql } => format!("running: {}", short(sql)),
                SessionState::Waiting { sql, on } => {
                    format!(
                        "{}: {}",
                        lock_wait(on, &lab.possible_lock_holders(&s.name)),
                        short(sql)
                    )
                }
            };
            if s.queued > 0 {
                state.push_str(&format!(" ({} more queued)", s.queued));
            }
            vec![s.name.clone(), s.level.to_string().to_lowercase(), state]
        })
        .collect();
    layout(&rows, 110, &|row, column, text| match (&all[row].state, column) {
        (SessionState::Waiting { .. }, 2) => console.paint(Style::Doubt, text),
        (SessionState::Failed | SessionState::Gone, 2) => console.paint(Style::Bad, text),
        _ => text.to_string(),
    })
}

fn short(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(50) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

//! What `isolde replay` shows: a table, JSON, or Markdown.

use super::replay::{AtLevel, Played};
use crate::console::{Console, Style};
use crate::table::layout_within;
use crate::visible::{markdown, markdown_code};
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;
use isolde_core::{History, judge};
use serde_json::json;

/// The table: a row a step, a column a level; `*` where levels differ.
fn rows_of(played: &Played) -> Vec<(bool, Vec<String>)> {
    let differs = |cells: &[String]| cells.windows(2).any(|w| w[0] != w[1]);
    let mut rows = Vec::new();
    for (i, step) in played.case.steps.iter().enumerate() {
        let mut row = vec![format!("{} {};", step.short_prompt(), step.sql.replace('\n', " "))];
        let cells: Vec<String> = played.runs.iter().map(|r| summary(&r.history, i)).collect();
        let differ = differs(&cells);
        row.extend(cells);
        rows.push((differ, row));
    }
    for session in played.case.sessions() {
        let cells: Vec<String> = played
            .runs
            .iter()
            .map(|r| {
                let ending = r.history.ending(session);
                ending.map_or("no transaction", judge::ending_name).to_string()
            })
            .collect();
        let differ = differs(&cells);
        rows.push((differ, std::iter::once(format!("{session} ended")).chain(cells).collect()));
    }
    let finals = played.runs.iter().map(|r| r.history.final_state.len()).max().unwrap_or(0);
    for i in 0..finals {
        let state = |h: &History| match h.final_state.get(i) {
            Some(f) => {
                f.error.as_ref().map_or_else(|| show_rows(&f.rows), |e| format!("error {}", e.code))
            }
            None => "not read".into(),
        };
        let query =
            played.runs.iter().find_map(|r| r.history.final_state.get(i)).map(|f| f.query.clone());
        let cells: Vec<String> = played.runs.iter().map(|r| state(&r.history)).collect();
        let differ = differs(&cells);
        let title = format!("finally: {};", query.unwrap_or_default());
        rows.push((differ, std::iter::once(title).chain(cells).collect()));
    }
    rows
}

fn level_name(history: &History) -> String {
    history.level.map_or("default level".into(), |l| l.to_string())
}

/// On a terminal: the table, then errors, what was not met, and whether a
/// finding still happens.
pub fn show(console: &Console, played: &Played) {
    let title = format!("{}  {}  on {}", played.case.id, played.case.title, played.target);
    console.print(&console.paint(Style::Strong, &title));
    let body = rows_of(played);
    let mut rows = vec![vec![String::new(), String::new()]];
    rows[0].extend(played.runs.iter().map(|r| level_name(&r.history)));
    for (differ, cells) in &body {
        let mark = if *differ { "*" } else { "" };
        rows.push(std::iter::once(mark.to_string()).chain(cells.iter().cloned()).collect());
    }
    console.print(&layout_within(&rows, console.width(), &|r, c, text| match (r, c) {
        (0, _) => console.paint(Style::Strong, text),
        (_, 0) => console.paint(Style::Doubt, text),
        (_, 1) => text.to_string(),
        _ if text.contains("error") => console.paint(Style::Bad, text),
        _ if text.contains("waits") => console.paint(Style::Doubt, text),
        _ => text.to_string(),
    }));
    for AtLevel { history, unmet, replayed } in &played.runs {
        for error in history.events.iter().filter_map(|e| e.what.error()) {
            console.say(&console.paint(
                Style::Dim,
                &format!("  {}: error {}: {}", level_name(history), error.code, error.message),
            ));
        }
        if let Some(why) = history.cancelled() {
            let text = format!("  {}: unknown: {why}", level_name(history));
            console.print(&console.paint(Style::Doubt, &text));
        }
        if let Some(death) = &history.death {
            console.print(&format!("  {}: {death}", level_name(history)));
            let log = death.log.as_deref().unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(12).collect();
            if !lines.is_empty() {
                console.print("  its log ends:");
            }
            for line in lines.into_iter().rev() {
                console.print(&console.paint(Style::Dim, &format!("    {line}")));
            }
        }
        for mismatch in unmet {
            let text = format!(
                "  {}: expected {}, observed {}",
                level_name(history),
                mismatch.claim,
                mismatch.observed
            );
            console.print(&console.paint(Style::Bad, &text));
        }
        if let Some(replayed) = replayed {
            replayed.show(console);
        }
    }
    console.print("");
}

pub fn as_json(all: &[Played]) -> serde_json::Value {
    let runs: Vec<serde_json::Value> = all
        .iter()
        .flat_map(|played| &played.runs)
        .map(|run| {
            let unmet: Vec<serde_json::Value> = run
                .unmet
                .iter()
                .map(|m| json!({"expected": m.claim.to_string(), "observed": m.observed}))
                .collect();
            let mut value = json!({"history": run.history, "unmet": unmet});
            if let Some(why) = run.history.cancelled() {
                value["unknown"] = why.into();
            }
            if let Some(replayed) = &run.replayed {
                value["finding"] = replayed.as_json();
            }
            value
        })
        .collect();
    json!({"isolde": env!("CARGO_PKG_VERSION"), "runs": runs})
}

pub fn as_markdown(all: &[Played]) -> String {
    let mut out = String::from("# Replays\n");
    for played in all {
        let (id, title) = (markdown(&played.case.id), markdown(&played.case.title));
        out.push_str(&format!("\n## {id}: {title}\n\n"));
        if let Some(link) = &played.case.link {
            out.push_str(&format!("<{}>\n\n", markdown(link)));
        }
        if !played.case.about.is_empty() {
            out.push_str(&format!("{}\n\n", markdown(&played.case.about)));
        }
        out.push_str(&format!(
            "On {}, by Isolde {}.\n\n",
            markdown(&played.target),
            env!("CARGO_PKG_VERSION")
        ));
        let levels: Vec<String> = played.runs.iter().map(|r| level_name(&r.history)).collect();
        out.push_str(&format!("| | step | {} |\n", levels.join(" | ")));
        out.push_str(&format!("|---|---|{}\n", "---|".repeat(levels.len())));
        for (differ, cells) in rows_of(played) {
            let mark = if differ { "\\*" } else { "" };
            let (step, rest) = cells.split_first().expect("a row has a step");
            let rest: Vec<String> = rest.iter().map(|c| markdown(c)).collect();
            out.push_str(&format!("| {mark} | {} | {} |\n", markdown_code(step), rest.join(" | ")));
        }
        for AtLevel { history, unmet, replayed } in &played.runs {
            if let Some(why) = history.cancelled() {
                out.push_str(&format!("\n- {}: unknown: {why}\n", level_name(history)));
            }
            for m in unmet {
                out.push_str(&format!(
                    "\n- {}: expected {}, observed {}\n",
                    level_name(history),
                    markdown_code(&m.claim.to_string()),
                    markdown_code(&m.observed.to_string())
                ));
            }
            if let Some(replayed) = replayed {
                out.push_str(&format!("\n{}\n", markdown(&replayed.sentence)));
            }
        }
    }
    out
}

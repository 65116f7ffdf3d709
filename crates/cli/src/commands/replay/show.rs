//! The output of `isolde replay`: a table, JSON, or Markdown.

use super::{CaseReplay, LevelRun};
use crate::commands::loaded_case::heading;
use crate::console::{Console, Style};
use crate::table::layout_within;
use crate::visible::{markdown, markdown_code};
use isolde_model::History;
use isolde_model::transcript::summary;
use isolde_model::value::show_rows;
use serde_json::json;

/// The rows of the table, one per step with one column per level, and whether
/// the levels differ in it.
fn rows_of(replay: &CaseReplay) -> Vec<(bool, Vec<String>)> {
    let differs = |cells: &[String]| cells.windows(2).any(|w| w[0] != w[1]);
    let mut rows = Vec::new();
    for (i, step) in replay.case.steps.iter().enumerate() {
        let mut row = vec![format!("{} {};", step.short_prompt(), step.sql.replace('\n', " "))];
        let cells: Vec<String> = replay.runs.iter().map(|r| summary(&r.history, i)).collect();
        let differ = differs(&cells);
        row.extend(cells);
        rows.push((differ, row));
    }
    for session in replay.case.sessions() {
        let cells: Vec<String> = replay
            .runs
            .iter()
            .map(|r| {
                let ending = r.history.ending(session);
                ending.map_or("no transaction", isolde_model::history::TxEnd::name).to_string()
            })
            .collect();
        let differ = differs(&cells);
        rows.push((differ, std::iter::once(format!("{session} ended")).chain(cells).collect()));
    }
    let finals = replay.runs.iter().map(|r| r.history.final_state.len()).max().unwrap_or(0);
    for i in 0..finals {
        let state = |h: &History| match h.final_state.get(i) {
            Some(f) => {
                f.error.as_ref().map_or_else(|| show_rows(&f.rows), |e| format!("error {}", e.code))
            }
            None => "not read".into(),
        };
        let query =
            replay.runs.iter().find_map(|r| r.history.final_state.get(i)).map(|f| f.query.clone());
        let cells: Vec<String> = replay.runs.iter().map(|r| state(&r.history)).collect();
        let differ = differs(&cells);
        let title = format!("final rows: {};", query.unwrap_or_default());
        rows.push((differ, std::iter::once(title).chain(cells).collect()));
    }
    rows
}

fn level_name(history: &History) -> String {
    history.level.map_or("default level".into(), |l| l.to_string())
}

/// Prints the table, then errors, unmet expectations, and whether a finding
/// still happens.
pub fn show(console: &Console, replay: &CaseReplay) {
    let title = format!("{}  on {}", heading(&replay.case), replay.target);
    console.print(&console.paint(Style::Strong, &title));
    let body = rows_of(replay);
    let mut rows = vec![vec![String::new(), String::new()]];
    rows[0].extend(replay.runs.iter().map(|r| level_name(&r.history)));
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
    for LevelRun { history, unmet, recheck } in &replay.runs {
        for error in history.events.iter().filter_map(|e| e.what.error()) {
            console.comment(&console.paint(
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
                console.print("  end of its log:");
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
        if let Some(recheck) = recheck {
            recheck.show(console);
        }
    }
    console.print("");
}

pub fn as_json(all: &[CaseReplay]) -> serde_json::Value {
    let runs: Vec<serde_json::Value> = all
        .iter()
        .flat_map(|replay| &replay.runs)
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
            if let Some(recheck) = &run.recheck {
                value["finding"] = recheck.as_json();
            }
            value
        })
        .collect();
    json!({"isolde": env!("CARGO_PKG_VERSION"), "runs": runs})
}

pub fn as_markdown(all: &[CaseReplay]) -> String {
    let mut out = String::from("# Replays\n");
    for replay in all {
        let (id, title) = (markdown(&replay.case.id), markdown(&replay.case.title));
        out.push_str(&format!("\n## {id}: {title}\n\n"));
        if let Some(link) = &replay.case.link {
            out.push_str(&format!("<{}>\n\n", markdown(link)));
        }
        if !replay.case.about.is_empty() {
            out.push_str(&format!("{}\n\n", markdown(&replay.case.about)));
        }
        out.push_str(&format!(
            "On {}, by Isolde {}.\n\n",
            markdown(&replay.target),
            env!("CARGO_PKG_VERSION")
        ));
        let levels: Vec<String> = replay.runs.iter().map(|r| level_name(&r.history)).collect();
        out.push_str(&format!("| | step | {} |\n", levels.join(" | ")));
        out.push_str(&format!("|---|---|{}\n", "---|".repeat(levels.len())));
        for (differ, cells) in rows_of(replay) {
            let mark = if differ { "\\*" } else { "" };
            let (step, rest) = cells.split_first().expect("a row has a step");
            let rest: Vec<String> = rest.iter().map(|c| markdown(c)).collect();
            out.push_str(&format!("| {mark} | {} | {} |\n", markdown_code(step), rest.join(" | ")));
        }
        for LevelRun { history, unmet, recheck } in &replay.runs {
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
            if let Some(recheck) = recheck {
                out.push_str(&format!("\n{}\n", markdown(&recheck.sentence)));
            }
        }
    }
    out
}

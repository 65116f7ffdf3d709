//! `isolde list`: the library, and where each of its bugs shows.

use super::{Context, Outcome};
use crate::console::Style;
use crate::exit_code::ExitCode;
use crate::known_bugs;
use crate::library::{self, Entry, Seen, Showing};
use crate::table::layout;
use serde_json::json;
use std::path::Path;

pub fn run(
    context: &Context<'_>,
    regex: Option<&str>,
    folder: Option<&Path>,
    markdown: bool,
) -> Outcome {
    let entries = library::load(folder, regex)?;
    let console = context.console;
    if markdown {
        console.print(&known_bugs::markdown(&entries));
    } else if context.json {
        let all: Vec<serde_json::Value> = entries.iter().map(as_json).collect();
        console.print(&json!({"isolde": env!("CARGO_PKG_VERSION"), "cases": all}).to_string());
    } else {
        let mut rows = vec![vec!["case".into(), "engines".into(), "kind".into(), "shows".into()]];
        rows[0].push("title".to_string());
        for entry in &entries {
            rows.push(vec![
                entry.case.id.clone(),
                engines(entry),
                entry.kind_name().into(),
                known_bugs::where_it_shows(&entry.seen()),
                entry.case.title.clone(),
            ]);
        }
        console.print(&layout(&rows, 46, &|r, c, text| match (r, c) {
            (0, _) => console.paint(Style::Strong, text),
            (_, 3) if text.starts_with("not seen") => console.paint(Style::Dim, text),
            (_, 3) => console.paint(Style::Doubt, text),
            _ => text.to_string(),
        }));
        console.say(&known_bugs::count(&entries));
    }
    Ok(ExitCode::Fine)
}

fn engines(entry: &Entry) -> String {
    let names: Vec<String> = entry.case.engines.iter().map(ToString::to_string).collect();
    if names.is_empty() { "any".into() } else { names.join(", ") }
}

fn as_json(entry: &Entry) -> serde_json::Value {
    let case = &entry.case;
    let recorded: Vec<serde_json::Value> = entry
        .seen()
        .iter()
        .map(|seen: &Seen| {
            json!({
                "engine": seen.engine,
                "version": seen.version,
                "level": seen.level,
                "outcome": match seen.showing {
                    Showing::Shows => "shows",
                    Showing::Sometimes => "sometimes",
                    Showing::NotSeen => "not seen",
                    Showing::Refused => "refused",
                    Showing::Unjudged => "recorded",
                },
            })
        })
        .collect();
    json!({
        "id": case.id,
        "title": case.title,
        "engines": case.engines.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "kind": case.kind,
        "link": case.link,
        "reported": case.reported,
        "rebuilt": case.rebuilt,
        "server_options": case.server_options,
        "level": case.level,
        "recorded": recorded,
    })
}

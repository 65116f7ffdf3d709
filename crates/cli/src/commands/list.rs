//! `isolde list`: the library of known bugs, and where each of them occurs.

use super::Outcome;
use super::context::Context;
use crate::args::list::ListArgs;
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::known_bugs;
use crate::library::{self, BugStatus, Entry, Occurrence};
use crate::table::layout;
use isolde_catalog::availability::Availability;
use isolde_catalog::{self as catalog, Feature, page};
use serde_json::json;

pub fn run(context: &Context<'_>, args: &ListArgs) -> Outcome {
    let console = context.console;
    if args.rules {
        console.print(&page::markdown());
        return Ok(ExitCode::Success);
    }
    if args.forms {
        console.print(&forms(context.json));
        return Ok(ExitCode::Success);
    }
    if let Some(engine) = &args.engine {
        console.print(&description(engine)?);
        return Ok(ExitCode::Success);
    }
    let entries = library::load(args.cases.as_deref(), args.regex.as_deref())?;
    if args.markdown {
        console.print(&known_bugs::markdown(&entries));
    } else if context.json {
        let all: Vec<serde_json::Value> = entries.iter().map(as_json).collect();
        console.print(&json!({"isolde": env!("CARGO_PKG_VERSION"), "cases": all}).to_string());
    } else {
        let mut rows =
            vec![vec!["case".into(), "engines".into(), "kind".into(), "occurs on".into()]];
        rows[0].push("title".to_string());
        for entry in &entries {
            rows.push(vec![
                entry.case.id.clone(),
                engines(entry),
                entry.kind_name().into(),
                known_bugs::where_it_occurs(&entry.occurrences()),
                entry.case.title.clone(),
            ]);
        }
        console.print(&layout(&rows, 46, &|r, c, text| match (r, c) {
            (0, _) => console.paint(Style::Strong, text),
            (_, 3) if text.starts_with("not seen") => console.paint(Style::Dim, text),
            (_, 3) => console.paint(Style::Doubt, text),
            _ => text.to_string(),
        }));
        console.comment(&known_bugs::count(&entries));
    }
    Ok(ExitCode::Success)
}

/// The forms of SQL that hunts generate, a line each, with the engines that have them.
fn forms(json: bool) -> String {
    let engines = || catalog::engines::ENGINES.iter();
    let availability = |engine: &catalog::EngineDescription, form: Feature| {
        let lacked = engine.dialect.lacks.iter().filter(|(_, forms)| forms.contains(&form));
        lacked.map(|(versions, _)| *versions).next().unwrap_or(Availability::Always)
    };
    if json {
        let rows: Vec<serde_json::Value> = Feature::ALL
            .iter()
            .map(|form| {
                let of: serde_json::Map<String, serde_json::Value> = engines()
                    .map(|engine| {
                        let since = match availability(engine, *form) {
                            Availability::Never => json!(false),
                            Availability::Always => json!(true),
                            Availability::Since(version) => json!(version),
                        };
                        (engine.name.to_string(), since)
                    })
                    .collect();
                json!({"form": form.name(), "engines": of})
            })
            .collect();
        return json!({"isolde": env!("CARGO_PKG_VERSION"), "forms": rows}).to_string();
    }
    let mut rows = vec![
        std::iter::once("form".to_string())
            .chain(engines().map(|engine| engine.name.to_string()))
            .collect::<Vec<_>>(),
    ];
    for form in Feature::ALL {
        let cells = engines().map(|engine| match availability(engine, *form) {
            Availability::Never => "–".to_string(),
            Availability::Always => "✓".to_string(),
            Availability::Since(version) => version.to_string(),
        });
        rows.push(std::iter::once(form.name().to_string()).chain(cells).collect());
    }
    layout(&rows, 46, &|_, _, text| text.to_string())
}

/// The description of an engine such as `postgres@15` or `tidb+optimistic@8.5`.
fn description(named: &str) -> Result<String, Failure> {
    let bad = |why: String| Failure::new(ExitCode::Usage, why);
    let (engine, version) = named.split_once('@').unwrap_or((named, ""));
    let Some(known) = catalog::engines::description(engine) else {
        let names: Vec<&str> = catalog::engines::ENGINES.iter().map(|e| e.name).collect();
        return Err(bad(format!("`{engine}` is not one of {}", names.join(", "))));
    };
    if version.is_empty() {
        let name = known.name;
        return Err(bad(format!("`{named}` lacks a version: write --engine {name}@VERSION")));
    }
    let description = catalog::describe(engine, version);
    serde_json::to_string_pretty(&description)
        .map(|text| text + "\n")
        .map_err(|e| Failure::new(ExitCode::Internal, e.to_string()))
}

fn engines(entry: &Entry) -> String {
    let names: Vec<String> = entry.case.engines.iter().map(ToString::to_string).collect();
    if names.is_empty() { "any".into() } else { names.join(", ") }
}

fn as_json(entry: &Entry) -> serde_json::Value {
    let case = &entry.case;
    let recorded: Vec<serde_json::Value> = entry
        .occurrences()
        .iter()
        .map(|occurrence: &Occurrence| {
            json!({
                "engine": occurrence.engine,
                "version": occurrence.version,
                "level": occurrence.level,
                "outcome": match occurrence.status {
                    BugStatus::Occurs => "shows",
                    BugStatus::Sometimes => "sometimes",
                    BugStatus::NotSeen => "not seen",
                    BugStatus::Refused => "refused",
                    BugStatus::Undefined => "recorded",
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

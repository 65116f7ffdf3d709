//! `isolde servers`: lists the servers that can be started here, and those that
//! `isolde fetch` can add.

use super::Outcome;
use super::context::Context;
use crate::console::Style;
use crate::exit_code::ExitCode;
use crate::table::layout;
use isolde_engines::fetch::{self, install};
use isolde_engines::{built_in, target};

pub fn run(context: &Context<'_>) -> Outcome {
    let machine = install::machine_installs();
    let cached = install::cached_installs(&context.options.cache);
    let fetchable = fetch::fetchable();
    if context.json {
        let fetchable: Vec<serde_json::Value> = fetchable
            .iter()
            .map(|f| serde_json::json!({"engine": f.engine, "versions": f.versions, "client": f.client, "note": f.note}))
            .collect();
        let embedded: Vec<serde_json::Value> = built_in::engines()
            .iter()
            .map(|e| serde_json::json!({"engine": e.engine, "version": e.version}))
            .collect();
        let all = serde_json::json!({
            "embedded": embedded,
            "machine": machine,
            "cache": cached,
            "fetchable": fetchable,
        });
        context.console.print(&all.to_string());
        return Ok(ExitCode::Success);
    }
    let mut rows = Vec::new();
    for engine in built_in::engines() {
        rows.push(vec![engine.engine.to_string(), engine.version.to_string(), "built in".into()]);
    }
    for found in &machine {
        let from = format!("installed: {}", found.server.display());
        rows.push(vec![found.engine.clone(), found.version.clone(), from]);
    }
    for found in &cached {
        let from = format!("in the cache, from {}", found.source);
        rows.push(vec![found.engine.clone(), found.version.clone(), from]);
    }
    let plain = |_: usize, _: usize, text: &str| text.to_string();
    let console = context.console;
    console.print(&console.paint(Style::Strong, "Ready to start:"));
    console.print(&indent(&layout(&rows, 90, &plain)));
    let mut rows = Vec::new();
    for offer in &fetchable {
        let name = format!("isolde fetch {}@…", offer.engine);
        rows.push(vec![
            name,
            offer.versions.to_string(),
            format!("with {}", offer.client),
            offer.note.to_string(),
        ]);
    }
    console.print(&console.paint(Style::Strong, "Can be fetched:"));
    console.print(&indent(&layout(&rows, 56, &plain)));
    let modes: Vec<String> = target::ENGINES
        .iter()
        .flat_map(|e| {
            e.engine
                .modes
                .iter()
                .map(move |(mode, what)| format!("{}+{mode} ({what})", e.engine.name))
        })
        .collect();
    console.comment(&format!("Modes: {}.", modes.join(", ")));
    console.comment(
        "By URL: postgres://, mysql://, mariadb://, tidb://, dolt://, cockroach:// (untested: its \
         profile is written from its documentation).",
    );
    console.comment(&format!("Cache: {}.", context.options.cache.root().display()));
    Ok(ExitCode::Success)
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

//! `isolde servers`: what can be started here, from where, and what fetch
//! could add.

use super::{Context, Outcome};
use crate::console::Style;
use crate::exit_code::ExitCode;
use crate::table::layout;
use isolde_engines::fetch::{self, install};
use isolde_engines::target;

pub fn run(context: &Context<'_>) -> Outcome {
    let machine = install::machine_installs();
    let cached = install::cached_installs(&context.options.cache);
    let fetchable = fetch::fetchable();
    if context.json {
        let fetchable: Vec<serde_json::Value> = fetchable
            .iter()
            .map(|f| serde_json::json!({"engine": f.engine, "versions": f.versions, "client": f.client, "note": f.note}))
            .collect();
        let all = serde_json::json!({
            "embedded": [{"engine": "sqlite", "version": isolde_engines::sqlite::version()}],
            "machine": machine,
            "cache": cached,
            "fetchable": fetchable,
        });
        context.console.print(&all.to_string());
        return Ok(ExitCode::Fine);
    }
    let mut rows = vec![vec![
        "sqlite".to_string(),
        isolde_engines::sqlite::version().to_string(),
        "in this program".to_string(),
    ]];
    for (place, installs) in [("this machine", &machine), ("the cache", &cached)] {
        for found in installs {
            let from = match place {
                "this machine" => format!("this machine: {}", found.server.display()),
                _ => format!("the cache, from {}", found.source),
            };
            rows.push(vec![found.engine.clone(), found.version.clone(), from]);
        }
    }
    let plain = |_: usize, _: usize, text: &str| text.to_string();
    let console = context.console;
    console.print(&console.paint(Style::Strong, "Can be started here:"));
    console.print(&indent(&layout(&rows, 90, &plain)));
    let mut rows = Vec::new();
    for offer in &fetchable {
        let name = format!("isolde fetch {}@…", offer.engine);
        rows.push(vec![
            name,
            offer.versions.to_string(),
            format!("by {}", offer.client),
            offer.note.to_string(),
        ]);
    }
    console.print(&console.paint(Style::Strong, "Could be fetched:"));
    console.print(&indent(&layout(&rows, 56, &plain)));
    let modes: Vec<String> = target::ENGINES
        .iter()
        .flat_map(|e| e.modes.iter().map(move |(mode, what)| format!("{}+{mode} ({what})", e.name)))
        .collect();
    console.say(&format!("Modes: {}.", modes.join(", ")));
    console.say(
        "By URL: postgres://, mysql://, mariadb://, tidb://, dolt://, cockroach:// (its profile \
         is written from its documentation, untested).",
    );
    console.say(&format!("The cache is {}.", context.options.cache.root().display()));
    Ok(ExitCode::Fine)
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

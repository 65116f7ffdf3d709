//! `isolde clean`: removes the databases that killed Isolde processes left on a
//! user's server.

use super::Outcome;
use super::context::Context;
use crate::args::clean::CleanArgs;
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use isolde_engines::server::abandoned::{self, Cleanup};
use isolde_engines::target::Target;
use serde_json::json;

pub fn run(context: &Context<'_>, args: &CleanArgs) -> Outcome {
    let target = context.parse_target(&args.target)?;
    if !matches!(target, Target::Url(_)) {
        let why = format!("{target} is not a URL; private servers leave nothing to clean");
        return Err(Failure::new(ExitCode::Usage, why));
    }
    let mut connection = target.admin_connection()?;
    let found = abandoned::clean(connection.as_mut(), None)?;
    if context.json {
        let stuck: Vec<_> =
            found.failed.iter().map(|(name, why)| json!({"database": name, "why": why})).collect();
        let all = json!({
            "target": target.to_string(),
            "removed": found.removed,
            "in_use": found.in_use,
            "elsewhere": found.elsewhere,
            "stuck": stuck,
        });
        context.console.print(&all.to_string());
    } else {
        show(context, &found);
    }
    Ok(if found.failed.is_empty() { ExitCode::Success } else { ExitCode::Unreachable })
}

fn show(context: &Context<'_>, found: &Cleanup) {
    let console = context.console;
    for name in &found.removed {
        console.print(&format!("removed     {name}"));
    }
    for name in &found.in_use {
        console.comment(&format!("kept        {name}: its process is running"));
    }
    for name in &found.elsewhere {
        console.comment(&format!(
            "kept        {name}: created on another machine or in another container; run `isolde \
             clean` there"
        ));
    }
    for (name, why) in &found.failed {
        let text = format!("not removed {name}: {why}");
        console.print(&console.paint(Style::Bad, &text));
    }
    if *found == Cleanup::default() {
        console.comment("nothing to remove");
    }
}

//! `isolde clean`: removes the databases that killed Isoldes have left on a
//! user's server.

use super::{Context, Outcome};
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use isolde_engines::server::leftovers::{self, Leftovers};
use isolde_engines::target::Target;
use serde_json::json;

pub fn run(context: &Context<'_>, target: &str) -> Outcome {
    let target = context.parse_target(target)?;
    if !matches!(target, Target::Url(_)) {
        let why = format!("{target} is no URL; private servers leave nothing behind");
        return Err(Failure::new(ExitCode::Usage, why));
    }
    let mut door = target.door()?;
    let found = leftovers::clean(door.as_mut(), None)?;
    if context.json {
        let stuck: Vec<_> =
            found.stuck.iter().map(|(name, why)| json!({"database": name, "why": why})).collect();
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
    Ok(if found.stuck.is_empty() { ExitCode::Fine } else { ExitCode::Unreachable })
}

fn show(context: &Context<'_>, found: &Leftovers) {
    let console = context.console;
    for name in &found.removed {
        console.print(&format!("removed     {name}"));
    }
    for name in &found.in_use {
        console.say(&format!("left alone  {name}: its owner is at work"));
    }
    for name in &found.elsewhere {
        console.say(&format!(
            "left alone  {name}: made on another machine or in another container; only there can \
             one tell whether its owner is dead"
        ));
    }
    for (name, why) in &found.stuck {
        let text = format!("not removed {name}: {why}");
        console.print(&console.paint(Style::Bad, &text));
    }
    if *found == Leftovers::default() {
        console.say("nothing that Isolde has left");
    }
}

//! `isolde driver-check`: checks that a driver follows the protocol.

use super::Outcome;
use super::context::Context;
use crate::args::driver_check::DriverCheckArgs;
use crate::console::Style;
use crate::exit_code::ExitCode;
use isolde_engines::driver::check;
use isolde_engines::driver::command::DriverCommand;

pub fn run(context: &Context<'_>, args: &DriverCheckArgs) -> Outcome {
    // A single word may be a whole command line, as after `driver:`.
    let command = match args.command.as_slice() {
        [line] => DriverCommand::parse(line)?,
        [program, args @ ..] => {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            DriverCommand::new(program.clone(), &args)
        }
        [] => unreachable!("clap requires a command"),
    };
    let results = check::check(&command);
    let failed = results.iter().filter(|r| !r.ok).count();
    if context.json {
        let list: Vec<serde_json::Value> = results
            .iter()
            .map(|r| serde_json::json!({"check": r.name, "ok": r.ok, "detail": r.detail}))
            .collect();
        context.console.print(&serde_json::json!({"checks": list, "failed": failed}).to_string());
    } else {
        for result in &results {
            let mark = match result.ok {
                true => context.console.paint(Style::Good, "ok    "),
                false => context.console.paint(Style::Bad, "not ok"),
            };
            let detail = if result.detail.is_empty() {
                String::new()
            } else {
                format!("\n         {}", result.detail.replace('\n', "\n         "))
            };
            context.console.print(&format!("{mark}  {}{detail}", result.name));
        }
        context.console.comment(&format!("{} checks, {failed} failed", results.len()));
    }
    Ok(if failed == 0 { ExitCode::Success } else { ExitCode::Violation })
}

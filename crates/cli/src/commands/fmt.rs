//! `isolde fmt`: rewrites case files in their canonical form.

use super::Outcome;
use super::context::Context;
use crate::args::fmt::FmtArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::files::{self, read_text};
use isolde_model::case;
use std::path::Path;

pub fn run(context: &Context<'_>, args: &FmtArgs) -> Outcome {
    let mut worst = ExitCode::Success;
    let mut report = Vec::new();
    for path in &args.files {
        let text = read_text(path)?;
        let parsed = match case::parse(&text) {
            Ok(parsed) => parsed,
            Err(error) => {
                context.console.error(&format!("{}: {error}", path.display()));
                worst = worst.worse(ExitCode::BadInput);
                continue;
            }
        };
        let formatted = case::format(&parsed);
        let changed = formatted != text;
        if path == Path::new("-") && !args.check {
            context.console.print_exactly(&formatted);
            continue;
        }
        if changed && args.check {
            worst = worst.worse(ExitCode::Violation);
        } else if changed {
            files::replace(path, &formatted).map_err(|e| Failure::cannot_write(path, &e))?;
        }
        report.push(serde_json::json!({"file": path, "changed": changed}));
        if changed && !context.json {
            let verb = if args.check { "would change" } else { "formatted" };
            context.console.comment(&format!("{verb} {}", path.display()));
        }
    }
    if context.json {
        context.console.print(&serde_json::json!({ "files": report }).to_string());
    }
    Ok(worst)
}

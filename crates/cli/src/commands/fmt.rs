//! `isolde fmt`: case files in their one canonical form.

use super::{Context, Outcome, read_file};
use crate::exit_code::{ExitCode, Failure};
use crate::whole_file;
use isolde_core::case;
use std::path::{Path, PathBuf};

pub fn run(context: &Context<'_>, files: &[PathBuf], check: bool) -> Outcome {
    let mut worst = ExitCode::Fine;
    let mut report = Vec::new();
    for path in files {
        let text = read_file(path)?;
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
        if path == Path::new("-") && !check {
            context.console.print_exactly(&formatted);
            continue;
        }
        if changed && check {
            worst = worst.worse(ExitCode::Violation);
        } else if changed {
            whole_file::write(path, &formatted).map_err(|e| Failure::cannot_write(path, &e))?;
        }
        report.push(serde_json::json!({"file": path, "changed": changed}));
        if changed && !context.json {
            let verb = if check { "would change" } else { "formatted" };
            context.console.say(&format!("{verb} {}", path.display()));
        }
    }
    if context.json {
        context.console.print(&serde_json::json!({ "files": report }).to_string());
    }
    Ok(worst)
}

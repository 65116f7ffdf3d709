//! `isolde order`: infers the order in which a database executed the operations
//! of a trace.

use super::Outcome;
use super::context::Context;
use crate::args::order::OrderArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::files::{self, read_text};
use isolde_model::{Trace, case};
use isolde_order as order;
use isolde_order::leopard;
use isolde_order::{Inferred, Names, Occurrences, Schedule};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

pub fn run(context: &Context<'_>, args: &OrderArgs) -> Outcome {
    context.console.progress(&format!("reading {}", args.trace.display()));
    let trace = read(&args.trace)?;
    context.console.progress("inferring the order");
    let inferred = order::infer(&trace, args.protocol.map(Into::into), args.budget)
        .map_err(|e| Failure::new(ExitCode::BadInput, format!("{}: {e}", args.trace.display())))?;
    context.console.end_progress();
    if let Some(path) = &args.case {
        write_case(&trace, &inferred, &args.trace, path)?;
    }
    if context.json {
        context.console.print(&json_of(&trace, &inferred).to_string());
    } else {
        context.console.print(&text_of(&trace, &inferred, args));
    }
    Ok(if inferred.is_cut_off() { ExitCode::Undecided } else { ExitCode::Success })
}

/// Reads a trace of Isolde's own, or a folder of Leopard's.
fn read(path: &Path) -> Result<Trace, Failure> {
    let bad = |why: String| Failure::new(ExitCode::BadInput, why);
    if path.is_dir() {
        let files = leopard_files(path)?;
        return leopard::read(&files).map_err(|e| bad(e.to_string()));
    }
    let text = read_text(path)?;
    Trace::from_lines(text.lines()).map_err(|e| bad(format!("{}: {e}", path.display())))
}

/// The names and texts of Leopard's files, one per thread.
fn leopard_files(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    let failed = |path: &Path, why: std::io::Error| {
        Failure::new(ExitCode::BadInput, format!("{}: {why}", path.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(|e| failed(folder, e))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    if files.is_empty() {
        let why = format!("{}: there are no .json files in it, one per thread", folder.display());
        return Err(Failure::new(ExitCode::BadInput, why));
    }
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).map_err(|e| failed(file, e))?;
        Ok((file.display().to_string(), text))
    };
    files.iter().map(read).collect()
}

fn write_case(trace: &Trace, inferred: &Inferred, from: &Path, path: &Path) -> Result<(), Failure> {
    let name = from.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let id: String = name.unwrap_or_default().chars().map(plain).collect();
    let id = id.trim_matches('-');
    let case = Schedule::of(trace, inferred)
        .case(trace, if id.is_empty() { "trace" } else { id })
        .map_err(|e| Failure::new(ExitCode::BadInput, format!("{}: {e}", from.display())))?;
    files::replace(path, &case::format(&case)).map_err(|e| Failure::cannot_write(path, &e))
}

fn json_of(trace: &Trace, inferred: &Inferred) -> Value {
    let names = Names::new(trace);
    let noted = |name: &str, meaning: &str, noted: &Occurrences| json!({"what": name, "meaning": meaning, "count": noted.count, "first": names.of(noted)});
    let irregular = inferred.violations.iter().map(|(w, n)| noted(w.name(), w.meaning(), n));
    let open = inferred.open.iter().map(|(what, n)| noted(what.name(), what.meaning(), n));
    let rules = inferred.decided.iter().map(|(rule, count)| (rule.name(), *count));
    json!({
        "operations": trace.operations.len(),
        "transactions": trace.transactions.len(),
        "protocol": inferred.control.protocol,
        "sees": inferred.control.read_visibility,
        "told": rules.collect::<std::collections::BTreeMap<_, _>>(),
        "irregular": irregular.collect::<Vec<_>>(),
        "open": open.collect::<Vec<_>>(),
        "batches": inferred.batches().collect::<Vec<_>>(),
    })
}

fn text_of(trace: &Trace, inferred: &Inferred, args: &OrderArgs) -> String {
    let names = Names::new(trace);
    let mut out = String::new();
    let on = [trace.on.engine.as_str(), trace.on.version.as_str()].join(" ");
    let on = if on.trim().is_empty() { String::new() } else { format!(" on {}", on.trim()) };
    let level = trace.level.map_or(String::new(), |level| format!(" at {level}"));
    let _ = writeln!(
        out,
        "{} operations of {} transactions in {} sessions{on}{level}: {} batches under {}",
        trace.operations.len(),
        trace.transactions.len(),
        trace.sessions.len(),
        inferred.batches.len(),
        inferred.control.protocol.name()
    );
    let rules: Vec<String> =
        inferred.decided.iter().map(|(rule, count)| format!("{} {count}", rule.name())).collect();
    let rules = if rules.is_empty() { "no operations conflict".into() } else { rules.join(", ") };
    let _ = writeln!(out, "ordered by: {rules}");
    let mut list = |title: &str, meaning: &str, noted: &Occurrences| {
        let _ = writeln!(out, "{title}: {} {meaning}", noted.count);
        for name in names.of(noted) {
            let _ = writeln!(out, "  {name}");
        }
        if noted.count > noted.first.len() as u64 {
            let _ = writeln!(out, "  …");
        }
    };
    for (what, noted) in &inferred.violations {
        list("protocol violation", what.meaning(), noted);
    }
    for (what, noted) in &inferred.open {
        list("undecided", what.meaning(), noted);
    }
    if let Some(path) = &args.case {
        let _ = writeln!(out, "schedule written to {}", path.display());
    }
    if args.summary {
        return out.trim_end().to_string();
    }
    let width = inferred.batches.len().to_string().len();
    for (number, batch) in inferred.batches().enumerate() {
        for (nth, at) in batch.iter().enumerate() {
            let label = if nth == 0 { (number + 1).to_string() } else { String::new() };
            let _ = writeln!(out, "{label:>width$}  {}", names.operation(*at));
        }
    }
    out.trim_end().to_string()
}

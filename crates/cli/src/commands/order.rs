//! `isolde order`: the order in which a database executed what a trace has.

use super::{Context, Outcome, read_file};
use crate::exit_code::{ExitCode, Failure};
use crate::order_args::OrderArgs;
use crate::whole_file;
use isolde_core::order::{self, Inferred, Names, Noted, Schedule};
use isolde_core::{Trace, case};
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
        context.console.print(&told(&trace, &inferred).to_string());
    } else {
        context.console.print(&text(&trace, &inferred, args));
    }
    Ok(if inferred.is_cut_off() { ExitCode::Undecided } else { ExitCode::Fine })
}

/// Isolde's own trace, or a folder of Leopard's.
fn read(path: &Path) -> Result<Trace, Failure> {
    let bad = |why: String| Failure::new(ExitCode::BadInput, why);
    if path.is_dir() {
        return isolde_histories::read_leopard(path).map_err(|e| bad(e.to_string()));
    }
    let text = read_file(path)?;
    Trace::from_lines(text.lines()).map_err(|e| bad(format!("{}: {e}", path.display())))
}

fn write_case(trace: &Trace, inferred: &Inferred, from: &Path, path: &Path) -> Result<(), Failure> {
    let name = from.file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let id: String = name.unwrap_or_default().chars().map(plain).collect();
    let id = id.trim_matches('-');
    let case = Schedule::of(trace, inferred)
        .case(trace, if id.is_empty() { "trace" } else { id })
        .map_err(|e| Failure::new(ExitCode::BadInput, format!("{}: {e}", from.display())))?;
    whole_file::write(path, &case::format(&case)).map_err(|e| Failure::cannot_write(path, &e))
}

fn told(trace: &Trace, inferred: &Inferred) -> Value {
    let names = Names::new(trace);
    let noted = |name: &str, meaning: &str, noted: &Noted| json!({"what": name, "meaning": meaning, "count": noted.count, "first": names.of(noted)});
    let irregular = inferred.irregular.iter().map(|(w, n)| noted(w.name(), w.meaning(), n));
    let open = inferred.open.iter().map(|(what, n)| noted(what.name(), what.meaning(), n));
    let rules = inferred.told.iter().map(|(rule, count)| (rule.name(), *count));
    json!({
        "operations": trace.operations.len(),
        "transactions": trace.transactions.len(),
        "protocol": inferred.control.protocol,
        "sees": inferred.control.sees,
        "told": rules.collect::<std::collections::BTreeMap<_, _>>(),
        "irregular": irregular.collect::<Vec<_>>(),
        "open": open.collect::<Vec<_>>(),
        "batches": inferred.batches().collect::<Vec<_>>(),
    })
}

fn text(trace: &Trace, inferred: &Inferred, args: &OrderArgs) -> String {
    let names = Names::new(trace);
    let mut out = String::new();
    let on = [trace.on.engine.as_str(), trace.on.version.as_str()].join(" ");
    let on = if on.trim().is_empty() { String::new() } else { format!(" on {}", on.trim()) };
    let level = trace.level.map_or(String::new(), |level| format!(" at {level}"));
    let _ = writeln!(
        out,
        "{} operations of {} transactions in {} sessions{on}{level}: {} batches by {}",
        trace.operations.len(),
        trace.transactions.len(),
        trace.sessions.len(),
        inferred.batches.len(),
        inferred.control.protocol.name()
    );
    let rules: Vec<String> =
        inferred.told.iter().map(|(rule, count)| format!("{} {count}", rule.name())).collect();
    let rules = if rules.is_empty() { "nothing conflicts".into() } else { rules.join(", ") };
    let _ = writeln!(out, "told by: {rules}");
    let mut list = |title: &str, meaning: &str, noted: &Noted| {
        let _ = writeln!(out, "{title}: {} {meaning}", noted.count);
        for name in names.of(noted) {
            let _ = writeln!(out, "  {name}");
        }
        if noted.count > noted.first.len() as u64 {
            let _ = writeln!(out, "  …");
        }
    };
    for (what, noted) in &inferred.irregular {
        list("not explained by the protocol", what.meaning(), noted);
    }
    for (what, noted) in &inferred.open {
        list("open", what.meaning(), noted);
    }
    if let Some(path) = &args.case {
        let _ = writeln!(out, "the schedule: {}", path.display());
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

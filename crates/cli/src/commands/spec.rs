//! `isolde spec`: runs PostgreSQL isolation specs on a target, and prints their
//! output or compares it with expected files.

use super::Outcome;
use super::context::Context;
use crate::args::spec::SpecArgs;
use crate::console::Style;
use crate::diff::{distance, short_diff};
use crate::exit_code::{ExitCode, Failure};
use crate::files::read_text;
use crate::interrupt;
use isolde_engines::engine::Engine;
use isolde_engines::spec::{Options, SpecError, SpecOutcome};
use isolde_interop::spec;
use isolde_interop::spec::Spec;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const DIFF_LINES: usize = 40;
const SQL_SHOWN: usize = 600;

/// The run of one spec.
struct SpecRun {
    name: String,
    output: String,
    run: SpecOutcome,
    comparison: Comparison,
}

/// The comparison of the output with the expected files.
enum Comparison {
    /// No comparison was asked for.
    Printed,
    Matches(String),
    Differs {
        nearest: Option<String>,
        diff: Vec<String>,
    },
}

pub fn run(context: &Context<'_>, args: &SpecArgs) -> Outcome {
    let target = context.parse_target(&args.on)?;
    let expected = args.expected.as_deref();
    let (specs, mut worst) = read_specs(context, &args.files);
    if let Some(dir) = expected
        && !dir.is_dir()
    {
        let message = format!("{} is not a directory of expected outputs", dir.display());
        return Err(Failure::new(ExitCode::Usage, message));
    }
    if specs.is_empty() {
        return Ok(worst);
    }
    let mut engine = context.open_engine(&target)?;
    let mut all = Vec::new();
    for (name, spec) in &specs {
        match run_one(context, engine.as_mut(), name, spec, expected) {
            Ok(ran) => {
                let fine =
                    ran.run.finished && !matches!(ran.comparison, Comparison::Differs { .. });
                let matches = matches!(ran.comparison, Comparison::Matches(_));
                if !fine && !matches {
                    worst = worst.worse(ExitCode::Violation);
                }
                if !context.json {
                    show(context, &ran, &engine.info().engine);
                }
                let broken = !ran.run.finished && engine.control("select 1").is_err();
                all.push(ran);
                if broken && engine.revive().is_err() {
                    context
                        .console
                        .error(&format!("{target} is gone; the remaining specs are not run"));
                    worst = worst.worse(ExitCode::Unreachable);
                    break;
                }
            }
            Err(SpecError::Interrupted) => {
                worst = worst.worse(ExitCode::Interrupted);
                break;
            }
            Err(error) => {
                context.console.error(&format!("{name} on {target}: {error}"));
                worst = worst.worse(ExitCode::Unreachable);
                if engine.revive().is_err() {
                    break;
                }
            }
        }
    }
    let info = engine.info();
    if context.json {
        let specs: Vec<Value> = all.iter().map(as_json).collect();
        let report = json!({
            "isolde": env!("CARGO_PKG_VERSION"),
            "target": info.target, "engine": info.engine, "version": info.version,
            "specs": specs,
        });
        context.console.print(&report.to_string());
    } else if expected.is_some() {
        let good = all.iter().filter(|r| matches!(r.comparison, Comparison::Matches(_))).count();
        let text = format!("{} specs: {good} ok, {} not ok", all.len(), all.len() - good);
        context.console.comment(&text);
    }
    Ok(worst)
}

/// Reads all files before any of them runs, and reports every bad one.
fn read_specs(context: &Context<'_>, files: &[PathBuf]) -> (Vec<(String, Spec)>, ExitCode) {
    let mut specs = Vec::new();
    let mut worst = ExitCode::Success;
    for path in files {
        let parsed = read_text(path).map_err(|f| f.message).and_then(|text| {
            spec::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
        });
        match parsed {
            Ok(spec) => {
                let name = path.file_stem().unwrap_or(path.as_os_str());
                specs.push((name.to_string_lossy().into_owned(), spec));
            }
            Err(message) => {
                context.console.error(&message);
                worst = ExitCode::BadInput;
            }
        }
    }
    (specs, worst)
}

fn run_one(
    context: &Context<'_>,
    engine: &mut dyn Engine,
    name: &str,
    spec: &Spec,
    expected: Option<&Path>,
) -> Result<SpecRun, SpecError> {
    let mut options = Options::new(name);
    options.interrupted = interrupt::is_requested;
    let show_at_once = expected.is_none() && !context.json;
    if !show_at_once {
        context.console.progress(name);
    }
    let mut output = String::new();
    let outcome = isolde_engines::spec::run(engine, spec, &options, &mut |text| {
        if show_at_once {
            context.console.print_exactly(text);
        }
        output.push_str(text);
    });
    context.console.end_progress();
    let run = outcome?;
    let comparison = expected.map_or(Comparison::Printed, |dir| compare(dir, name, &output));
    Ok(SpecRun { name: name.into(), output, run, comparison })
}

/// Compares with NAME.out, then with NAME_0.out to NAME_9.out, as pg_regress
/// does.
fn compare(dir: &Path, name: &str, output: &str) -> Comparison {
    let mut nearest: Option<(usize, String, String)> = None;
    let alternatives = (0..10).map(|i| format!("{name}_{i}.out"));
    for file in std::iter::once(format!("{name}.out")).chain(alternatives) {
        let Ok(bytes) = std::fs::read(dir.join(&file)) else { continue };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text == output {
            return Comparison::Matches(file);
        }
        let far = distance(&text, output);
        if nearest.as_ref().is_none_or(|(least, ..)| far < *least) {
            nearest = Some((far, file, text));
        }
    }
    match nearest {
        Some((_, file, text)) => {
            let diff = short_diff(&text, output, DIFF_LINES);
            Comparison::Differs { nearest: Some(file), diff }
        }
        None => Comparison::Differs {
            nearest: None,
            diff: vec![format!("{} does not exist", dir.join(format!("{name}.out")).display())],
        },
    }
}

fn show(context: &Context<'_>, ran: &SpecRun, engine: &str) {
    let console = context.console;
    match &ran.comparison {
        Comparison::Printed => {}
        Comparison::Matches(file) => {
            let plain = *file == format!("{}.out", ran.name);
            let which = if plain { String::new() } else { format!("  ({file})") };
            console.print(&format!("{} {}{which}", console.paint(Style::Good, "ok"), ran.name));
        }
        Comparison::Differs { nearest, diff } => {
            let which = nearest.as_ref().map(|f| format!("  (against {f})")).unwrap_or_default();
            console.print(&format!("{} {}{which}", console.paint(Style::Bad, "not ok"), ran.name));
            for line in diff {
                let text = format!("    {line}");
                console.print(&match line.chars().next() {
                    Some('-') => console.paint(Style::Bad, &text),
                    Some('+') => console.paint(Style::Good, &text),
                    _ => text,
                });
            }
        }
    }
    for place in &ran.run.left_open {
        console.note(&format!(
            "{}: the {place} was blocked by transactions that the steps left open; \
             they were rolled back",
            ran.name
        ));
    }
    // On PostgreSQL such errors are part of many tests; elsewhere they mean
    // that the spec does not fit the engine.
    if engine != "postgres" {
        for rejected in &ran.run.rejected {
            console.note(&format!(
                "{}: {engine} rejected {} (line {}): {}\n    {}",
                ran.name,
                rejected.place,
                rejected.line,
                rejected.message,
                shortened(&rejected.sql).replace('\n', "\n    ")
            ));
        }
    }
}

/// The beginning of a statement, enough to recognise it.
fn shortened(sql: &str) -> String {
    match sql.char_indices().nth(SQL_SHOWN) {
        Some((end, _)) => format!("{} …", &sql[..end]),
        None => sql.into(),
    }
}

fn as_json(ran: &SpecRun) -> Value {
    let rejected: Vec<Value> = ran
        .run
        .rejected
        .iter()
        .map(|r| json!({"place": r.place, "line": r.line, "sql": r.sql, "message": r.message}))
        .collect();
    let mut value = json!({
        "name": ran.name,
        "finished": ran.run.finished,
        "output": ran.output,
        "rejected": rejected,
        "left_open": ran.run.left_open,
    });
    match &ran.comparison {
        Comparison::Printed => {}
        Comparison::Matches(file) => {
            value["status"] = "ok".into();
            value["expected"] = file.as_str().into();
        }
        Comparison::Differs { nearest, diff } => {
            value["status"] = "not ok".into();
            value["expected"] = nearest.clone().into();
            value["diff"] = json!(diff);
        }
    }
    value
}

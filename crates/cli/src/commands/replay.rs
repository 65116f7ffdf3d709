//! `isolde replay`: case files on targets and levels, side by side.

use super::{Context, Levels, Outcome, parse_levels, read_file};
use crate::console::Style;
use crate::exit_code::{ExitCode, Failure};
use crate::table::layout_within;
use isolde_core::case::{self, Case};
use isolde_core::judge::{self, Mismatch};
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;
use isolde_core::{History, Level};
use isolde_engines::runner::Runner;
use isolde_engines::target::Target;
use serde_json::json;
use std::path::{Path, PathBuf};

/// One case on one target, at each level.
struct Played {
    case: Case,
    target: String,
    runs: Vec<(History, Vec<Mismatch>)>,
}

pub fn run(
    context: &Context<'_>,
    files: &[PathBuf],
    targets: &[String],
    levels: &[String],
    out: Option<&Path>,
) -> Outcome {
    let levels = parse_levels(levels)?;
    let targets: Result<Vec<Target>, _> = targets.iter().map(|t| context.parse_target(t)).collect();
    let targets = targets?;
    let (cases, mut worst) = read_cases(context, files)?;
    let mut all = Vec::new();
    for target in &targets {
        let mut runner = match context.open(target) {
            Ok(runner) => runner,
            Err(failure) => {
                context.console.error(&format!("{target}: {}", failure.message));
                worst = worst.worse(failure.code);
                continue;
            }
        };
        for case in &cases {
            let mut own = match own_server(context, target, case) {
                Ok(own) => own,
                Err(failure) => {
                    context.console.error(&format!("{}: {}", case.id, failure.message));
                    worst = worst.worse(failure.code);
                    continue;
                }
            };
            let runner = own.as_mut().unwrap_or(&mut runner);
            let (played, code) = play(context, runner, target, case, levels.as_ref());
            worst = worst.worse(code);
            if played.runs.is_empty() {
                continue;
            }
            if !context.json {
                show(context, &played);
            }
            all.push(played);
            if code == ExitCode::Interrupted {
                break;
            }
        }
    }
    if context.json {
        context.console.print(&as_json(&all).to_string());
    }
    if let Some(path) = out {
        std::fs::write(path, as_markdown(&all)).map_err(|e| {
            Failure::new(ExitCode::BadInput, format!("cannot write {}: {e}", path.display()))
        })?;
    }
    Ok(worst)
}

/// The server of a case that needs one with options.
fn own_server(
    context: &Context<'_>,
    target: &Target,
    case: &Case,
) -> Result<Option<Runner>, Failure> {
    if case.server_options.is_empty() {
        return Ok(None);
    }
    let target = target
        .with_server_options(&case.server_options)
        .map_err(|why| Failure::new(ExitCode::Usage, why))?;
    context.open(&target).map(Some)
}

/// Every file is read before anything runs; one bad file does not hide another.
fn read_cases(context: &Context<'_>, files: &[PathBuf]) -> Result<(Vec<Case>, ExitCode), Failure> {
    let mut cases = Vec::new();
    let mut worst = ExitCode::Fine;
    for path in files {
        let text = match read_file(path) {
            Ok(text) => text,
            Err(failure) => {
                context.console.error(&failure.message);
                worst = worst.worse(failure.code);
                continue;
            }
        };
        match case::parse(&text) {
            Ok(case) => cases.push(case),
            Err(error) => {
                context.console.error(&format!("{}: {error}", path.display()));
                worst = ExitCode::BadInput;
            }
        }
    }
    Ok((cases, worst))
}

fn play(
    context: &Context<'_>,
    runner: &mut Runner,
    target: &Target,
    case: &Case,
    levels: Option<&Levels>,
) -> (Played, ExitCode) {
    let profile = runner.engine.profile();
    let chosen: Vec<Option<Level>> = match levels {
        Some(Levels::All) => profile.level_names().into_iter().map(Some).collect(),
        Some(Levels::These(levels)) => levels.iter().copied().map(Some).collect(),
        None => vec![Some(case.level.unwrap_or(profile.default_level))],
    };
    let info = runner.engine.info().clone();
    let mut played = Played {
        case: case.clone(),
        target: format!("{} {}", info.engine, info.version),
        runs: Vec::new(),
    };
    if !case.runs_on(&info.engine, &info.version) {
        let meant: Vec<String> = case.engines.iter().map(ToString::to_string).collect();
        context.console.note(&format!(
            "{}: skipped on {}; it is meant for {}",
            case.id,
            played.target,
            meant.join(", ")
        ));
        return (played, ExitCode::Fine);
    }
    let mut worst = ExitCode::Fine;
    for level in chosen {
        context.console.progress(&format!("{} on {target}", case.id));
        match runner.run(case, level) {
            Ok(history) => {
                let mismatches = judge::mismatches(case, &history);
                if !mismatches.is_empty() {
                    worst = worst.worse(ExitCode::Violation);
                }
                if history.lost_server() {
                    worst = worst.worse(ExitCode::Violation);
                }
                played.runs.push((history, mismatches));
            }
            Err(error) => {
                let failure = Failure::from(error);
                context.console.error(&format!("{} on {target}: {}", case.id, failure.message));
                worst = worst.worse(failure.code);
                if failure.code == ExitCode::Interrupted || failure.code == ExitCode::Unreachable {
                    break;
                }
            }
        }
    }
    context.console.end_progress();
    (played, worst)
}

/// The table: a row a step, a column a level; `*` where levels differ.
fn rows_of(played: &Played) -> Vec<(bool, Vec<String>)> {
    let differs = |cells: &[String]| cells.windows(2).any(|w| w[0] != w[1]);
    let mut rows = Vec::new();
    for (i, step) in played.case.steps.iter().enumerate() {
        let level = step.level.map(|l| format!("({})", l.short())).unwrap_or_default();
        let mut row = vec![format!("{}{level}> {};", step.session, step.sql.replace('\n', " "))];
        let cells: Vec<String> = played.runs.iter().map(|(h, _)| summary(h, i)).collect();
        let differ = differs(&cells);
        row.extend(cells);
        rows.push((differ, row));
    }
    for session in played.case.sessions() {
        let cells: Vec<String> = played
            .runs
            .iter()
            .map(|(h, _)| {
                h.ending(session).map_or("no transaction", judge::ending_name).to_string()
            })
            .collect();
        let differ = differs(&cells);
        rows.push((differ, std::iter::once(format!("{session} ended")).chain(cells).collect()));
    }
    let finals = played.runs.iter().map(|(h, _)| h.final_state.len()).max().unwrap_or(0);
    for i in 0..finals {
        let state = |h: &History| match h.final_state.get(i) {
            Some(f) => {
                f.error.as_ref().map_or_else(|| show_rows(&f.rows), |e| format!("error {}", e.code))
            }
            None => "not read".into(),
        };
        let query =
            played.runs.iter().find_map(|(h, _)| h.final_state.get(i)).map(|f| f.query.clone());
        let cells: Vec<String> = played.runs.iter().map(|(h, _)| state(h)).collect();
        let differ = differs(&cells);
        let title = format!("finally: {};", query.unwrap_or_default());
        rows.push((differ, std::iter::once(title).chain(cells).collect()));
    }
    rows
}

fn level_name(history: &History) -> String {
    history.level.map_or("default level".into(), |l| l.to_string())
}

fn show(context: &Context<'_>, played: &Played) {
    let console = context.console;
    let title = format!("{}  {}  on {}", played.case.id, played.case.title, played.target);
    console.print(&console.paint(Style::Strong, &title));
    let body = rows_of(played);
    let mut rows = vec![vec![String::new(), String::new()]];
    rows[0].extend(played.runs.iter().map(|(h, _)| level_name(h)));
    for (differ, cells) in &body {
        let mark = if *differ { "*" } else { "" };
        rows.push(std::iter::once(mark.to_string()).chain(cells.iter().cloned()).collect());
    }
    console.print(&layout_within(&rows, console.width(), &|r, c, text| match (r, c) {
        (0, _) => console.paint(Style::Strong, text),
        (_, 0) => console.paint(Style::Doubt, text),
        (_, 1) => text.to_string(),
        _ if text.contains("error") => console.paint(Style::Bad, text),
        _ if text.contains("waits") => console.paint(Style::Doubt, text),
        _ => text.to_string(),
    }));
    for (history, mismatches) in &played.runs {
        for error in history.events.iter().filter_map(|e| e.what.error()) {
            console.say(&console.paint(
                Style::Dim,
                &format!("  {}: error {}: {}", level_name(history), error.code, error.message),
            ));
        }
        if let Some(log) = &history.server_log {
            let lines: Vec<&str> = log.lines().rev().take(12).collect();
            console.print(&format!("  {}: the server died; its log ends:", level_name(history)));
            for line in lines.into_iter().rev() {
                console.print(&console.paint(Style::Dim, &format!("    {line}")));
            }
        }
        for mismatch in mismatches {
            let text = format!(
                "  {}: expected {}, observed {}",
                level_name(history),
                mismatch.claim,
                mismatch.observed
            );
            console.print(&console.paint(Style::Bad, &text));
        }
    }
    console.print("");
}

fn as_json(all: &[Played]) -> serde_json::Value {
    let runs: Vec<serde_json::Value> = all
        .iter()
        .flat_map(|played| &played.runs)
        .map(|(history, mismatches)| {
            let unmet: Vec<serde_json::Value> = mismatches
                .iter()
                .map(|m| json!({"expected": m.claim.to_string(), "observed": m.observed}))
                .collect();
            json!({"history": history, "unmet": unmet})
        })
        .collect();
    json!({"isolde": env!("CARGO_PKG_VERSION"), "runs": runs})
}

fn as_markdown(all: &[Played]) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut out = String::from("# Replays\n");
    for played in all {
        out.push_str(&format!("\n## {}: {}\n\n", played.case.id, played.case.title));
        if let Some(link) = &played.case.link {
            out.push_str(&format!("<{link}>\n\n"));
        }
        if !played.case.about.is_empty() {
            out.push_str(&format!("{}\n\n", played.case.about));
        }
        out.push_str(&format!(
            "On {}, by Isolde {}.\n\n",
            played.target,
            env!("CARGO_PKG_VERSION")
        ));
        let levels: Vec<String> = played.runs.iter().map(|(h, _)| level_name(h)).collect();
        out.push_str(&format!("| | step | {} |\n", levels.join(" | ")));
        out.push_str(&format!("|---|---|{}\n", "---|".repeat(levels.len())));
        for (differ, cells) in rows_of(played) {
            let mark = if differ { "\\*" } else { "" };
            let (step, rest) = cells.split_first().expect("a row has a step");
            let rest: Vec<String> = rest.iter().map(|c| cell(c)).collect();
            out.push_str(&format!("| {mark} | `{}` | {} |\n", cell(step), rest.join(" | ")));
        }
        for (history, mismatches) in &played.runs {
            for m in mismatches {
                out.push_str(&format!(
                    "\n- {}: expected `{}`, observed `{}`\n",
                    level_name(history),
                    m.claim,
                    m.observed
                ));
            }
        }
    }
    out
}

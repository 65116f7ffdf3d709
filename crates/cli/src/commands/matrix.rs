//! `isolde matrix`: which anomalies each level of each target allows.

use super::Outcome;
use super::context::{Context, LevelChoice};
use crate::args::matrix::MatrixArgs;
use crate::console::{Console, Style};
use crate::exit_code::{ExitCode, Failure};
use crate::scenarios;
use crate::table::layout;
use isolde_engines::runner::{RunError, Runner};
use isolde_engines::target::Target;
use isolde_model::case::Case;
use isolde_model::matrix;
use isolde_model::matrix::{Cell, Outcome as CellOutcome};
use isolde_model::transcript::transcript;
use isolde_model::{Anomaly, History, Level};

pub fn run(context: &Context<'_>, args: &MatrixArgs) -> Outcome {
    let explained = args.explain.as_deref().map(CellName::parse).transpose()?;
    let levels = LevelChoice::parse(&args.level)?;
    let targets = context.parse_targets(&args.targets)?;
    run_on(context, &targets, levels.as_ref(), explained.as_ref())
}

/// Prints the matrix of the targets, or the transcripts of the cells to explain.
pub fn run_on(
    context: &Context<'_>,
    targets: &[Target],
    levels: Option<&LevelChoice>,
    explained: Option<&CellName>,
) -> Outcome {
    let cases = scenarios::hermitage();
    let (cells, worst) = context.each_target(targets, |mut runner| {
        let chosen = LevelChoice::among(levels, &runner);
        fill(context, &mut runner, &cases, &chosen, explained)
    });
    let cells: Vec<Cell> = cells.into_iter().flatten().collect();
    if let Some(name) = explained
        && cells.is_empty()
        && worst == ExitCode::Success
    {
        let message = format!("no cell matches {}", name.text);
        return Err(Failure::new(ExitCode::Usage, message));
    }
    if context.json {
        let version = env!("CARGO_PKG_VERSION");
        let all = serde_json::json!({"isolde": version, "cells": cells});
        context.console.print(&all.to_string());
    } else if explained.is_none() && !cells.is_empty() {
        context.console.print(&render(context.console, &cells));
        context.console.comment(&legend(context.console, &cells));
    }
    Ok(cells.iter().fold(worst, |worst, cell| worst.worse(code_of(cell))))
}

/// A level that allows what its documentation rules out is a violation.
fn code_of(cell: &Cell) -> ExitCode {
    match cell.outcome {
        CellOutcome::Undecided => ExitCode::Undecided,
        _ if breaks_documentation(cell) => ExitCode::Violation,
        _ => ExitCode::Success,
    }
}

fn breaks_documentation(cell: &Cell) -> bool {
    let happened = matches!(cell.outcome, CellOutcome::Possible | CellOutcome::ReadsOnly);
    happened && cell.documented == Some(false)
}

/// Runs the scenarios of every anomaly at every level.
fn fill(
    context: &Context<'_>,
    runner: &mut Runner,
    cases: &[Case],
    levels: &[Level],
    explained: Option<&CellName>,
) -> Result<Vec<Cell>, Failure> {
    let info = runner.engine.info().clone();
    let mut cells = Vec::new();
    for level in levels {
        for anomaly in Anomaly::ALL {
            if explained.is_some_and(|name| !name.matches(&info.engine, *level, anomaly)) {
                continue;
            }
            context.console.progress(&format!("{} {level}: {anomaly}", info.target));
            let mine: Vec<&Case> = cases.iter().filter(|c| c.anomaly == Some(anomaly)).collect();
            let histories = histories(runner, &mine, *level)?;
            let runs: Vec<(&Case, &History)> = mine.iter().copied().zip(&histories).collect();
            let (outcome, how, decided_by) = matrix::decide(&runs);
            let allows = runner.engine.profile().promise(*level).and_then(|p| p.allows.clone());
            cells.push(Cell {
                target: info.target.clone(),
                engine: info.engine.clone(),
                version: info.version.clone(),
                level: *level,
                anomaly,
                outcome,
                how,
                case: mine[decided_by].id.clone(),
                documented: allows.map(|a| a.contains(&anomaly)),
            });
            if explained.is_some() && !context.json {
                context.console.end_progress();
                explain_cell(
                    context.console,
                    cells.last().expect("just pushed"),
                    &runs,
                    decided_by,
                );
            }
        }
    }
    context.console.end_progress();
    Ok(cells)
}

fn histories(runner: &mut Runner, cases: &[&Case], level: Level) -> Result<Vec<History>, Failure> {
    let mut histories = Vec::new();
    for case in cases {
        match runner.run(case, Some(level)) {
            Ok(history) => histories.push(history),
            Err(RunError::Setup { sql, error, .. }) => {
                let message = format!("the target rejects the setup `{sql}`: {error}");
                return Err(Failure::new(ExitCode::Undecided, message));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(histories)
}

fn explain_cell(console: &Console, cell: &Cell, runs: &[(&Case, &History)], decided_by: usize) {
    let (case, history) = runs[decided_by];
    let title = format!(
        "{} {} at {}: {} is {} ({})",
        cell.engine,
        cell.version,
        cell.level,
        cell.anomaly,
        cell.outcome.name(),
        cell.how
    );
    console.print(&console.paint(Style::Strong, &title));
    console.print(&format!("{} — {}\n", case.id, case.title));
    let about: Vec<String> = case.about.lines().map(|l| format!("  {l}")).collect();
    console.print(&format!("{}\n", about.join("\n")));
    console.print(&transcript(history));
    let conditions: Vec<String> = case
        .possible_when
        .iter()
        .map(|c| c.claims.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "))
        .collect();
    console.print(&format!("The anomaly is possible if: {}.\n", conditions.join(";\n  or ")));
}

fn render(console: &Console, cells: &[Cell]) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        std::iter::once(String::new())
            .chain(Anomaly::ALL.iter().map(ToString::to_string))
            .collect(),
    ];
    let mut painted: Vec<Vec<Option<&Cell>>> = vec![Vec::new()];
    let mut at = 0;
    let mut last_target = "";
    while at < cells.len() {
        let first = &cells[at];
        if first.target != last_target {
            let name = format!("{} {}", first.engine, first.version);
            rows.push(vec![name]);
            painted.push(Vec::new());
            last_target = &first.target;
        }
        let row: Vec<&Cell> = cells[at..]
            .iter()
            .take_while(|c| c.target == first.target && c.level == first.level)
            .collect();
        at += row.len();
        rows.push(
            std::iter::once(format!("  {}", first.level))
                .chain(row.iter().map(|c| mark(c)))
                .collect(),
        );
        painted.push(std::iter::once(None).chain(row.into_iter().map(Some)).collect());
    }
    layout(&rows, 60, &|r, c, text| match painted[r].get(c).copied().flatten() {
        Some(cell) => console.paint(style(cell), text),
        None if r == 0 || painted[r].is_empty() => console.paint(Style::Strong, text),
        None => text.to_string(),
    })
}

fn mark(cell: &Cell) -> String {
    let sign = match cell.outcome {
        CellOutcome::Prevented => "✓",
        CellOutcome::Possible => "–",
        CellOutcome::ReadsOnly => "r",
        CellOutcome::Undecided => "?",
    };
    if breaks_documentation(cell) { format!("{sign}!") } else { sign.into() }
}

fn style(cell: &Cell) -> Style {
    match cell.outcome {
        _ if breaks_documentation(cell) => Style::Bad,
        CellOutcome::Prevented => Style::Good,
        CellOutcome::Possible => Style::Dim,
        CellOutcome::ReadsOnly | CellOutcome::Undecided => Style::Doubt,
    }
}

fn legend(console: &Console, cells: &[Cell]) -> String {
    let mut text = String::from(
        "\n✓ prevented   – possible   r prevented for SELECT only (not for predicates of UPDATE and DELETE)",
    );
    if cells.iter().any(|c| c.outcome == CellOutcome::Undecided) {
        text.push_str("   ? undecided");
    }
    if cells.iter().any(breaks_documentation) {
        text.push_str("\n! possible although the documentation of the level rules it out");
    }
    text.push('\n');
    for anomaly in Anomaly::ALL {
        text.push_str(&console.paint(Style::Dim, &format!("{anomaly:9}{}", anomaly.meaning())));
        text.push('\n');
    }
    if let Some(cell) = cells.iter().find(|c| c.outcome != CellOutcome::Prevented).or(cells.first())
    {
        text.push_str(&format!(
            "Why? isolde matrix {} --explain {}/{}\n",
            cell.target,
            cell.level.short(),
            cell.anomaly
        ));
    }
    text
}

/// The name of one or more cells: `P4`, `RR/P4` or `postgres/RR/P4`.
pub struct CellName {
    text: String,
    engine: Option<String>,
    level: Option<Level>,
    anomaly: Anomaly,
}

impl CellName {
    fn parse(text: &str) -> Result<CellName, Failure> {
        let usage = |e: String| Failure::new(ExitCode::Usage, e);
        let mut parts: Vec<&str> = text.split('/').collect();
        let anomaly = parts.pop().unwrap_or_default().parse().map_err(|e| usage(format!("{e}")))?;
        let level = match parts.pop() {
            Some(name) => Some(name.parse::<Level>().map_err(|e| usage(e.to_string()))?),
            None => None,
        };
        let engine = (!parts.is_empty()).then(|| parts.join("/"));
        Ok(CellName { text: text.into(), engine, level, anomaly })
    }

    fn matches(&self, engine: &str, level: Level, anomaly: Anomaly) -> bool {
        self.anomaly == anomaly
            && self.level.is_none_or(|l| l == level)
            && self.engine.as_ref().is_none_or(|e| e == engine)
    }
}

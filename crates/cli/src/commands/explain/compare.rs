//! `isolde explain --on A B C`: one case on several targets, side by side.

use super::{ExplainedRun, ExplainedTarget, explain_on, show};
use crate::args::explain::ExplainArgs;
use crate::commands::Outcome;
use crate::commands::context::Context;
use crate::commands::loaded_case::{LoadedCase, heading};
use crate::console::Style;
use crate::exit_code::ExitCode;
use crate::table;
use isolde_model::{Level, Verdict};
use serde_json::json;

pub fn run(
    context: &Context<'_>,
    args: &ExplainArgs,
    loaded: &LoadedCase,
    on: &[String],
) -> Outcome {
    // A name that is wrong is reported before the first server starts.
    let targets = on.iter().map(|on| context.parse_target(on)).collect::<Result<Vec<_>, _>>()?;
    let mut explained = Vec::new();
    let mut code = ExitCode::Success;
    for (target, word) in targets.iter().zip(on) {
        match explain_on(context, args, (loaded, on), target)? {
            Some(mut on_target) => {
                // Two modes of one engine, `sqlite` and `sqlite:wal`, have one name.
                if explained.iter().any(|other: &ExplainedTarget| other.name == on_target.name) {
                    on_target.name = format!("{word} {}", on_target.info.version);
                }
                code = code.worse(on_target.code());
                explained.push(on_target);
            }
            None => code = code.worse(ExitCode::Undecided),
        }
    }
    if explained.iter().all(|on| on.runs.is_empty()) {
        context.console.note("the case ran on no target");
        return Ok(ExitCode::Undecided);
    }
    let case = &loaded.case;
    if context.json {
        let all = explained.iter().map(|on| show::as_json(case, &on.info, &on.runs));
        context.console.print(&json!({ "targets": all.collect::<Vec<_>>() }).to_string());
        return Ok(code);
    }
    let print = |rows: &[Vec<String>]| {
        let width = context.console.width();
        context
            .console
            .print(table::layout_within(rows, width, &|_, _, text| text.into()).trim_end());
    };
    context.console.print(&context.console.paint(Style::Strong, &heading(case)));
    print(&verdicts(&explained));
    context.console.print("");
    print(&steps(&explained));
    Ok(code)
}

/// One row per level, one column per target.
fn verdicts(explained: &[ExplainedTarget]) -> Vec<Vec<String>> {
    let mut levels: Vec<Level> = Vec::new();
    for run in explained.iter().flat_map(|on| &on.runs).filter(|run| run.variant.is_none()) {
        if !levels.contains(&run.level) {
            levels.push(run.level);
        }
    }
    levels.sort();
    let head = std::iter::once(String::new()).chain(explained.iter().map(|on| on.name.clone()));
    let row = |level: &Level| {
        let cell = |on: &ExplainedTarget| {
            let run = on.runs.iter().find(|run| run.level == *level && run.variant.is_none());
            let has_level = on.profile.level_names().contains(level);
            let absent = if has_level { "not run" } else { "no such level" };
            run.map_or(absent.into(), verdict)
        };
        std::iter::once(level.name().to_string()).chain(explained.iter().map(cell)).collect()
    };
    std::iter::once(head.collect()).chain(levels.iter().map(row)).collect()
}

/// The anomaly of a run, or its label.
fn verdict(run: &ExplainedRun) -> String {
    if run.history.death.is_some() {
        return "bug: the server died".into();
    }
    match (&run.account.anomaly, run.account.label) {
        (Some(anomaly), _) => format!("{} (documented)", anomaly.class.name()),
        (None, Verdict::Locking) => "locking differs".into(),
        (None, Verdict::Documented) => "documented anomaly".into(),
        (None, label) => label.name().into(),
    }
}

/// The result of each statement at the first level of each target. Where all targets
/// agree, only the first shows it.
fn steps(explained: &[ExplainedTarget]) -> Vec<Vec<String>> {
    let ran: Vec<(&ExplainedTarget, &ExplainedRun)> =
        explained.iter().filter_map(|on| Some((on, on.runs.first()?))).collect();
    let Some((_, first)) = ran.first() else { return Vec::new() };
    let mut head = vec![String::new(), String::new()];
    head.extend(ran.iter().map(|(on, run)| format!("{} at {}", on.name, run.level)));
    let mut rows = vec![head];
    for step in &first.account.steps {
        // Not by position: where a statement is blocked, those after it come later.
        let outcome = |(_, run): &(&ExplainedTarget, &ExplainedRun)| {
            let same = run.account.steps.iter().find(|other| other.step == step.step);
            same.map_or("not run".into(), |step| step.outcome.clone())
        };
        let outcomes: Vec<String> = ran.iter().map(outcome).collect();
        let same = outcomes.iter().all(|outcome| *outcome == outcomes[0]);
        let shown = outcomes.into_iter().enumerate().map(|(column, outcome)| match same {
            true if column > 0 => "same".into(),
            _ => outcome,
        });
        let sql = step.sql.replace('\n', " ");
        rows.push([step.step.clone(), sql].into_iter().chain(shown).collect());
    }
    rows
}

//! The output of `isolde explain`: the answer first, then the final rows, the
//! statements one by one, and the rules with their manual pages.

use super::{ExplainedRun, advice};
use crate::commands::loaded_case::heading;
use crate::console::{Console, Style};
use isolde_model::history::{FinalRows, TargetInfo};
use isolde_model::value::Row;
use isolde_model::{Case, History, Profile, Verdict};
use isolde_reference::{Account, CitedRule, StepAccount, StepVerdict};
use serde_json::json;

pub fn show(console: &Console, case: &Case, on: &Explained<'_>, runs: &[ExplainedRun]) {
    let Some((first, others)) = runs.split_first() else { return };
    for line in answer(console, on, first) {
        console.print(&line);
    }
    let finals = final_rows(&first.history);
    for line in &finals {
        console.print(line);
    }
    console.print("");
    let title = format!("{}  on {} at {}", heading(case), on.name, first.level);
    console.print(&console.paint(Style::Strong, &title));
    for line in step_lines(console, &first.account.steps, &first.account.rules) {
        console.print(&line);
    }
    for run in others {
        console.print("");
        let heading = run.variant.clone().unwrap_or_else(|| format!("At {}", run.level));
        console.print(&console.paint(Style::Strong, &heading));
        for line in answer(console, on, run) {
            console.print(&line);
        }
        for line in final_rows(&run.history).iter().filter(|line| !finals.contains(line)) {
            console.print(line);
        }
        let differ = differing_steps(&first.account, &run.account);
        if differ.is_empty() {
            console.print("  every statement has the same result for the same reason");
        }
        for line in step_lines(console, &differ, &run.account.rules) {
            console.print(&line);
        }
    }
    let mut rules: Vec<&CitedRule> = Vec::new();
    for rule in runs.iter().flat_map(|r| &r.account.rules) {
        if !rules.iter().any(|known| known.id == rule.id) {
            rules.push(rule);
        }
    }
    console.print("");
    for line in footnotes(console, &rules) {
        console.print(&line);
    }
}

/// The engine that a case was explained on.
pub struct Explained<'a> {
    /// With its version: `postgres 15.18`.
    pub name: String,
    pub profile: &'a Profile,
    pub info: &'a TargetInfo,
}

/// What the user asked: what happened, whether it is allowed, and how to prevent it.
fn answer(console: &Console, on: &Explained<'_>, run: &ExplainedRun) -> Vec<String> {
    if let Some(death) = &run.history.death {
        return vec![console.paint(Style::Bad, &format!("Bug: during the run {death}."))];
    }
    let account = &run.account;
    let Some(anomaly) = &account.anomaly else {
        return vec![account_verdict(console, account)];
    };
    let name = capitalised(anomaly.class.name());
    let heading = console.paint(style_of(account.label), &name);
    let mut lines = vec![
        format!("{heading}: {}.", anomaly.text),
        format!("{} on {} allows it (documented).", run.level, on.name),
    ];
    let remedies = advice::remedies(on.info, on.profile, run.level, anomaly);
    let remedies: Vec<String> = remedies.iter().map(|r| r.text(anomaly.class)).collect();
    lines.push(match remedies.is_empty() {
        true => "To prevent it: no level of this engine does.".into(),
        false => format!("To prevent it: {}.", remedies.join(", or ")),
    });
    lines
}

/// The tables at the end of a run, one line each.
fn final_rows(history: &History) -> Vec<String> {
    let line = |state: &FinalRows| {
        let cells = |row: &Row| {
            let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
            format!("({})", cells.join(", "))
        };
        let rows: Vec<String> = state.rows.iter().map(cells).collect();
        let rows = if rows.is_empty() { "no rows".into() } else { rows.join(" ") };
        format!("final {};  -- {rows}", state.query.trim_end_matches(';'))
    };
    history.final_state.iter().map(line).collect()
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The lines of each step: the statement, its result, and the reason.
pub fn step_lines(console: &Console, steps: &[StepAccount], rules: &[CitedRule]) -> Vec<String> {
    let mut lines = Vec::new();
    for step in steps {
        let sql = step.sql.replace('\n', " ");
        let outcome = match step.outcome.contains("error") {
            true => console.paint(Style::Bad, &step.outcome),
            false => step.outcome.clone(),
        };
        lines.push(format!("{:6}{sql};  -- {outcome}", step.step));
        if let Some(reason) = reason(console, step, rules) {
            lines.push(format!("      {reason}"));
        }
    }
    lines
}

/// The verdict and the reason; none where they are obvious, as for a BEGIN.
fn reason(console: &Console, step: &StepAccount, rules: &[CitedRule]) -> Option<String> {
    let named = |id: &String| match rules.iter().find(|rule| rule.id == *id) {
        Some(rule) => format!("{id} {}", rule.name),
        None => id.clone(),
    };
    let rules: Vec<String> = step.rules.iter().map(named).collect();
    let rules = rules.join(", ");
    let style = match step.verdict {
        StepVerdict::Allowed if rules.is_empty() && step.why.is_empty() => return None,
        StepVerdict::Allowed => Style::Good,
        StepVerdict::Broken => Style::Bad,
        StepVerdict::NotModelled => Style::Doubt,
    };
    let mut text = console.paint(style, step.verdict.name());
    if !rules.is_empty() {
        text.push_str(&format!(" {rules}"));
    }
    if !step.why.is_empty() {
        text.push_str(&format!(": {}", step.why));
    }
    Some(text)
}

pub fn account_verdict(console: &Console, account: &Account) -> String {
    let name = match account.label {
        Verdict::Locking => "locking differs",
        Verdict::Documented => "documented anomaly",
        label => label.name(),
    };
    format!("{}: {}", console.paint(style_of(account.label), &capitalised(name)), account.why)
}

fn style_of(label: Verdict) -> Style {
    match label {
        Verdict::Consistent | Verdict::Documented => Style::Good,
        Verdict::Bug => Style::Bad,
        Verdict::Undecided | Verdict::Locking => Style::Doubt,
    }
}

/// The steps of `other` whose result or reason differs from the first run.
fn differing_steps(first: &Account, other: &Account) -> Vec<StepAccount> {
    let same = |a: &StepAccount, b: &StepAccount| {
        (&a.outcome, a.verdict, &a.why) == (&b.outcome, b.verdict, &b.why)
    };
    let pairs = first.steps.iter().zip(&other.steps);
    pairs.filter(|(a, b)| !same(a, b)).map(|(_, b)| b.clone()).collect()
}

/// A driver's quotation may be longer than one line of text should be.
const LONGEST_QUOTATION: usize = 200;

/// What the manual says, where it fits in one line.
fn quotation(rule: &CitedRule) -> Option<String> {
    let line = format!("{:6}“{}”", "", rule.quotation.as_deref()?);
    (line.chars().count() <= LONGEST_QUOTATION).then_some(line)
}

/// The rules with the numbers of their manual pages, then the pages.
pub fn footnotes(console: &Console, rules: &[&CitedRule]) -> Vec<String> {
    let mut pages: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for rule in rules {
        let known = pages.iter().position(|page| *page == rule.page);
        let number = known.unwrap_or_else(|| {
            pages.push(&rule.page);
            pages.len() - 1
        });
        let name = console.paint(Style::Strong, &rule.name);
        lines.push(format!("{:6}{name}: {} [{}]", rule.id, rule.about, number + 1));
        lines.extend(quotation(rule).map(|line| console.paint(Style::Dim, &line)));
    }
    for (number, page) in pages.iter().enumerate() {
        lines.push(console.paint(Style::Dim, &format!("[{}] {page}", number + 1)));
    }
    lines
}

pub fn as_json(case: &Case, on: &TargetInfo, runs: &[ExplainedRun]) -> serde_json::Value {
    let run = |run: &ExplainedRun| {
        let mut value = json!(run.account);
        value["level"] = json!(run.level);
        if let Some(variant) = &run.variant {
            value["variant"] = json!(variant);
        }
        if let Some(death) = &run.history.death {
            value["death"] = json!(death);
        }
        value
    };
    json!({
        "isolde": env!("CARGO_PKG_VERSION"),
        "case": case.id,
        "on": {"engine": on.engine, "version": on.version},
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    })
}

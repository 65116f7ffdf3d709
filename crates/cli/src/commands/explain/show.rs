//! The output of `isolde explain`: the statements one by one, then the rules and
//! their manual pages.

use super::ExplainedRun;
use crate::commands::loaded_case::heading;
use crate::console::{Console, Style};
use isolde_model::Case;
use isolde_model::Verdict;
use isolde_model::history::TargetInfo;
use isolde_reference::{Account, CitedRule, StepAccount, StepVerdict};
use serde_json::json;

pub fn show(console: &Console, case: &Case, on: &str, runs: &[ExplainedRun]) {
    let Some((first, others)) = runs.split_first() else { return };
    let title = format!("{}  on {on} at {}", heading(case), first.level);
    console.print(&console.paint(Style::Strong, &title));
    for line in step_lines(console, &first.account.steps, &first.account.rules) {
        console.print(&line);
    }
    console.print(&run_verdict(console, first));
    for run in others {
        console.print("");
        console.print(&console.paint(Style::Strong, &format!("At {}", run.level)));
        let differ = differing_steps(&first.account, &run.account);
        if differ.is_empty() {
            console.print("  every statement has the same result for the same reason");
        }
        for line in step_lines(console, &differ, &run.account.rules) {
            console.print(&line);
        }
        console.print(&run_verdict(console, run));
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

fn run_verdict(console: &Console, run: &ExplainedRun) -> String {
    if let Some(death) = &run.history.death {
        return console.paint(Style::Bad, &format!("During the run {death}."));
    }
    account_verdict(console, &run.account)
}

pub fn account_verdict(console: &Console, account: &Account) -> String {
    let style = match account.label {
        Verdict::Consistent | Verdict::Documented => Style::Good,
        Verdict::Bug => Style::Bad,
        Verdict::Undecided => Style::Doubt,
    };
    format!("{}: {}", console.paint(style, account.label.name()), account.why)
}

/// The steps of `other` whose result or reason differs from the first run.
fn differing_steps(first: &Account, other: &Account) -> Vec<StepAccount> {
    let same = |a: &StepAccount, b: &StepAccount| {
        (&a.outcome, a.verdict, &a.why) == (&b.outcome, b.verdict, &b.why)
    };
    let pairs = first.steps.iter().zip(&other.steps);
    pairs.filter(|(a, b)| !same(a, b)).map(|(_, b)| b.clone()).collect()
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

//! What `isolde explain` shows: a statement after the other, then the rules
//! and their pages.

use super::explain::AtLevel;
use crate::console::{Console, Style};
use isolde_core::Case;
use isolde_core::history::TargetInfo;
use isolde_core::semantics::{Account, CitedRule, StepAccount, StepVerdict, Whole};
use serde_json::json;

pub fn show(console: &Console, case: &Case, on: &str, runs: &[AtLevel]) {
    let Some((first, others)) = runs.split_first() else { return };
    let title = format!("{}  {}  on {on} at {}", case.id, case.title, first.level);
    console.print(&console.paint(Style::Strong, &title));
    for line in told(console, &first.account.steps, &first.account.rules) {
        console.print(&line);
    }
    console.print(&verdict(console, first));
    for run in others {
        console.print("");
        console.print(&console.paint(Style::Strong, &format!("At {}", run.level)));
        let differ = different(&first.account, &run.account);
        if differ.is_empty() {
            console.print("  every statement does the same");
        }
        for line in told(console, &differ, &run.account.rules) {
            console.print(&line);
        }
        console.print(&verdict(console, run));
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

/// Each step: what was sent, what came, and why.
pub fn told(console: &Console, steps: &[StepAccount], rules: &[CitedRule]) -> Vec<String> {
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

/// The verdict, where it says something: a BEGIN that went through is no news.
fn reason(console: &Console, step: &StepAccount, rules: &[CitedRule]) -> Option<String> {
    let named = |id: &String| match rules.iter().find(|rule| rule.id == *id) {
        Some(rule) => format!("{id} {}", rule.name),
        None => id.clone(),
    };
    let rules: Vec<String> = step.rules.iter().map(named).collect();
    let rules = rules.join(", ");
    let style = match step.verdict {
        StepVerdict::Inside if rules.is_empty() && step.why.is_empty() => return None,
        StepVerdict::Inside => Style::Good,
        StepVerdict::Outside => Style::Bad,
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

fn verdict(console: &Console, run: &AtLevel) -> String {
    if let Some(death) = &run.history.death {
        return console.paint(Style::Bad, &format!("In mid-run {death}."));
    }
    whole(console, &run.account)
}

pub fn whole(console: &Console, account: &Account) -> String {
    let style = match account.label {
        Whole::Consistent | Whole::Documented => Style::Good,
        Whole::Bug => Style::Bad,
        Whole::Undecided => Style::Doubt,
    };
    format!("{}: {}", console.paint(style, account.label.name()), account.why)
}

/// The steps that did something else, or for another reason, than at first.
fn different(first: &Account, other: &Account) -> Vec<StepAccount> {
    let same = |a: &StepAccount, b: &StepAccount| {
        (&a.outcome, a.verdict, &a.why) == (&b.outcome, b.verdict, &b.why)
    };
    let pairs = first.steps.iter().zip(&other.steps);
    pairs.filter(|(a, b)| !same(a, b)).map(|(_, b)| b.clone()).collect()
}

/// The rules with numbers of pages, and each page once.
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

pub fn as_json(case: &Case, on: &TargetInfo, runs: &[AtLevel]) -> serde_json::Value {
    let run = |run: &AtLevel| {
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

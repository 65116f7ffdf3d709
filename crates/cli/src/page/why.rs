//! The explanation of a run by the rules of the engine: a verdict next to each
//! statement of the timeline, and below it the reasons and the rules.

use super::html::{code, link, table, text};
use isolde_reference::{Account, StepAccount, StepVerdict};
use maud::{Markup, html};

/// Maximum number of reasons and of rules that are shown.
const MOST: usize = 80;

/// The verdict on a statement; none if it is allowed and no rule was needed.
pub fn of_step(label: &str, account: &Account) -> Option<Markup> {
    let step = account.steps.iter().find(|s| s.step == label)?;
    let is_obvious = step.verdict == StepVerdict::Allowed && step.rules.is_empty();
    (!is_obvious).then(|| verdict(step))
}

fn verdict(step: &StepAccount) -> Markup {
    let class = match step.verdict {
        StepVerdict::Allowed => "answer",
        StepVerdict::Broken => "serially",
        StepVerdict::NotModelled => "waits",
    };
    html! {
        span class=(class) {
            (step.verdict.name())
            @if !step.rules.is_empty() { " " (text(&step.rules.join(", "))) }
        }
    }
}

/// The verdict on the run, the reasons of single statements, and the rules.
pub fn below(account: &Account) -> Markup {
    let explained = account.steps.iter().filter(|s| !s.why.is_empty()).take(MOST);
    let reasons: Vec<Vec<Markup>> = explained
        .map(|step| {
            let label = html! { b { (text(&step.step)) } };
            vec![label, code(&step.sql), verdict(step), html! { (text(&step.why)) }]
        })
        .collect();
    html! {
        h4 { "Explanation by the rules" }
        p { b { (account.label.name()) } ": " (text(&account.why)) }
        @if !reasons.is_empty() {
            (table(&["", "statement", "verdict", "why"], &reasons))
        }
        @if !account.rules.is_empty() {
            ul.rules {
                @for rule in account.rules.iter().take(MOST) {
                    li { b { (text(&rule.id)) } " " (link(&rule.page, &rule.name)) ": " (text(&rule.about))
                        @if let Some(quotation) = &rule.quotation { " " q cite=(rule.page) { (text(quotation)) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::Verdict;
    use isolde_reference::CitedRule;

    fn step(label: &str, verdict: StepVerdict, rules: &[&str], why: &str) -> StepAccount {
        StepAccount {
            step: label.into(),
            sql: "select '<b>'".into(),
            outcome: "(1)".into(),
            verdict,
            rules: rules.iter().map(ToString::to_string).collect(),
            why: why.into(),
        }
    }

    fn account() -> Account {
        let rule = CitedRule {
            id: "P1".into(),
            name: "one snapshot per statement".into(),
            about: "a sentence".into(),
            page: "https://example.org/rules".into(),
            quotation: Some("what the <manual> says".into()),
        };
        Account {
            anomaly: None,
            label: Verdict::Bug,
            why: "s1.2: no".into(),
            breach: None,
            steps: vec![
                step("s1.1", StepVerdict::Allowed, &[], ""),
                step("s1.2", StepVerdict::Broken, &["P1"], "it saw <i>more</i>"),
                step("s1.3", StepVerdict::NotModelled, &[], "after s1.2"),
            ],
            rules: vec![rule],
        }
    }

    #[test]
    fn of_step_shows_the_verdict_unless_it_is_obvious() {
        let account = account();
        let of = |label| of_step(label, &account).map(|m| m.into_string()).unwrap_or_default();
        assert_eq!(of("s1.1"), "");
        assert_eq!(of("s1.2"), "<span class=\"serially\">outside P1</span>");
        assert!(of("s1.3").contains("not modelled"));
        assert_eq!(of("s9.1"), "");
    }

    #[test]
    fn below_lists_reasons_and_rules_and_escapes_them() {
        let page = below(&account()).into_string();
        assert!(page.contains("<b>bug</b>") && page.contains("it saw &lt;i&gt;more&lt;/i&gt;"));
        assert!(page.contains("href=\"https://example.org/rules\"") && page.contains("a sentence"));
        assert!(
            page.contains("<q cite=\"https://example.org/rules\">what the &lt;manual&gt; says</q>")
        );
        assert!(page.contains("after s1.2") && !page.contains("s1.1"));
    }
}

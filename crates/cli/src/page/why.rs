//! What the rules of the engine say of a run: a verdict beside each statement
//! of the timeline, and below it the reasons and the rules.

use super::html::{code, link, table, text};
use isolde_core::semantics::{Account, StepAccount, StepVerdict};
use maud::{Markup, html};

/// Reasons and rules that are shown.
const MOST: usize = 80;

/// The verdict beside a statement; none where there is nothing to say.
pub fn of_step(label: &str, account: &Account) -> Option<Markup> {
    let told = account.steps.iter().find(|s| s.step == label)?;
    let silent = told.verdict == StepVerdict::Inside && told.rules.is_empty();
    (!silent).then(|| verdict(told))
}

fn verdict(told: &StepAccount) -> Markup {
    let class = match told.verdict {
        StepVerdict::Inside => "answer",
        StepVerdict::Outside => "serially",
        StepVerdict::NotModelled => "waits",
    };
    html! {
        span class=(class) {
            (told.verdict.name())
            @if !told.rules.is_empty() { " " (text(&told.rules.join(", "))) }
        }
    }
}

/// The whole, what is to be said of single statements, and the rules.
pub fn below(account: &Account) -> Markup {
    let said = account.steps.iter().filter(|s| !s.why.is_empty()).take(MOST);
    let reasons: Vec<Vec<Markup>> = said
        .map(|told| {
            let label = html! { b { (text(&told.step)) } };
            vec![label, code(&told.sql), verdict(told), html! { (text(&told.why)) }]
        })
        .collect();
    html! {
        h4 { "What the rules say" }
        p { b { (account.label.name()) } ": " (text(&account.why)) }
        @if !reasons.is_empty() {
            (table(&["", "statement", "verdict", "why"], &reasons))
        }
        @if !account.rules.is_empty() {
            ul.rules {
                @for rule in account.rules.iter().take(MOST) {
                    li { b { (text(&rule.id)) } " " (link(&rule.page, &rule.name)) ": " (text(&rule.about)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::semantics::{CitedRule, Whole};

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
            name: "a snapshot a statement".into(),
            about: "a sentence".into(),
            page: "https://example.org/rules".into(),
        };
        Account {
            label: Whole::Bug,
            why: "s1.2: no".into(),
            steps: vec![
                step("s1.1", StepVerdict::Inside, &[], ""),
                step("s1.2", StepVerdict::Outside, &["P1"], "it saw <i>more</i>"),
                step("s1.3", StepVerdict::NotModelled, &[], "after s1.2"),
            ],
            rules: vec![rule],
        }
    }

    #[test]
    fn a_statement_has_its_verdict_beside_it_unless_there_is_nothing_to_say() {
        let account = account();
        let of = |label| of_step(label, &account).map(|m| m.into_string()).unwrap_or_default();
        assert_eq!(of("s1.1"), "");
        assert_eq!(of("s1.2"), "<span class=\"serially\">outside P1</span>");
        assert!(of("s1.3").contains("not modelled"));
        assert_eq!(of("s9.1"), "");
    }

    #[test]
    fn reasons_and_rules_stand_below_with_links_and_nothing_gets_out_of_its_text() {
        let page = below(&account()).into_string();
        assert!(page.contains("<b>bug</b>") && page.contains("it saw &lt;i&gt;more&lt;/i&gt;"));
        assert!(page.contains("href=\"https://example.org/rules\"") && page.contains("a sentence"));
        assert!(page.contains("after s1.2") && !page.contains("s1.1"));
    }
}

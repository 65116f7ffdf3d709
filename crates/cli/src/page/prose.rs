//! The description of a finding, as a paragraph. The rows and results that
//! differ are in tables below it.

use super::html::{code, joined, link, text};
use crate::library;
use isolde_hunt::cause::Verdict;
use isolde_hunt::finding::Finding;
use maud::{Markup, html};

/// The beginning of the sentence where an explanation turns to the differences.
const COMPARISON: &str = "Compared ";

pub fn paragraph(finding: &Finding) -> Markup {
    let plain = [run(finding), comparison(finding), frequency(finding), cause(finding)];
    let mut sentences: Vec<Markup> =
        plain.iter().filter(|s| !s.is_empty()).map(|s| html! { (s) }).collect();
    sentences.extend(documentation(finding));
    sentences.extend(known(finding));
    html! { p.sentences { (joined(&sentences, " ")) } }
}

/// The course of the run, as the hunt described it.
fn run(finding: &Finding) -> String {
    let all = &finding.explanation;
    // Without a comparison the other sentences repeat what is said here.
    let end = all.iter().position(|s| s.starts_with(COMPARISON)).unwrap_or(all.len().min(1));
    let sentences: Vec<String> = all[..end].iter().map(|s| text(s)).collect();
    sentences.join(" ")
}

/// How the result differs from other runs.
fn comparison(finding: &Finding) -> String {
    let mut others: Vec<String> = Vec::new();
    let mut more = "";
    for oracle in &finding.oracles {
        match oracle.as_str() {
            "tx-wss" => others.push(
                "the committed transactions run serially in commit order"
                    .into(),
            ),
            "stmt-wss" => others.push("the same statements run one at a time in autocommit mode".into()),
            "topological" => others.push(
                "the same statements run one at a time in an order that respects their dependencies"
                    .into(),
            ),
            "merged" => others.push("the transactions run serially".into()),
            "isolation" => {
                more =
                    "The reads and writes of the transactions form a dependency cycle that the level rules out."
            }
            "serial-reads" => more = "A read returned other rows than in the serial run.",
            // The failure, or the rule, is described with the cause.
            "crash" | "semantics" => {}
            other => others.push(text(other)),
        }
    }
    let outcome = match others.split_last() {
        None => String::new(),
        Some((last, [])) => format!("The result differs from that of {last}."),
        Some((last, rest)) => {
            format!(
                "The result differs from that of {}, and from that of {last}.",
                rest.join(", from that of ")
            )
        }
    };
    format!("{outcome} {more}").trim().to_string()
}

/// How often the finding was reproduced.
fn frequency(finding: &Finding) -> String {
    let rate = finding.rate;
    match (rate.deterministic(), rate.confirmed()) {
        (true, _) => format!("It happened in all {} runs.", rate.runs),
        (false, true) => format!("It happened in {} of {} runs.", rate.seen, rate.runs),
        (false, false) => {
            format!("It did not happen again in {} runs.", rate.runs.saturating_sub(1))
        }
    }
}

fn cause(finding: &Finding) -> String {
    let why = reasons(&finding.cause.evidence);
    let word = match finding.cause.label {
        Verdict::Bug => "This is a bug",
        Verdict::Locking => "The results are right, but the locking differs from the rules",
        Verdict::Undecided => "It is undecided whether this is a bug",
        Verdict::Documented | Verdict::Consistent => "This is documented behaviour",
    };
    if why.is_empty() { format!("{word}.") } else { format!("{word}: {why}") }
}

fn documentation(finding: &Finding) -> Option<Markup> {
    let behaviour = finding.cause.behaviour.as_ref()?;
    Some(html! { "Documentation: " (link(&behaviour.link, &behaviour.about)) "." })
}

/// The evidence, as one sentence.
pub fn reasons(evidence: &[String]) -> String {
    let all: Vec<String> = evidence.iter().map(|e| text(e.trim_end_matches('.'))).collect();
    if all.is_empty() { String::new() } else { all.join("; ") + "." }
}

/// The name of a known bug, with the link to its report.
pub fn known_bug(finding: &Finding, id: &str) -> Markup {
    let own = finding.known_link.clone().filter(|_| finding.known.first().is_some_and(|k| k == id));
    match own.or_else(|| library::link_of(id)) {
        Some(address) => link(&address, id),
        None => code(id),
    }
}

fn known(finding: &Finding) -> Option<Markup> {
    let shown: Vec<Markup> = finding.known.iter().map(|id| known_bug(finding, id)).collect();
    let sentence = html! { "Similar known bugs: " (joined(&shown, ", ")) "." };
    (!shown.is_empty()).then_some(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_testing::samples::made;

    #[test]
    fn paragraph_describes_a_finding_in_sentences() {
        let finding = made(1, "wait", Verdict::Bug, "x").finding;
        let shown = paragraph(&finding).into_string();
        assert_eq!(
            shown,
            "<p class=\"sentences\">The statements ran concurrently at REPEATABLE READ. Committed, in \
             this order: s1, s2. On the way s2.3 waited for s1. The result differs from that of the \
             committed transactions run serially in commit order, and from that of the same \
             statements run one at a time in autocommit mode. It happened in all 5 runs. This is a \
             bug: no serial order of the committed transactions explains it. Similar known bugs: \
             <a href=\"https://jira.mariadb.org/browse/MDEV-26642\" \
             rel=\"noopener noreferrer\">mariadb/mdev-26642</a>, \
             <a href=\"https://github.com/pingcap/tidb/issues/42121\" \
             rel=\"noopener noreferrer\">papers/writecheck-figure-1</a>.</p>"
        );
        let known_bugs = vec!["mine/1".into()];
        let elsewhere = Finding { known: known_bugs, known_link: None, ..finding.clone() };
        let shown = known(&elsewhere).unwrap().into_string();
        assert_eq!(shown, "Similar known bugs: <code>mine/1</code>.");
        // The link of the finding counts, since its bug may be of another library.
        let linked = Finding { known_link: Some("https://example.org/1".into()), ..elsewhere };
        assert!(known_bug(&linked, "mine/1").into_string().contains("\"https://example.org/1\""));
        assert_eq!(known_bug(&linked, "mine/2").into_string(), "<code>mine/2</code>");
        let with = |oracles: &[&str]| {
            let oracles = oracles.iter().map(ToString::to_string).collect();
            comparison(&Finding { oracles, ..finding.clone() })
        };
        assert_eq!(with(&["crash"]), "");
        assert_eq!(with(&["semantics"]), "");
        assert_eq!(
            with(&["merged"]),
            "The result differs from that of the transactions run serially."
        );
        assert_eq!(with(&["serial-reads"]), "A read returned other rows than in the serial run.");
    }
}

//! What a finding says, as a paragraph. The rows and answers that differ stand
//! in tables of their own below it.

use super::html::{code, joined, link, text};
use isolde_hunt::cause::Label;
use isolde_hunt::finding::Finding;
use maud::{Markup, html};

/// Where a list of sentences turns to what differs.
const COMPARISON: &str = "Compared ";

pub fn paragraph(finding: &Finding) -> Markup {
    let told = [beginning(finding), compared(finding), again(finding), cause(finding)];
    let mut sentences: Vec<Markup> =
        told.iter().filter(|s| !s.is_empty()).map(|s| html! { (s) }).collect();
    sentences.extend(documentation(finding));
    sentences.extend(known(finding));
    html! { p.sentences { (joined(&sentences, " ")) } }
}

/// How the run went, in the hunt's own words.
fn beginning(finding: &Finding) -> String {
    let all = &finding.explanation;
    // A list without a comparison only repeats what is said here.
    let end = all.iter().position(|s| s.starts_with(COMPARISON)).unwrap_or(all.len().min(1));
    let told: Vec<String> = all[..end].iter().map(|s| text(s)).collect();
    told.join(" ")
}

fn compared(finding: &Finding) -> String {
    let mut others: Vec<String> = Vec::new();
    let mut more = "";
    for oracle in &finding.oracles {
        match oracle.as_str() {
            "tx-wss" => others.push(
                "the committed transactions run one after the other in the order of their commits"
                    .into(),
            ),
            "stmt-wss" => others.push("the same statements run one by one in autocommit".into()),
            "topological" => others.push(
                "the same statements run by themselves in an order that follows from what they saw"
                    .into(),
            ),
            "merged" => others.push("the transactions run one after the other".into()),
            "isolation" => {
                more =
                    "What the transactions read and wrote forms a cycle that the level rules out."
            }
            "serial-reads" => more = "A read returns other rows than in the serial run.",
            // What broke, or which rule, is said with the cause.
            "crash" | "semantics" => {}
            other => others.push(text(other)),
        }
    }
    let outcome = match others.split_last() {
        None => String::new(),
        Some((last, [])) => format!("The outcome is not that of {last}."),
        Some((last, rest)) => {
            format!("The outcome is not that of {}, nor of {last}.", rest.join(", nor of "))
        }
    };
    format!("{outcome} {more}").trim().to_string()
}

fn again(finding: &Finding) -> String {
    let rate = finding.rate;
    match (rate.deterministic(), rate.confirmed()) {
        (true, _) => format!("It happened every time, in {} runs.", rate.runs),
        (false, true) => format!("It happened in {} of {} runs.", rate.seen, rate.runs),
        (false, false) => {
            format!("It did not happen again in {} runs.", rate.runs.saturating_sub(1))
        }
    }
}

fn cause(finding: &Finding) -> String {
    let why = reasons(&finding.cause.evidence);
    let word = match finding.cause.label {
        Label::Bug => "It is a bug",
        Label::Undecided => "Whether it is a bug is undecided",
        Label::Documented => "It is documented behaviour",
    };
    if why.is_empty() { format!("{word}.") } else { format!("{word}: {why}") }
}

fn documentation(finding: &Finding) -> Option<Markup> {
    let behaviour = finding.cause.behaviour.as_ref()?;
    Some(html! { "The documentation: " (link(&behaviour.link, &behaviour.about)) "." })
}

/// What was tried and what came of it, as one sentence.
pub fn reasons(evidence: &[String]) -> String {
    let all: Vec<String> = evidence.iter().map(|e| text(e.trim_end_matches('.'))).collect();
    if all.is_empty() { String::new() } else { all.join("; ") + "." }
}

fn known(finding: &Finding) -> Option<Markup> {
    let shown: Vec<Markup> = finding
        .known
        .iter()
        .map(|id| match tracker(id) {
            Some(address) => link(&address, id),
            None => code(id),
        })
        .collect();
    let said = html! { "It resembles what is known as " (joined(&shown, ", ")) "." };
    (!shown.is_empty()).then_some(said)
}

/// Where the bug with this id of the library was reported.
fn tracker(id: &str) -> Option<String> {
    let (group, name) = id.split_once('/')?;
    let name = name.strip_suffix("-compare").unwrap_or(name);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match group {
        "mysql" if digits(name) => Some(format!("https://bugs.mysql.com/bug.php?id={name}")),
        "tidb" if digits(name) => Some(format!("https://github.com/pingcap/tidb/issues/{name}")),
        "mariadb" => {
            let number = name.strip_prefix("mdev-").filter(|n| digits(n))?;
            Some(format!("https://jira.mariadb.org/browse/MDEV-{number}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::case;
    use isolde_hunt::samples::made;
    use std::path::Path;

    #[test]
    fn a_finding_is_told_in_sentences() {
        let finding = made(1, "wait", Label::Bug, "x").finding;
        let said = paragraph(&finding).into_string();
        assert_eq!(
            said,
            "<p class=\"sentences\">The statements ran concurrently at REPEATABLE READ. Committed, in \
             this order: s1, s2. On the way s2.3 waited for s1. The outcome is not that of the \
             committed transactions run one after the other in the order of their commits, nor of \
             the same statements run one by one in autocommit. It happened every time, in 5 runs. \
             It is a bug: no serial order of the committed transactions explains it. It resembles \
             what is known as <a href=\"https://jira.mariadb.org/browse/MDEV-26642\" \
             rel=\"noopener noreferrer\">mariadb/mdev-26642</a>, \
             <code>papers/writecheck-figure-1</code>.</p>"
        );
        let with = |oracles: &[&str]| {
            let oracles = oracles.iter().map(ToString::to_string).collect();
            compared(&Finding { oracles, ..finding.clone() })
        };
        assert_eq!(with(&["crash"]), "");
        assert_eq!(with(&["semantics"]), "");
        assert_eq!(
            with(&["merged"]),
            "The outcome is not that of the transactions run one after the other."
        );
        assert_eq!(with(&["serial-reads"]), "A read returns other rows than in the serial run.");
    }

    #[test]
    fn the_trackers_are_those_that_the_library_names() {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
        let mut compared = 0;
        for group in ["mysql", "mariadb", "tidb"] {
            for file in std::fs::read_dir(cases.join(group)).unwrap() {
                let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
                let case = case::parse(&text).unwrap();
                // What is documented names the manual.
                let reported = case.kind != Some(case::CaseKind::Documented);
                if let Some(link) = case.link.filter(|_| reported) {
                    assert_eq!(tracker(&case.id), Some(link), "{}", case.id);
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
        assert_eq!(tracker("papers/isorel-figure-1"), None);
        assert_eq!(tracker("mysql/1\" onclick="), None);
    }
}

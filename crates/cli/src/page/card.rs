//! A finding: what it says, its timeline, what differs, its script.

use super::html::{code, cut, details, download, is_exact, picture, plural, table, text, visible};
use super::{compare, prose, setup, timeline, why};
use crate::shell::shell_word;
use isolde_core::history::FinalRows;
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;
use isolde_core::{History, case};
use isolde_hunt::HuntError;
use isolde_hunt::finding::Finding;
use isolde_hunt::stored::{Stored, is_folder_name, stored};
use maud::{Markup, html};
use std::path::Path;

/// Longer scripts are not shown whole.
const LONGEST_SCRIPT: usize = 12_000;
/// A larger file is not put into the page to be saved from it.
const LARGEST_DOWNLOAD: usize = 200_000;
const LONGEST_LOG: usize = 4_000;
const LARGEST_PICTURE: usize = 300_000;
/// Statements of a serial run and final queries that are shown.
const MOST_STATEMENTS: usize = 80;

/// The line that is always seen.
pub fn line(finding: &Finding) -> Markup {
    let rate = finding.rate;
    html! {
        b { "case " (finding.case_number) }
        " · " (finding.level.map_or("default level", |l| l.name()))
        " · "
        @if rate.deterministic() {
            "every time"
        } @else {
            "in " (rate.seen) " of " (rate.runs) " runs"
        }
        @if let Some(reduced) = &finding.reduced_by {
            " · reduced from " (reduced.statements_before) " to "
            (plural(reduced.statements_after as u64, "statement"))
        }
        " · " (text(&finding.oracles.join(", ")))
    }
}

/// Everything that is seen when the line is opened.
pub fn body(dir: &Path, finding: &Finding) -> Markup {
    html! {
        div.card {
            (prose::paragraph(finding))
            @match stored(dir, &finding.id) {
                Ok(stored) => (with_runs(finding, &stored)),
                Err(error) => {
                    (damage(&error))
                    (differences(finding))
                    (case_file(finding))
                }
            }
        }
    }
}

fn with_runs(finding: &Finding, stored: &Stored) -> Markup {
    let original = stored.original.as_ref().filter(|o| !same_steps(o, &finding.case));
    html! {
        @if let Some(cycle) = stored.cycle.as_ref().filter(|svg| svg.len() <= LARGEST_PICTURE) {
            h4 { "The cycle" }
            div.scroll tabindex="0" { (picture(cycle, "the cycle of dependencies")) }
        }
        @if let Some(graph) = stored.graph.as_ref().filter(|svg| svg.len() <= LARGEST_PICTURE) {
            h4 { "The statement-dependency graph, in the order in which they ran alone" }
            div.scroll tabindex="0" { (picture(graph, "which statement depends on which")) }
        }
        @match &stored.concurrent {
            Ok(history) => {
                @let drawn = html! {
                    (timeline::timeline(history, &finding.differences, finding.account.as_ref()))
                    (finals(history))
                };
                h4 { "What happened" }
                (setup::beside(&finding.case, history, &drawn))
                @if let Some(account) = &finding.account { (why::below(account)) }
            }
            Err(error) => (damage(error)),
        }
        (differences(finding))
        @for (what, run) in &stored.serial {
            @match run {
                Ok(history) => {
                    (details("run", &html! { "The serial run: " (what) }, &serial(history)))
                }
                Err(error) => (damage(error)),
            }
        }
        @if let Some(log) = &stored.server_log {
            @let shown = html! { pre { (visible(&cut(log, LONGEST_LOG))) } };
            (details("run", &html! { "The end of the server's log" }, &shown))
        }
        @if let Some(script) = &stored.script {
            (to_copy("Script for the engine's own client", script, "script.sql"))
        }
        (case_file(finding))
        @if let Some(original) = original {
            @let name = "The case as it was generated, before it was reduced";
            (to_copy(name, original, "original.case"))
        }
    }
}

/// Whether two cases differ in more than what was written above them.
fn same_steps(a: &str, b: &str) -> bool {
    match (case::parse(a), case::parse(b)) {
        (Ok(a), Ok(b)) => a.steps == b.steps && a.setups == b.setups,
        _ => a == b,
    }
}

fn differences(finding: &Finding) -> Markup {
    html! {
        @if !finding.differences.is_empty() {
            h4 { "What differs" }
            (compare::differences(&finding.differences))
        }
    }
}

fn damage(error: &HuntError) -> Markup {
    html! { p.damage role="note" { (text(&error.to_string())) } }
}

fn finals(history: &History) -> Markup {
    html! {
        @if !history.final_state.is_empty() {
            ul.finals {
                @for rows in history.final_state.iter().take(MOST_STATEMENTS) {
                    li { (final_line(rows)) }
                }
            }
        }
    }
}

fn final_line(rows: &FinalRows) -> Markup {
    html! {
        span.word { "at the end" } " " (code(&rows.query)) " → "
        @match &rows.error {
            Some(error) => span.error { "error " (text(&error.to_string())) },
            None => (text(&show_rows(&rows.rows))),
        }
    }
}

fn serial(history: &History) -> Markup {
    let rows: Vec<Vec<Markup>> = history
        .steps
        .iter()
        .enumerate()
        .take(MOST_STATEMENTS)
        .map(|(i, step)| {
            let answer = text(&summary(history, i));
            vec![html! { b { (text(&step.label)) } }, code(&step.sql), html! { (answer) }]
        })
        .collect();
    html! {
        (table(&["", "statement", "answer"], &rows))
        (finals(history))
    }
}

fn case_file(finding: &Finding) -> Markup {
    let anywhere = format!("isolde replay case.case --on {}", shell_word(&finding.target));
    let at_home = format!("isolde replay findings/{}/case.case", finding.id);
    html! {
        (to_copy("Case file, to replay and change", &finding.case, "case.case"))
        p {
            "Saved as case.case it is played by " (code(&anywhere)) "."
            @if is_folder_name(&finding.id) {
                " Where the hunt ran, in its folder, " (code(&at_home))
                " says whether it still happens."
            }
        }
    }
}

fn to_copy(name: &str, script: &str, file: &str) -> Markup {
    let whole = script.chars().count() <= LONGEST_SCRIPT && is_exact(script);
    let body = html! {
        div.script {
            @if whole {
                button.copy type="button" hidden { "Copy" }
            } @else if script.len() <= LARGEST_DOWNLOAD {
                p.note {
                    "Not shown exactly or not whole here; to save: " (download(script, file))
                }
            } @else {
                p.note { "Not shown exactly or not whole." }
            }
            pre tabindex="0" { (visible(&cut(script, LONGEST_SCRIPT))) }
        }
    };
    details("run", &html! { (name) }, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_script_that_is_shown_exactly_is_offered_to_copy() {
        let copies =
            |script: &str| to_copy("x", script, "f").into_string().contains("class=\"copy\"");
        assert!(copies("select 1;\n"));
        assert!(!copies("select '\u{202e}';"));
        assert!(!copies(&"x".repeat(LONGEST_SCRIPT + 1)));
    }
}

//! The card of a finding: description, timeline, differences, and script.

use super::html::{code, cut, details, download, is_exact, picture, plural, table, text, visible};
use super::{compare, prose, setup, timeline, why};
use crate::shell::shell_word;
use isolde_hunt::HuntError;
use isolde_hunt::finding::Finding;
use isolde_hunt::finding_folder::{self, FindingFolder, is_folder_name};
use isolde_model::history::FinalRows;
use isolde_model::transcript::summary;
use isolde_model::value::show_rows;
use isolde_model::{History, case};
use maud::{Markup, html};
use std::path::Path;

/// Longer scripts are cut.
const LONGEST_SCRIPT: usize = 12_000;
/// Larger files are not embedded for download.
const LARGEST_DOWNLOAD: usize = 200_000;
const LONGEST_LOG: usize = 4_000;
const LARGEST_PICTURE: usize = 300_000;
/// Maximum number of statements of a serial run, and of final queries.
const MOST_STATEMENTS: usize = 80;

/// The line that is always visible.
pub fn line(finding: &Finding) -> Markup {
    let rate = finding.rate;
    html! {
        b { "case " (finding.case_number) }
        " · " (finding.level.map_or("default level", |l| l.name()))
        " · "
        @if rate.deterministic() {
            "in every run"
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

/// The content that is visible when the line is open.
pub fn body(dir: &Path, finding: &Finding) -> Markup {
    html! {
        div.card {
            (prose::paragraph(finding))
            @match finding_folder::read(dir, &finding.id) {
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

fn with_runs(finding: &Finding, stored: &FindingFolder) -> Markup {
    let original = stored.original.as_ref().filter(|o| !same_steps(o, &finding.case));
    html! {
        @if let Some(cycle) = stored.cycle.as_ref().filter(|svg| svg.len() <= LARGEST_PICTURE) {
            h4 { "Dependency cycle" }
            div.scroll tabindex="0" { (picture(cycle, "the cycle of dependencies")) }
        }
        @if let Some(graph) = stored.graph.as_ref().filter(|svg| svg.len() <= LARGEST_PICTURE) {
            h4 { "Statement dependencies, in the order of the run one at a time" }
            div.scroll tabindex="0" { (picture(graph, "the dependencies between statements")) }
        }
        @match &stored.concurrent {
            Ok(history) => {
                @let drawn = html! {
                    (timeline::timeline(history, &finding.differences, finding.account.as_ref()))
                    (finals(history))
                };
                h4 { "What happened" }
                (setup::with_setup(&finding.case, history, &drawn))
                @if let Some(account) = &finding.account { (why::below(account)) }
            }
            Err(error) => (damage(error)),
        }
        (differences(finding))
        @for (what, run) in &stored.serial {
            @match run {
                Ok(history) => {
                    (details("run", &html! { "Serial run: " (what) }, &serial(history)))
                }
                Err(error) => (damage(error)),
            }
        }
        @if let Some(log) = &stored.server_log {
            @let shown = html! { pre { (visible(&cut(log, LONGEST_LOG))) } };
            (details("run", &html! { "End of the server log" }, &shown))
        }
        @if let Some(script) = &stored.script {
            (to_copy("Script for the engine's own client", script, "script.sql"))
        }
        (case_file(finding))
        @if let Some(original) = original {
            @let name = "Original case, before reduction";
            (to_copy(name, original, "original.case"))
        }
    }
}

/// Whether two cases have the same setup and steps.
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
        span.word { "final rows" } " " (code(&rows.query)) " → "
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
            let result = text(&summary(history, i));
            vec![html! { b { (text(&step.label)) } }, code(&step.sql), html! { (result) }]
        })
        .collect();
    html! {
        (table(&["", "statement", "result"], &rows))
        (finals(history))
    }
}

fn case_file(finding: &Finding) -> Markup {
    let anywhere = format!("isolde replay case.case --on {}", shell_word(&finding.target));
    let in_folder = format!("isolde replay findings/{}/case.case", finding.id);
    html! {
        (to_copy("Case file", &finding.case, "case.case"))
        p {
            "Save it as case.case and replay it with " (code(&anywhere)) "."
            @if is_folder_name(&finding.id) {
                " In the output folder of the hunt, " (code(&in_folder))
                " shows whether it still happens."
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
                    "Too long, or with characters that cannot be shown; download: " (download(script, file))
                }
            } @else {
                p.note { "Too long, or with characters that cannot be shown." }
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
    fn copy_button_is_only_for_scripts_that_are_shown_exactly() {
        let copies =
            |script: &str| to_copy("x", script, "f").into_string().contains("class=\"copy\"");
        assert!(copies("select 1;\n"));
        assert!(!copies("select '\u{202e}';"));
        assert!(!copies(&"x".repeat(LONGEST_SCRIPT + 1)));
    }
}

//! A finding: what it says, its timeline, what differs, its script.

use super::html::{self, code, details, escape, plural, text};
use super::load::{self, Evidence};
use super::{compare, prose, setup, timeline};
use crate::finding::Finding;
use isolde_core::history::FinalRows;
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;
use isolde_core::{History, case};
use std::path::Path;

/// Longer scripts are not shown whole.
const LONGEST_SCRIPT: usize = 12_000;
/// A larger file is not put into the page to be saved from it.
const LARGEST_DOWNLOAD: usize = 200_000;
const LONGEST_LOG: usize = 4_000;
/// Statements of a serial run and final queries that are shown.
const MOST_STATEMENTS: usize = 80;

/// The line that is always seen.
pub fn line(finding: &Finding) -> String {
    let mut facts = vec![format!("<b>case {}</b>", finding.case_number)];
    facts.push(text(finding.level.map_or("default level", |l| l.name())));
    facts.push(if finding.rate.deterministic() {
        "every time".into()
    } else {
        format!("in {} of {} runs", finding.rate.seen, finding.rate.runs)
    });
    if let Some(reduced) = &finding.reduced_by {
        facts.push(format!(
            "reduced from {} to {}",
            reduced.statements_before,
            plural(reduced.statements_after as u64, "statement")
        ));
    }
    facts.push(text(&finding.oracles.join(", ")));
    facts.join(" · ")
}

/// Everything that is seen when the line is opened.
pub fn body(dir: &Path, finding: &Finding) -> String {
    let mut out = String::from("<div class=card>\n");
    out.push_str(&prose::paragraph(finding));
    match load::evidence(dir, &finding.id) {
        Err(what) => {
            out.push_str(&damage(&what));
            out.push_str(&heading("What differs", &compare::differences(&finding.differences)));
            out.push_str(&case_file(finding));
        }
        Ok(evidence) => out.push_str(&with_evidence(finding, &evidence)),
    }
    out.push_str("</div>\n");
    out
}

fn with_evidence(finding: &Finding, evidence: &Evidence) -> String {
    let mut out = String::new();
    match &evidence.concurrent {
        Ok(history) => {
            let drawn = timeline::timeline(history, &finding.differences) + &finals(history);
            out.push_str(&heading("What happened", &setup::beside(&finding.case, history, &drawn)));
        }
        Err(what) => out.push_str(&damage(what)),
    }
    out.push_str(&heading("What differs", &compare::differences(&finding.differences)));
    for (what, run) in &evidence.serial {
        match run {
            Ok(history) => {
                let name = format!("The serial run: {}", escape(what));
                out.push_str(&details("run", &name, &serial(history)));
            }
            Err(what) => out.push_str(&damage(what)),
        }
    }
    if let Some(log) = &evidence.server_log {
        let shown = escape(&html::cut(log, LONGEST_LOG));
        out.push_str(&details(
            "run",
            "The end of the server's log",
            &format!("<pre>{shown}</pre>"),
        ));
    }
    if let Some(script) = &evidence.script {
        out.push_str(&to_copy("Script for the engine's own client", script, "script.sql"));
    }
    out.push_str(&case_file(finding));
    if let Some(original) = evidence.original.as_ref().filter(|o| !same_steps(o, &finding.case)) {
        let name = "The case as it was generated, before it was reduced";
        out.push_str(&to_copy(name, original, "original.case"));
    }
    out
}

/// Whether two cases differ in more than what was written above them.
fn same_steps(a: &str, b: &str) -> bool {
    match (case::parse(a), case::parse(b)) {
        (Ok(a), Ok(b)) => a.steps == b.steps && a.setups == b.setups,
        _ => a == b,
    }
}

fn heading(name: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    format!("<h4>{name}</h4>\n{body}")
}

fn damage(what: &str) -> String {
    format!("<p class=damage role=note>{}</p>\n", text(what))
}

fn finals(history: &History) -> String {
    let shown = history.final_state.iter().take(MOST_STATEMENTS);
    let lines: String = shown.map(|f| format!("<li>{}</li>\n", final_line(f))).collect();
    if lines.is_empty() { lines } else { format!("<ul class=finals>{lines}</ul>\n") }
}

fn final_line(rows: &FinalRows) -> String {
    let result = match &rows.error {
        Some(error) => format!("<span class=error>error {}</span>", text(&error.to_string())),
        None => text(&show_rows(&rows.rows)),
    };
    format!("<span class=word>at the end</span> {} → {result}", code(&rows.query))
}

fn serial(history: &History) -> String {
    let rows: Vec<Vec<String>> = history
        .steps
        .iter()
        .enumerate()
        .take(MOST_STATEMENTS)
        .map(|(i, s)| {
            vec![format!("<b>{}</b>", text(&s.label)), code(&s.sql), text(&summary(history, i))]
        })
        .collect();
    html::table(&["", "statement", "answer"], &rows) + &finals(history)
}

fn case_file(finding: &Finding) -> String {
    let anywhere = format!("isolde replay case.case --on {}", shell_word(&finding.target));
    let mut how = format!("<p>Saved as case.case it is played by {}.", code(&anywhere));
    if load::is_folder_name(&finding.id) {
        let at_home = format!("isolde replay findings/{}/case.case", finding.id);
        how.push_str(&format!(
            " Where the hunt ran, in its folder, {} says whether it still happens.",
            code(&at_home)
        ));
    }
    to_copy("Case file, to replay and change", &finding.case, "case.case") + &how + "</p>\n"
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+@:/=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn to_copy(name: &str, script: &str, file: &str) -> String {
    let whole = script.chars().count() <= LONGEST_SCRIPT && html::is_exact(script);
    let shown = escape(&html::cut(script, LONGEST_SCRIPT));
    let offer = if whole {
        "<button type=button class=copy hidden>Copy</button>".to_string()
    } else if script.len() <= LARGEST_DOWNLOAD {
        let link = html::download(script, file);
        format!("<p class=note>Not shown exactly or not whole here; to save: {link}</p>")
    } else {
        "<p class=note>Not shown exactly or not whole.</p>".into()
    };
    let body = format!("<div class=script>{offer}<pre tabindex=0>{shown}</pre></div>");
    details("run", &escape(name), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_one_word_of_a_command() {
        assert_eq!(shell_word("sqlite+wal"), "sqlite+wal");
        assert_eq!(shell_word("driver:it's"), r"'driver:it'\''s'");
    }

    #[test]
    fn only_a_script_that_is_shown_exactly_is_offered_to_copy() {
        assert!(to_copy("x", "select 1;\n", "f").contains("class=copy"));
        assert!(!to_copy("x", "select '\u{202e}';", "f").contains("class=copy"));
        assert!(!to_copy("x", &"x".repeat(LONGEST_SCRIPT + 1), "f").contains("class=copy"));
    }
}

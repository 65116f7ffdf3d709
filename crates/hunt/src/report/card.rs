//! A finding: what it says, its timeline, what differs, its script.

use super::html::{self, code, details, escape, link, plural, text};
use super::load::{self, Evidence};
use super::{compare, timeline};
use crate::finding::Finding;
use isolde_core::History;
use isolde_core::history::FinalRows;
use isolde_core::transcript::summary;
use isolde_core::value::show_rows;
use std::path::Path;

/// Longer scripts are left to their files.
const LONGEST_SCRIPT: usize = 12_000;
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

pub fn folder_link(id: &str) -> String {
    if load::is_folder_name(id) {
        format!("<a href=\"findings/{id}/\">findings/{id}/</a>")
    } else {
        text(id)
    }
}

/// Everything that is seen when the line is opened.
pub fn body(dir: &Path, finding: &Finding) -> String {
    let mut out = String::from("<div class=card>\n");
    out.push_str(&sentences(finding));
    match load::evidence(dir, &finding.id) {
        Err(what) => {
            out.push_str(&damage(&what));
            out.push_str(&heading("What differs", &compare::differences(&finding.differences)));
            out.push_str(&case_file(finding));
        }
        Ok(evidence) => out.push_str(&with_evidence(finding, &evidence)),
    }
    out.push_str(&format!("<p class=note>Everything about it: {}</p>\n", folder_link(&finding.id)));
    out.push_str("</div>\n");
    out
}

fn with_evidence(finding: &Finding, evidence: &Evidence) -> String {
    let mut out = String::new();
    match &evidence.concurrent {
        Ok(history) => {
            let drawn = timeline::timeline(history, &finding.differences) + &finals(history);
            out.push_str(&heading("What happened", &drawn));
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
    out
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

fn sentences(finding: &Finding) -> String {
    let behaviour = finding.cause.behaviour.as_ref();
    // The sentence that names the documentation is said below, as a link.
    let repeated = |s: &str| behaviour.is_some_and(|b| s.contains(&format!("<{}>", b.link)));
    let plain = finding.explanation.iter().filter(|s| !repeated(s));
    let mut items: Vec<String> = plain.map(|s| text(s)).collect();
    if let Some(behaviour) = behaviour {
        items.push(format!("Documentation: {}", link(&behaviour.link, &behaviour.about)));
    }
    for id in &finding.known {
        let shown = match tracker(id) {
            Some(address) => link(&address, id),
            None => code(id),
        };
        items.push(format!("Resembles a known bug: {shown}"));
    }
    let list: String = items.iter().map(|i| format!("<li>{i}</li>\n")).collect();
    format!("<ul class=sentences>{list}</ul>\n")
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
    let mut command = format!("isolde replay case.case --on {}", shell_word(&finding.target));
    if let Some(level) = finding.level {
        command.push_str(&format!(" --level {}", level.short()));
    }
    let how = format!("<p>In its folder: {}</p>\n", code(&command));
    to_copy("Case file, to replay and change", &finding.case, "case.case") + &how
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
    } else {
        format!("<p class=note>Not shown exactly or not whole; take {}.</p>", code(file))
    };
    let body = format!("<div class=script>{offer}<pre tabindex=0>{shown}</pre></div>");
    details("run", &escape(name), &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::case;

    #[test]
    fn the_trackers_are_those_that_the_library_names() {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
        let mut compared = 0;
        for group in ["mysql", "mariadb", "tidb"] {
            for file in std::fs::read_dir(cases.join(group)).unwrap() {
                let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
                let case = case::parse(&text).unwrap();
                // What is documented names the manual.
                if let Some(link) = case.link.filter(|l| !l.contains("/doc/")) {
                    assert_eq!(tracker(&case.id), Some(link), "{}", case.id);
                    compared += 1;
                }
            }
        }
        assert!(compared > 50, "{compared}");
        assert_eq!(tracker("papers/isorel-figure-1"), None);
        assert_eq!(tracker("mysql/1\" onclick="), None);
    }

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

//! What `isolde test` tells: a table a target, the differences below, JSON,
//! and JUnit's XML for build servers.

use super::Context;
use super::test::{TargetRun, Tested};
use crate::console::{Console, Style};
use crate::library::Verdict;
use crate::table::layout;
use isolde_core::Level;
use serde_json::json;
use std::fmt::Write;

pub fn print(context: &Context<'_>, runs: &[TargetRun]) {
    if context.json {
        context.console.print(&as_json(runs).to_string());
        return;
    }
    for run in runs.iter().filter(|r| !r.tested.is_empty()) {
        context.console.print(&table(context.console, run));
        for tested in &run.tested {
            for found in tested.differences.iter().flatten() {
                let text = format!(
                    "  {} at {}: expected {}, observed {}",
                    tested.case, tested.level, found.expected, found.observed
                );
                context.console.print(&context.console.paint(Style::Bad, &text));
            }
        }
    }
    let all: Vec<&Tested> = runs.iter().flat_map(|r| &r.tested).collect();
    let count = |what: &str| all.iter().filter(|t| status(t) == what).count();
    context.console.say(&format!(
        "{} runs on {} targets: {} as recorded ({} show the bug), {} differ, {} not recorded",
        all.len(),
        runs.len(),
        all.len() - count("differs") - count("not recorded"),
        count("shows"),
        count("differs"),
        count("not recorded")
    ));
}

fn status(tested: &Tested) -> &'static str {
    match (&tested.differences, tested.verdict) {
        (None, _) => "not recorded",
        (Some(found), _) if !found.is_empty() => "differs",
        (_, Verdict::Shows | Verdict::Sometimes) => "shows",
        (_, Verdict::Refused) => "refused",
        _ => "ok",
    }
}

fn table(console: &Console, run: &TargetRun) -> String {
    let levels: Vec<Level> =
        Level::ALL.into_iter().filter(|l| run.tested.iter().any(|t| t.level == *l)).collect();
    let title = format!("{} {}", run.info.engine, run.info.version);
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once(title).chain(levels.iter().map(ToString::to_string)).collect()];
    let mut names: Vec<&str> = run.tested.iter().map(|t| t.case.as_str()).collect();
    names.dedup();
    for name in names {
        let at = |level: &Level| {
            let found = run.tested.iter().find(|t| t.case == name && t.level == *level);
            found.map_or("–", status).to_string()
        };
        rows.push(std::iter::once(name.to_string()).chain(levels.iter().map(at)).collect());
    }
    layout(&rows, 60, &|r, c, text| match (r, c, text) {
        (0, _, _) => console.paint(Style::Strong, text),
        (_, 0, _) => text.to_string(),
        (_, _, "differs") => console.paint(Style::Bad, text),
        (_, _, "shows") => console.paint(Style::Doubt, text),
        (_, _, "ok") => console.paint(Style::Good, text),
        _ => console.paint(Style::Dim, text),
    })
}

fn as_json(runs: &[TargetRun]) -> serde_json::Value {
    let tested: Vec<serde_json::Value> = runs
        .iter()
        .flat_map(|run| run.tested.iter().map(move |t| (&run.info, t)))
        .map(|(on, t)| {
            let found: Vec<serde_json::Value> = t
                .differences
                .iter()
                .flatten()
                .map(|d| json!({"expected": d.expected, "observed": d.observed}))
                .collect();
            json!({
                "case": t.case,
                "target": on.target,
                "engine": on.engine,
                "version": on.version,
                "level": t.level,
                "status": status(t),
                "shows": match t.verdict {
                    Verdict::Shows | Verdict::Sometimes => Some(true),
                    Verdict::NotSeen => Some(false),
                    _ => None,
                },
                "differences": found,
            })
        })
        .collect();
    json!({"isolde": env!("CARGO_PKG_VERSION"), "runs": tested})
}

/// A suite a target, a test a case and level.
pub fn junit(runs: &[TargetRun]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for run in runs {
        let count = |what: &str| run.tested.iter().filter(|t| status(t) == what).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{} {}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3}\">",
            escape(&run.info.engine),
            escape(&run.info.version),
            run.tested.len(),
            count("differs"),
            count("not recorded"),
            run.seconds
        );
        for tested in &run.tested {
            let _ = write!(
                out,
                "    <testcase classname=\"{}\" name=\"{} at {}\"",
                escape(&run.info.engine),
                escape(&tested.case),
                tested.level
            );
            let inside = match (&tested.differences, status(tested)) {
                (None, _) => "<skipped message=\"not recorded\"/>".to_string(),
                (Some(found), "differs") => {
                    let lines: Vec<String> = found
                        .iter()
                        .map(|d| format!("expected {}, observed {}", d.expected, d.observed))
                        .collect();
                    format!(
                        "<failure message=\"{}\">{}</failure>",
                        escape(&lines[0]),
                        escape(&lines.join("\n"))
                    )
                }
                _ => String::new(),
            };
            let _ = match inside.as_str() {
                "" => writeln!(out, "/>"),
                text => writeln!(out, ">{text}</testcase>"),
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// XML has no way to write most control characters; they become blanks.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push('\n'),
            c if c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::history::TargetInfo;
    use isolde_core::recording::Difference;

    #[test]
    fn junit_escapes_what_a_database_answers() {
        let difference =
            Difference { expected: "s1.2 rows ('<a>')".into(), observed: "('\"&\u{1}')".into() };
        let tested = Tested {
            case: "x/1".into(),
            level: Level::Serializable,
            verdict: Verdict::NotSeen,
            differences: Some(vec![difference]),
        };
        let info =
            TargetInfo { engine: "sqlite".into(), version: "3".into(), ..Default::default() };
        let text = junit(&[TargetRun { info, tested: vec![tested], seconds: 0.5 }]);
        assert!(text.contains("failures=\"1\""), "{text}");
        assert!(
            text.contains(
                "expected s1.2 rows (&apos;&lt;a&gt;&apos;), observed (&apos;&quot;&amp; &apos;)"
            ),
            "{text}"
        );
    }
}

//! The output of `isolde test`: one table per target with the differences below
//! it, JSON, and JUnit XML for build servers.

use super::{CaseResult, TargetRun};
use crate::commands::context::Context;
use crate::console::{Console, Style};
use crate::junit::time;
use crate::library::BugStatus;
use crate::table::layout;
use isolde_model::Level;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::json;

pub fn print(context: &Context<'_>, runs: &[TargetRun]) {
    if context.json {
        context.console.print(&as_json(runs).to_string());
        return;
    }
    for run in runs.iter().filter(|r| !r.results.is_empty()) {
        context.console.print(&table(context.console, run));
        for result in &run.results {
            for found in result.recording_mismatches.iter().flatten() {
                let text = format!(
                    "  {} at {}: expected {}, observed {}",
                    result.case, result.level, found.expected, found.observed
                );
                context.console.print(&context.console.paint(Style::Bad, &text));
            }
        }
    }
    let all: Vec<&CaseResult> = runs.iter().flat_map(|r| &r.results).collect();
    let count = |what: &str| all.iter().filter(|t| status(t) == what).count();
    context.console.comment(&format!(
        "{} runs on {} targets: {} as recorded (the bug occurs in {}), {} differ, {} not recorded",
        all.len(),
        runs.len(),
        all.len() - count("differs") - count("not recorded"),
        count("shows"),
        count("differs"),
        count("not recorded")
    ));
}

fn status(result: &CaseResult) -> &'static str {
    match (&result.recording_mismatches, result.status) {
        (None, _) => "not recorded",
        (Some(found), _) if !found.is_empty() => "differs",
        (_, BugStatus::Occurs | BugStatus::Sometimes) => "shows",
        (_, BugStatus::Refused) => "refused",
        _ => "ok",
    }
}

fn table(console: &Console, run: &TargetRun) -> String {
    let levels: Vec<Level> =
        Level::ALL.into_iter().filter(|l| run.results.iter().any(|t| t.level == *l)).collect();
    let title = format!("{} {}", run.info.engine, run.info.version);
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once(title).chain(levels.iter().map(ToString::to_string)).collect()];
    let mut names: Vec<&str> = run.results.iter().map(|t| t.case.as_str()).collect();
    names.dedup();
    for name in names {
        let at = |level: &Level| {
            let found = run.results.iter().find(|t| t.case == name && t.level == *level);
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
    let results: Vec<serde_json::Value> = runs
        .iter()
        .flat_map(|run| run.results.iter().map(move |t| (&run.info, t)))
        .map(|(on, t)| {
            let found: Vec<serde_json::Value> = t
                .recording_mismatches
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
                "shows": match t.status {
                    BugStatus::Occurs | BugStatus::Sometimes => Some(true),
                    BugStatus::NotSeen => Some(false),
                    _ => None,
                },
                "differences": found,
            })
        })
        .collect();
    json!({"isolde": env!("CARGO_PKG_VERSION"), "runs": results})
}

/// One suite per target, one test per case and level.
pub fn junit(runs: &[TargetRun]) -> Report {
    let mut report = Report::new("isolde test");
    for run in runs {
        let mut suite = TestSuite::new(format!("{} {}", run.info.engine, run.info.version));
        suite.set_time(time(run.seconds));
        for result in &run.results {
            let name = format!("{} at {}", result.case, result.level);
            let mut case = TestCase::new(name, junit_status(result));
            case.set_classname(run.info.engine.as_str());
            suite.add_test_case(case);
        }
        report.add_test_suite(suite);
    }
    report
}

fn junit_status(result: &CaseResult) -> TestCaseStatus {
    let found = match &result.recording_mismatches {
        None => {
            let mut status = TestCaseStatus::skipped();
            status.set_message("not recorded");
            return status;
        }
        Some(found) if found.is_empty() => return TestCaseStatus::success(),
        Some(found) => found,
    };
    let lines: Vec<String> =
        found.iter().map(|d| format!("expected {}, observed {}", d.expected, d.observed)).collect();
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(lines[0].as_str()).set_description(lines.join("\n"));
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_model::history::TargetInfo;
    use isolde_model::recording::RecordingMismatch;

    #[test]
    fn junit_escapes_results_of_the_database() {
        let recording_mismatch = RecordingMismatch {
            expected: "s1.2 rows ('<a>')".into(),
            observed: "('\"&\u{1}')".into(),
        };
        let result = CaseResult {
            case: "x/1".into(),
            level: Level::Serializable,
            status: BugStatus::NotSeen,
            recording_mismatches: Some(vec![recording_mismatch]),
        };
        let info =
            TargetInfo { engine: "sqlite".into(), version: "3".into(), ..Default::default() };
        let report = junit(&[TargetRun { info, results: vec![result], seconds: 0.5 }]);
        let text = report.to_string().unwrap();
        assert!(text.contains("failures=\"1\""), "{text}");
        let message =
            "expected s1.2 rows (&apos;&lt;a&gt;&apos;), observed (&apos;&quot;&amp;&apos;)";
        assert!(text.contains(message), "{text}");
    }
}

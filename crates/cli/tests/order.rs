//! `isolde order`: a recorded run becomes a case that runs; bad traces are refused.

use isolde_testing::program::{all_output, isolde};
use std::path::Path;

fn record(folder: &Path) -> String {
    let (history, trace) = (folder.join("h.jsonl"), folder.join("t.jsonl"));
    let trace = trace.to_str().unwrap().to_string();
    let wish = ["run-history", "sqlite", "--transactions", "40", "--seed", "3", "--sessions", "3"];
    let files = ["--out", history.to_str().unwrap(), "--trace", &trace];
    let output = isolde(&[&wish[..], &files].concat());
    assert!(output.status.success(), "{}", all_output(&output));
    trace
}

#[test]
fn a_recorded_run_becomes_a_case_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(folder.path());
    let case = folder.path().join("t.case");
    let output = isolde(&["order", &trace, "--case", case.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["protocol"], "mvcc-2pl");
    let count: usize =
        report["batches"].as_array().unwrap().iter().map(|b| b.as_array().unwrap().len()).sum();
    assert_eq!(report["operations"], count);
    let output = isolde(&["replay", case.to_str().unwrap(), "--on", "sqlite"]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    let output = isolde(&["order", &trace]);
    assert!(all_output(&output).contains("ordered by: "), "{}", all_output(&output));
}

#[test]
fn an_impossible_trace_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(folder.path());
    let text = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let bad = folder.path().join("bad.jsonl");
    let refused = |text: String, why: &str| {
        std::fs::write(&bad, text).unwrap();
        let output = isolde(&["order", bad.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(5), "{why}: {}", all_output(&output));
        let printed = all_output(&output);
        assert!(
            printed.contains(why) && printed.contains("bad.jsonl") && printed.contains("line "),
            "{printed}"
        );
    };
    refused(lines[..lines.len() - 1].join("\n"), "broken off");
    let write = lines.iter().find(|line| line.contains("\"writes\":[[")).unwrap();
    let read = lines.iter().position(|line| line.contains("\"reads\":[[")).unwrap();
    let mut changed: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    let from = changed[read].find("\"reads\":[[").unwrap();
    let to = from + changed[read][from..].find("]]").unwrap();
    changed[read].replace_range(from..to, "\"reads\":[[0,987654321");
    refused(changed.join("\n"), "no operation wrote");
    refused(text.replacen(write, &format!("{write}\n{write}"), 1), "it counts");
    let output = isolde(&["order", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5), "{}", all_output(&output));
}

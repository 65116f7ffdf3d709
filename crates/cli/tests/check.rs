//! `isolde check`: output, JSON and exit codes.

use isolde_testing::program::{command, isolde, stderr, stdout, text};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

const SKEW: &str = "\
r(1,0,0,1)\nw(2,5,0,1)\nr(2,0,1,2)\nw(1,6,1,2)\n";
const FINE: &str = "w(1,5,0,1)\nr(1,5,1,2)\n";

struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

#[test]
fn check_exits_by_the_requested_level() {
    let files = Files::new();
    let (skew, fine) = (files.file("skew.txt", SKEW), files.file("fine.txt", FINE));
    let code = |arguments: &[&str]| isolde(arguments).status.code();
    assert_eq!(code(&["check", text(&fine)]), Some(0));
    assert_eq!(code(&["check", text(&skew)]), Some(1));
    assert_eq!(code(&["check", text(&skew), "--level", "SI"]), Some(0));
    // Strict serializability needs times, which this format does not have.
    assert_eq!(code(&["check", text(&fine), "--level", "strict-serializable"]), Some(3));
    assert_eq!(code(&["check", text(&fine), text(&skew)]), Some(1));
    assert_eq!(code(&["check", text(&fine), "--level", "sturdy"]), Some(2));
    assert_eq!(code(&["check", text(&fine), "--format", "papyrus"]), Some(2));
}

#[test]
fn history_without_a_write_is_undecided() {
    let files = Files::new();
    let reads = files.file("reads.txt", "r(1,0,0,1)\nr(2,0,1,2)\n");
    let output = isolde(&["check", text(&reads)]);
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    assert!(stderr(&output).contains("none of the 2 transactions writes"), "{}", stderr(&output));
    // A violation in another file comes first, and a history with a write is decided.
    let (skew, fine) = (files.file("skew.txt", SKEW), files.file("fine.txt", FINE));
    assert_eq!(isolde(&["check", text(&reads), text(&skew)]).status.code(), Some(1));
    assert_eq!(isolde(&["check", text(&reads), text(&fine)]).status.code(), Some(3));
    // A read of a value that nobody wrote is a violation all the same.
    let thin_air = files.file("air.txt", "r(1,7,0,1)\n");
    assert_eq!(isolde(&["check", text(&thin_air)]).status.code(), Some(1));
}

#[test]
fn check_names_the_line_of_a_bad_file_and_checks_the_others() {
    let files = Files::new();
    let bad = files.file("bad.txt", "w(1,5,0,1)\nw(1,5,0\n");
    let output = isolde(&["check", text(&bad), text(&files.file("fine.txt", FINE))]);
    assert_eq!(output.status.code(), Some(5));
    let printed = stderr(&output);
    assert!(printed.contains("bad.txt:2: expected r(key,value,session,txn)"), "{printed}");
    assert!(printed.contains("read as plume"), "{printed}");
    assert!(stdout(&output).contains("fine.txt: serializable holds"));
    assert_eq!(isolde(&["check", "/no/such/file"]).status.code(), Some(5));
}

#[test]
fn check_prints_the_verdict_first_and_a_sentence_for_every_edge() {
    let files = Files::new();
    let output = isolde(&["check", text(&files.file("skew.txt", SKEW)), "--verbose"]);
    let printed = stdout(&output);
    assert!(
        printed.lines().next().unwrap().ends_with("skew.txt: serializable is violated"),
        "{printed}"
    );
    assert!(
        printed.contains("strongest level that holds: strong-session-snapshot-isolation"),
        "{printed}"
    );
    assert!(
        printed.contains("write-skew, ") && printed.contains("so T1 comes before T2"),
        "{printed}"
    );
    assert!(!printed.contains('\x1b'), "no colours in a pipe");
    assert!(stderr(&output).contains("read as plume in "));
}

#[test]
fn check_json_has_the_documented_fields() {
    let files = Files::new();
    let output = isolde(&["check", text(&files.file("skew.txt", SKEW)), "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["transactions"], 2);
    assert_eq!(value["levels"]["read-committed"], true);
    assert_eq!(value["levels"]["serializable"], false);
    assert!(value["levels"]["strict-serializable"].is_null());
    assert_eq!(value["strongest"], "strong-session-snapshot-isolation");
    let anomaly = &value["anomalies"][0];
    assert_eq!(anomaly["class"], "write-skew");
    assert!(anomaly["count"].as_u64().unwrap() > 0);
    let edge = &anomaly["cycle"][0];
    assert_eq!((edge["from"].as_str(), edge["kind"].as_str()), (Some("T1"), Some("rw")));
    for key in ["to", "item", "why"] {
        assert!(edge[key].is_string(), "{key} in {edge}");
    }
    let aborted = files.file("aborted.txt", "w(1,5,0,-1)\nr(1,5,1,2)\n");
    let output = isolde(&["check", text(&aborted), "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let anomaly = &value["anomalies"][0];
    assert_eq!(
        (anomaly["class"].as_str(), anomaly["cycle"].as_array()),
        (Some("G1a"), Some(&vec![]))
    );
    assert_eq!(anomaly["operation"]["txn"], "T2");
}

#[test]
fn check_reads_a_history_from_stdin() {
    let mut child = command(&["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(FINE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("-: serializable holds"));
}

#[test]
fn cycle_drawings_escape_names_from_the_history() {
    let files = Files::new();
    let skew = r#"{"isolde-history":1}
{"txn":"<b>\"1\"","ops":[["r","x",null],["w","y",1]]}
{"txn":"T2","ops":[["r","y",null,{"sql":"select </svg>"}],["w","x",1]]}"#;
    let skew = files.file("skew.jsonl", skew);
    let (svg, dot) = (files.0.path().join("a.svg"), files.0.path().join("a.dot"));
    let output = isolde(&["check", text(&skew), "--svg", text(&svg), "--dot", text(&dot)]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("rw x"), "{svg}");
    assert!(svg.contains("&lt;b&gt;") && !svg.contains("<b>"), "{svg}");
    assert_eq!(svg.matches("</svg>").count(), 1);
    let dot = std::fs::read_to_string(dot).unwrap();
    assert!(dot.starts_with("digraph") && dot.contains(r#"<b>\"1\""#), "{dot}");
    let nowhere = isolde(&["check", text(&skew), "--svg", "/no/such/folder/a.svg"]);
    assert_eq!(nowhere.status.code(), Some(6));
}

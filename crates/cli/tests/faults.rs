//! `isolde faults` as people and scripts see it.

use std::process::{Command, Output, Stdio};

fn faults(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.arg("faults").args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const CHOSEN: [&str; 5] =
    ["sqlite", "--fault", "statement-dropped,weaker-level,dirty-read", "--cases", "200"];

#[test]
fn each_fault_is_caught_by_the_oracle_that_should_see_it() {
    let output = faults(&[&CHOSEN[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let caught = |name: &str| -> Vec<String> {
        let all = answer["faults"].as_array().unwrap();
        let fault = all.iter().find(|f| f["fault"] == name).unwrap();
        let sightings = fault["caught"].as_array().into_iter().flatten();
        sightings.map(|s| s["oracle"].as_str().unwrap().to_string()).collect()
    };
    let of_writes = ["tx-wss", "stmt-wss"];
    let sees = |fault: &str, oracle: &str| caught(fault).iter().any(|seen| seen == oracle);
    assert!(of_writes.iter().all(|oracle| sees("statement-dropped", oracle)));
    // What a read returned is not seen in what the writes left.
    assert!(sees("dirty-read", "serial-reads"));
    assert!(!of_writes.iter().any(|oracle| sees("dirty-read", oracle)));
    let level = &answer["faults"][1];
    assert_eq!(level["fault"], "weaker-level");
    assert!(level["unsupported"].as_str().unwrap().contains("one level"), "{level}");
}

#[test]
fn the_table_has_a_line_a_fault_and_a_column_an_oracle() {
    let output = faults(&CHOSEN);
    assert_eq!(output.status.code(), Some(0));
    let table = stdout(&output);
    let line = |word: &str| table.lines().find(|l| l.contains(word)).unwrap_or("").to_string();
    for oracle in ["tx-wss", "stmt-wss", "serial-reads", "crash"] {
        assert!(line("concerns").contains(oracle), "{table}");
    }
    assert!(line("statement-dropped").contains(" cases, "), "{table}");
    assert!(line("weaker-level").contains("cannot be planted: it has one level only"), "{table}");
    assert!(line("dirty-read").contains('–') && line("dirty-read").contains(" cases, "), "{table}");
}

#[test]
fn a_fault_that_nobody_sees_is_a_hole_in_the_net() {
    let never = ["sqlite", "--fault", "statement-dropped", "--fault-rate", "0", "--cases", "30"];
    let output = faults(&never);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let seen =
        stdout(&output).lines().any(|l| l.contains("statement-dropped") && l.contains("cases,"));
    assert!(!seen, "{}", stdout(&output));
}

#[test]
fn all_faults_are_listed_and_others_refused() {
    let listed = faults(&["--list"]);
    assert_eq!(listed.status.code(), Some(0));
    let names: Vec<&str> = isolde_engines::fault::FAULTS.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), 16);
    for name in names {
        assert!(stdout(&listed).contains(name), "{name}");
    }
    for wrong in [&["--fault", "gremlin"][..], &["--cases", "0"], &["nodb"]] {
        assert_eq!(faults(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

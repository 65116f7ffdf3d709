//! `isolde faults`: its table, JSON and exit codes.

use isolde_testing::program::{isolde, stderr, stdout};
use std::process::Output;

fn faults(args: &[&str]) -> Output {
    isolde(&[&["faults"], args].concat())
}

const CHOSEN: [&str; 5] =
    ["sqlite", "--fault", "statement-dropped,weaker-level,dirty-read", "--cases", "200"];

#[test]
fn each_fault_is_caught_by_its_oracle() {
    let output = faults(&[&CHOSEN[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
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
    // The result of a read does not show in the written rows.
    assert!(sees("dirty-read", "serial-reads"));
    assert!(!of_writes.iter().any(|oracle| sees("dirty-read", oracle)));
    let level = &answer["faults"][1];
    assert_eq!(level["fault"], "weaker-level");
    assert!(level["unsupported"].as_str().unwrap().contains("one level"), "{level}");
}

#[test]
fn the_fault_table_has_one_line_per_fault_and_one_column_per_oracle() {
    let output = faults(&CHOSEN);
    assert_eq!(output.status.code(), Some(0));
    let table = stdout(&output);
    let line = |word: &str| table.lines().find(|l| l.contains(word)).unwrap_or("").to_string();
    for oracle in ["tx-wss", "stmt-wss", "serial-reads", "crash"] {
        assert!(line("concerns").contains(oracle), "{table}");
    }
    assert!(line("statement-dropped").contains(" case"), "{table}");
    assert!(line("weaker-level").contains("cannot be planted: it has one level only"), "{table}");
    assert!(line("dirty-read").contains('–') && line("dirty-read").contains(" case"), "{table}");
}

#[test]
fn a_fault_that_no_oracle_catches_is_exit_code_1() {
    let never = ["sqlite", "--fault", "statement-dropped", "--fault-rate", "0", "--cases", "30"];
    let output = faults(&never);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let seen =
        stdout(&output).lines().any(|l| l.contains("statement-dropped") && l.contains(" case"));
    assert!(!seen, "{}", stdout(&output));
}

#[test]
fn all_faults_are_listed_and_unknown_names_refused() {
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

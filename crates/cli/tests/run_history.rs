//! `isolde run-history`, and that `isolde check` reads what it writes.

use std::process::{Command, Output};

fn isolde(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isolde")).args(arguments).output().expect("isolde runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_is_recorded_on_sqlite_is_serializable_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for workload in ["list-append", "rw-register"] {
        for name in ["h.jsonl", "h.edn", "h.json"] {
            let file = folder.path().join(name);
            let file = file.to_str().unwrap();
            let ran = isolde(&[
                "run-history",
                "sqlite",
                "--workload",
                workload,
                "--transactions",
                "200",
                "--seed",
                "3",
                "--out",
                file,
            ]);
            assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
            assert!(text(&ran.stderr).contains("200 transactions"), "{}", text(&ran.stderr));
            let checked = isolde(&["check", "--json", file]);
            assert_eq!(
                checked.status.code(),
                Some(0),
                "{workload} {name}: {}",
                text(&checked.stdout)
            );
            let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
            assert_eq!(report["transactions"], 200, "{workload} {name}");
            assert_eq!(report["levels"]["serializable"], true);
        }
    }
}

#[test]
fn generated_sql_is_recorded_for_every_checker() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["h.jsonl", "h.edn", "h.json"] {
        let file = folder.path().join(name);
        let file = file.to_str().unwrap();
        let ran = isolde(&[
            "run-history",
            "sqlite+wal",
            "--workload",
            "relational",
            "--transactions",
            "150",
            "--seed",
            "4",
            "--out",
            file,
        ]);
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
        let checked = isolde(&["check", "--json", file]);
        assert_eq!(checked.status.code(), Some(0), "{name}: {}", text(&checked.stdout));
        let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert_eq!(report["levels"]["serializable"], true, "{name}");
    }
}

#[test]
fn a_file_of_our_own_says_where_it_comes_from() {
    let ran = isolde(&["run-history", "--transactions", "5", "--seed", "9", "--out", "-"]);
    let stdout = text(&ran.stdout);
    let head: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert_eq!(head["about"]["seed"], 9);
    assert_eq!(head["about"]["target"]["engine"], "sqlite");
    assert_eq!(head["about"]["level"], "SERIALIZABLE");
    assert_eq!(stdout.lines().count(), 6);
}

#[test]
fn what_makes_no_sense_is_said_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h.edn");
    let file = file.to_str().unwrap();
    for (arguments, code, why) in [
        (vec!["run-history", "sqlite", "--level", "read committed", "--out", file], 2, "has no"),
        (vec!["run-history", "sqlite", "--level", "nonsense", "--out", file], 2, "nonsense"),
        (vec!["run-history", "nonsense", "--out", file], 2, "not a target"),
        (vec!["run-history", "sqlite", "--out", "/nowhere/h.edn"], 6, "/nowhere/h.edn"),
        (vec!["run-history", "sqlite"], 2, "--out"),
    ] {
        let ran = isolde(&arguments);
        assert_eq!(ran.status.code(), Some(code), "{arguments:?}: {}", text(&ran.stderr));
        assert!(text(&ran.stderr).contains(why), "{arguments:?}: {}", text(&ran.stderr));
    }
}

#[test]
fn sqlite_shows_no_anomaly_and_every_level_is_in_the_table() {
    let ran = isolde(&["anomalies", "sqlite", "sqlite+wal", "--time", "1s", "--seed", "4"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let table = text(&ran.stdout);
    assert_eq!(table.matches("SERIALIZABLE").count(), 2, "{table}");
    let ran = isolde(&["anomalies", "sqlite", "--time", "1s", "--seed", "4", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(told["levels"][0]["anomalies"], serde_json::json!([]), "{told}");
    assert!(told["levels"][0]["committed"].as_u64().unwrap() > 10, "{told}");
}

#[test]
fn postgres_loses_updates_at_read_committed_and_skews_writes_at_repeatable_read() {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        return;
    }
    let arguments = ["anomalies", "postgres", "--level", "RC,RR,SER", "--time", "4s", "--json"];
    let ran = isolde(&arguments);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let told: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let found = |level: usize| -> Vec<&str> {
        let anomalies = told["levels"][level]["anomalies"].as_array().unwrap();
        anomalies.iter().map(|anomaly| anomaly["class"].as_str().unwrap()).collect()
    };
    assert!(found(0).contains(&"lost-update"), "{told}");
    assert!(found(1).contains(&"write-skew") && !found(1).contains(&"G-single"), "{told}");
    assert_eq!(found(2), [""; 0], "{told}");
}

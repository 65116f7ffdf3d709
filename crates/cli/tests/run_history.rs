//! `isolde run-history` and `isolde anomalies`; `isolde check` reads the recorded
//! histories.

use isolde_testing::program::{isolde, stderr, stdout};
use isolde_testing::servers;

#[test]
fn sqlite_histories_are_serializable_in_every_format() {
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
            assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
            assert!(stderr(&ran).contains("200 transactions"), "{}", stderr(&ran));
            let checked = isolde(&["check", "--json", file]);
            assert_eq!(checked.status.code(), Some(0), "{workload} {name}: {}", stdout(&checked));
            let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
            assert_eq!(report["transactions"], 200, "{workload} {name}");
            assert_eq!(report["levels"]["serializable"], true);
        }
    }
}

#[test]
fn relational_histories_are_serializable_in_every_format() {
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
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        let checked = isolde(&["check", "--json", file]);
        assert_eq!(checked.status.code(), Some(0), "{name}: {}", stdout(&checked));
        let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert_eq!(report["levels"]["serializable"], true, "{name}");
    }
}

#[test]
fn the_own_history_format_names_seed_target_and_level() {
    let ran = isolde(&["run-history", "--transactions", "5", "--seed", "9", "--out", "-"]);
    let text = stdout(&ran);
    let head: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(head["about"]["seed"], 9);
    assert_eq!(head["about"]["target"]["engine"], "sqlite");
    assert_eq!(head["about"]["level"], "SERIALIZABLE");
    assert_eq!(text.lines().count(), 6);
}

#[test]
fn invalid_run_history_options_are_refused_before_the_run() {
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
        assert_eq!(ran.status.code(), Some(code), "{arguments:?}: {}", stderr(&ran));
        assert!(stderr(&ran).contains(why), "{arguments:?}: {}", stderr(&ran));
    }
}

#[test]
fn anomalies_of_sqlite_are_none_at_every_level() {
    let ran = isolde(&["anomalies", "sqlite", "sqlite+wal", "--time", "1s", "--seed", "4"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let table = stdout(&ran);
    assert_eq!(table.matches("SERIALIZABLE").count(), 2, "{table}");
    let ran = isolde(&["anomalies", "sqlite", "--time", "1s", "--seed", "4", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["levels"][0]["anomalies"], serde_json::json!([]), "{report}");
    assert!(report["levels"][0]["committed"].as_u64().unwrap() > 10, "{report}");
}

#[test]
fn postgres_loses_updates_at_read_committed_and_skews_writes_at_repeatable_read() {
    if !servers::is_available("postgres") {
        return;
    }
    let arguments = ["anomalies", "postgres", "--level", "RC,RR,SER", "--time", "4s", "--json"];
    let ran = isolde(&arguments);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let found = |level: usize| -> Vec<&str> {
        let anomalies = report["levels"][level]["anomalies"].as_array().unwrap();
        anomalies.iter().map(|anomaly| anomaly["class"].as_str().unwrap()).collect()
    };
    assert!(found(0).contains(&"lost-update"), "{report}");
    assert!(found(1).contains(&"write-skew") && !found(1).contains(&"G-single"), "{report}");
    assert_eq!(found(2), [""; 0], "{report}");
}

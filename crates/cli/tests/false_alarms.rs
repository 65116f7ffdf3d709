//! Runs that earlier versions called a bug, each with the label that it should
//! have. The first line of a case says which: `# label: consistent`.

use isolde_testing::program::{all_output, isolde, text};
use isolde_testing::servers;
use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/false_alarms");
    let files = std::fs::read_dir(dir).unwrap().flatten().map(|f| f.path());
    let mut cases: Vec<PathBuf> = files.collect();
    cases.sort();
    assert!(cases.len() > 15);
    cases
}

/// Explains the cases of an engine on a target and compares their labels.
fn compare(engine: &str, target: &str) {
    if servers::open_engine(target).is_none() {
        return;
    }
    let mut wrong = Vec::new();
    let mut compared = 0;
    for path in cases() {
        let case = std::fs::read_to_string(&path).unwrap();
        let label = case.lines().next().and_then(|l| l.strip_prefix("# label: ")).unwrap();
        let engines = case.lines().find_map(|l| l.strip_prefix("engines: ")).unwrap();
        if !engines.split(", ").any(|e| e == engine) {
            continue;
        }
        compared += 1;
        let output = isolde(&["explain", text(&path), "--on", target, "--json"]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", all_output(&output)));
        let run = &json["runs"][0];
        if run["label"] != label {
            wrong.push(format!("{}: {} ({})", path.display(), run["label"], run["why"]));
        }
    }
    assert!(compared > 0);
    assert!(wrong.is_empty(), "{target}: {} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn false_alarms_of_postgres_have_the_right_label() {
    compare("postgres", "postgres");
}

#[test]
fn false_alarms_of_sqlite_have_the_right_label() {
    compare("sqlite+wal", "sqlite+wal");
}

#[test]
fn false_alarms_of_mariadb_have_the_right_label() {
    compare("mariadb", "mariadb");
}

#[test]
fn false_alarms_of_fetched_engines_have_the_right_label() {
    compare("postgres", "postgres@18");
    compare("mysql", "mysql@8.0.33");
    compare("mysql", "mysql@9.7");
}

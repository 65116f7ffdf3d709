//! A driver that describes its database itself, as JSON: the hunt and `explain`
//! judge by that description.

use isolde_testing::program::{all_output, isolde, stderr, stdout, text};
use isolde_testing::servers;
use std::path::Path;

/// SQLite with a write-ahead log, described as a difference from the rollback journal, and with
/// rules of the driver's own.
const DESCRIPTION: &str = r#"{"rules": 1, "engine": "sqlite", "version": "3.45",
    "features": {"without": ["upsert"]},
    "capabilities": {"returns_written": True, "gather": "group_concat"},
    "own_rules": [
        {"id": "X1", "name": "one snapshot per transaction", "about": "reads are repeatable", "rank": 4},
        {"id": "X2", "name": "one writer", "about": "one transaction writes at a time"}],
    "levels": {"SERIALIZABLE": {
        "snapshot": {"taken": "first_statement"},
        "conflicts": {"restarts_statement_after_wait": True},
        "locking": {"granularity": "database", "waits": "database"},
        "commit": {"waits_for_readers": None, "serial_order": "any_order"},
        "rules": {"read": "X1", "write": "X2", "held_row": "X2", "changed_row": "X2"}}}}"#;

const CASE: &str = "case: two-reads\n\nsetup:\n  create table t (id int primary key, v int);\n  \
                    insert into t values (1, 10);\n\ns1> begin;\ns1> select v from t;\n\
                    s2> update t set v = 20;\ns1> select v from t;\ns1> commit;\n";

/// Writes the example driver with another description of its database.
fn driver(folder: &Path, description: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engines/drivers/sqlite3_driver.py");
    let program = std::fs::read_to_string(file).unwrap();
    let follows = program.lines().find(|line| line.contains("\"follows\"")).unwrap();
    let described = program.replace(follows, &format!("    \"follows\": {description},"));
    let path = folder.join("driver.py");
    std::fs::write(&path, described).unwrap();
    format!("driver:python3 {}", text(&path))
}

#[test]
fn description_of_a_driver_decides_what_its_database_may_do() {
    if servers::tool("python3").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("reads.case");
    std::fs::write(&case, CASE).unwrap();

    let target = driver(folder.path(), DESCRIPTION);
    let right = isolde(&["explain", text(&case), "--on", &target]);
    assert!(right.status.success(), "{}", all_output(&right));
    assert!(stdout(&right).contains("X1"), "{}", stdout(&right));

    let out = folder.path().join("hunt");
    let hunt = isolde(&["hunt", &target, "--cases", "90", "--seed", "5", "--out", text(&out)]);
    assert!(hunt.status.success(), "{}", all_output(&hunt));
    let summary = std::fs::read_to_string(out.join("hunt.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let features = summary["features"].to_string();
    assert!(features.contains("\"replace\"") && !features.contains("\"upsert\""), "{features}");

    // The same run, judged by a description that is not true of SQLite.
    let wrong = DESCRIPTION.replace("\"first_statement\"", "\"statement\"");
    let wrong = isolde(&["explain", text(&case), "--on", &driver(folder.path(), &wrong)]);
    assert_eq!(wrong.status.code(), Some(1), "{}", all_output(&wrong));
}

#[test]
fn error_in_a_description_names_its_place() {
    if servers::tool("python3").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("reads.case");
    std::fs::write(&case, CASE).unwrap();
    for (right, wrong, message) in [
        ("\"waits\"", "\"wait\"", "SERIALIZABLE: there is no field locking.wait"),
        ("\"read\": \"X1\"", "\"read\": \"X7\"", "rules.read cites the rule \"X7\""),
        ("\"upsert\"", "\"upserts\"", "follows.features names \"upserts\""),
        ("\"upsert\"", "\"left join\"", "follows.features is without \"left join\""),
    ] {
        let target = driver(folder.path(), &DESCRIPTION.replace(right, wrong));
        let output = isolde(&["explain", text(&case), "--on", &target]);
        assert_eq!(output.status.code(), Some(4), "{}", all_output(&output));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn description_of_a_built_in_engine_is_printed() {
    let output = isolde(&["list", "--engine", "postgres@15"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["levels"]["REPEATABLE READ"]["rules"]["changed_row"], "P7w");
    assert!(json["features"]["with"].as_array().unwrap().contains(&"for update".into()));
    for (engine, message) in [("oracle@23", "is not one of"), ("postgres", "lacks a version")] {
        let output = isolde(&["list", "--engine", engine]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn hunt_on_an_engine_that_rejects_every_write_is_not_green() {
    if servers::tool("python3").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = driver(folder.path(), DESCRIPTION);
    let path = folder.path().join("driver.py");
    let program = std::fs::read_to_string(&path).unwrap();
    // Cases begin with the tables and rows of the control connection.
    let refusing = program.replace(
        "def execute(connection, sql):\n",
        "def execute(connection, sql):\n    if sql.split()[0] in ('insert', 'update', 'delete', \
         'replace', 'with') and connection is not own and 'isolde' not in sql:\n        return \
         {**error('SQLITE_ERROR', 'no', 'rejected'), 'tx': 'open' if connection.in_transaction \
         else 'idle'}\n",
    );
    assert_ne!(refusing, program);
    std::fs::write(&path, refusing).unwrap();
    let out = folder.path().join("hunt");
    let hunt = isolde(&["hunt", &target, "--cases", "30", "--seed", "5", "--out", text(&out)]);
    assert_eq!(hunt.status.code(), Some(3), "{}", all_output(&hunt));
    assert!(stdout(&hunt).contains("Nothing tested"), "{}", stdout(&hunt));
}

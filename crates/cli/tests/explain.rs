//! `isolde explain`: what each statement read or wrote, and by which rules.

use isolde_testing::program::{all_output, isolde};
use isolde_testing::servers;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

const LOST_UPDATE: &str = "\
case: lost-update

setup:
  create table account (id int primary key, balance int);
  insert into account values (1, 100);

s1> begin;
s2> begin;
s1> select balance from account where id = 1;
s2> select balance from account where id = 1;
s1> update account set balance = 110 where id = 1;
s2> update account set balance = 120 where id = 1;
s1> commit;
s2> commit;

final:
  select sum(balance) from account;
";

fn file(dir: &Path, text: &str) -> PathBuf {
    let file = dir.join("own.case");
    std::fs::write(&file, text).unwrap();
    file
}

fn explain(file: &Path, args: &[&str]) -> Output {
    isolde(&[&["explain", file.to_str().unwrap()], args].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", all_output(output)))
}

/// The steps of a run with a verdict.
fn with_verdict(run: &Value, verdict: &str) -> Vec<Value> {
    let steps = run["steps"].as_array().unwrap().iter();
    steps.filter(|s| s["verdict"] == verdict).cloned().collect()
}

#[test]
fn a_lost_update_is_documented_where_it_happens_and_consistent_where_it_fails() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path(), LOST_UPDATE);
    let output = explain(&file, &["--on", "postgres", "--level", "all", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    let whole = json(&output);
    let runs = whole["runs"].as_array().unwrap();
    let of = |level: &str| runs.iter().find(|r| r["level"] == level).expect(level);
    let weak = of("READ COMMITTED");
    assert_eq!(weak["label"], "documented", "{weak}");
    assert_eq!(weak["steps"][5]["step"], "s2.3");
    assert_eq!(weak["steps"][5]["outcome"], "waits for s1, then 1 row");
    assert_eq!(weak["steps"][5]["rules"], serde_json::json!(["P12", "P2", "P3"]));
    assert!(with_verdict(weak, "inside").len() == 8, "{weak}");
    let cited = weak["rules"].as_array().unwrap();
    assert!(cited.iter().any(|r| r["id"] == "P3" && r["page"].as_str().unwrap().contains("http")));
    let strong = of("REPEATABLE READ");
    assert_eq!(strong["label"], "consistent", "{strong}");
    assert_eq!(strong["steps"][5]["outcome"], "waits for s1, then error 40001");
    // The server says "concurrent update": the rule about that is cited, at
    // SERIALIZABLE too, and not that any transaction may be aborted.
    for run in [strong, of("SERIALIZABLE")] {
        assert_eq!(run["steps"][5]["rules"], serde_json::json!(["P12", "P7", "P7w"]), "{run}");
        let rule = run["rules"].as_array().unwrap().iter().find(|r| r["id"] == "P7w").unwrap();
        let quotation = rule["quotation"].as_str().unwrap();
        assert!(quotation.contains("cannot modify or lock rows changed by other"), "{rule}");
    }
    // As text: further levels show only differences, and each manual page once.
    let text = all_output(&explain(&file, &["--on", "postgres", "--level", "all"]));
    assert!(text.contains("P2 writes find their rows in a snapshot, P3 re-check"), "{text}");
    assert!(text.contains("waits for s1, which holds rows of account"), "{text}");
    let others = text.split("At REPEATABLE READ").nth(1).unwrap();
    assert!(!others.contains("s1.1") && others.contains("error 40001"), "{text}");
    assert_eq!(text.matches("#XACT-READ-COMMITTED").count(), 1, "{text}");
    assert!(
        text.contains("\n      “they will only find target rows that were committed"),
        "{text}"
    );
}

#[test]
fn serialization_failure_of_an_upsert_cites_the_rule_of_upserts() {
    if !servers::is_available("postgres") {
        return;
    }
    let library = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/postgres");
    let file = library.join("upsert-outside-the-snapshot.case");
    for level in ["repeatable read", "serializable"] {
        let output = explain(&file, &["--on", "postgres", "--level", level, "--json"]);
        let whole = json(&output);
        let step = &whole["runs"][0]["steps"][3];
        assert_eq!((&step["step"], &step["outcome"]), (&"s1.3".into(), &"error 40001".into()));
        assert_eq!(step["rules"], serde_json::json!(["P10", "P8"]), "{level}: {whole}");
    }
}

#[test]
fn explain_cites_the_manual_of_the_engine_and_its_version() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path(), LOST_UPDATE);
    for (target, manual) in [
        ("mariadb", "https://mariadb.com/docs/server/"),
        ("mysql@9.7", "https://dev.mysql.com/doc/refman/9.7/en/"),
        ("mysql@8.0.33", "https://dev.mysql.com/doc/refman/8.0/en/"),
    ] {
        if !servers::is_available(target) {
            continue;
        }
        let output = explain(&file, &["--on", target, "--level", "repeatable read", "--json"]);
        let whole = json(&output);
        let rules = whole["runs"][0]["rules"].as_array().unwrap();
        assert!(!rules.is_empty(), "{whole}");
        for rule in rules {
            assert!(rule["page"].as_str().unwrap().starts_with(manual), "{target}: {rule}");
        }
    }
}

#[test]
fn explain_names_the_commit_that_a_read_does_not_see() {
    let dir = tempfile::tempdir().unwrap();
    let text = "case: t\n\nsetup:\n  create table t (id int primary key, v int);\n  \
                insert into t values (1, 1);\n\ns1> begin;\ns1> select v from t;\n\
                s2> update t set v = 2;\ns1> select v from t;\ns1> commit;\n";
    let file = file(dir.path(), text);
    for (target, level, why) in [
        ("sqlite+wal", "serializable", "does not see what s2 committed after its snapshot"),
        ("postgres", "repeatable read", "does not see what s2 committed after its snapshot"),
        ("postgres", "read committed", "sees what s2 committed before"),
    ] {
        if !servers::is_available(target) {
            continue;
        }
        let output = explain(&file, &["--on", target, "--level", level, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
        assert_eq!(json(&output)["runs"][0]["steps"][3]["why"], why, "{target} {level}");
    }
}

#[test]
fn a_statement_that_is_not_modelled_makes_the_rest_undecided() {
    let dir = tempfile::tempdir().unwrap();
    let text = LOST_UPDATE.replace("s1> commit", "s1> select random();\ns1> commit");
    let output = explain(&file(dir.path(), &text), &["--on", "sqlite+wal", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", all_output(&output));
    let whole = json(&output);
    let run = &whole["runs"][0];
    assert_eq!(run["label"], "undecided");
    let not = with_verdict(run, "not modelled");
    assert!(not.iter().any(|s| s["why"] == "the function random is not modelled"), "{run}");
    assert!(not.iter().any(|s| s["why"] == "after s1.4"), "{run}");
    assert_eq!(run["steps"][0]["verdict"], "inside");
    // A trigger may do anything when its table is written.
    let trigger = "  create trigger g after update on account begin delete from account; end;\n";
    let text = LOST_UPDATE.replace("\ns1> begin", &format!("{trigger}\ns1> begin"));
    let output = explain(&file(dir.path(), &text), &["--on", "sqlite+wal"]);
    assert_eq!(output.status.code(), Some(3), "{}", all_output(&output));
    assert!(
        all_output(&output).contains("account is not modelled: it has a trigger"),
        "{}",
        all_output(&output)
    );
}

#[test]
fn explain_refuses_a_malformed_case() {
    let dir = tempfile::tempdir().unwrap();
    let output = explain(&file(dir.path(), "no case at all\n"), &["--on", "sqlite"]);
    assert_eq!(output.status.code(), Some(5), "{}", all_output(&output));
    let missing = explain(&dir.path().join("none.case"), &["--on", "sqlite"]);
    assert_eq!(missing.status.code(), Some(5), "{}", all_output(&missing));
}

/// The folder of the first finding of a hunt with a planted fault.
fn planted(out: &Path, target: &str, fault: &str) -> PathBuf {
    let fault = ["--fault", fault, "--fault-rate", "0.3", "--out", out.to_str().unwrap()];
    let hunt = isolde(&[&["hunt", target, "--seed", "7", "--cases", "240"], &fault[..]].concat());
    assert_eq!(hunt.status.code(), Some(1), "{}", all_output(&hunt));
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(out.join("findings")).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    folders.into_iter().next().unwrap()
}

#[test]
fn a_planted_fault_is_outside_the_rules_and_the_sound_engine_is_not() {
    for (target, fault) in [("sqlite+wal", "statement-dropped"), ("postgres", "row-skipped")] {
        if !servers::is_available(target) {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = planted(&dir.path().join("out"), target, fault);
        let faulty = explain(&folder, &["--json"]);
        assert_eq!(faulty.status.code(), Some(1), "{}", all_output(&faulty));
        let whole = json(&faulty);
        let run = &whole["runs"][0];
        assert_eq!(run["label"], "bug", "{run}");
        let finals = run["why"].as_str().unwrap().contains("final rows");
        let outside = with_verdict(run, "outside");
        assert!(finals || outside.len() == 1 && !outside[0]["why"].as_str().unwrap().is_empty());
        let sound = explain(&folder, &["--on", target, "--json"]);
        assert_eq!(sound.status.code(), Some(0), "{}", all_output(&sound));
        assert!(with_verdict(&json(&sound)["runs"][0], "outside").is_empty());
    }
}

#[test]
fn engines_are_compared_side_by_side() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path(), LOST_UPDATE);
    let output = explain(&file, &["--on", "postgres", "sqlite", "--level", "all"]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |start: &str| {
        let found = text.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line begins with {start:?}:\n{text}")).to_string()
    };
    let committed = line("READ COMMITTED");
    assert!(committed.contains("lost update (documented)"), "{text}");
    assert!(committed.contains("no such level"), "{text}");
    let serializable = line("SERIALIZABLE");
    assert_eq!(serializable.matches("consistent").count(), 2, "{text}");
    assert!(line("s1.2").ends_with("same"), "{text}");
    let update = line("s2.3");
    assert!(update.contains("waits for s1, then 1 row") && !update.contains("same"), "{text}");
}

#[test]
fn the_case_may_follow_the_targets() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path(), LOST_UPDATE);
    let path = file.to_str().unwrap();
    let output = isolde(&["explain", "--json", "--on", "sqlite", "sqlite:wal", path]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    let whole = json(&output);
    assert_eq!(whole["targets"].as_array().unwrap().len(), 2, "{whole}");

    let output = isolde(&["explain", "--on", "sqlite"]);
    assert_eq!(output.status.code(), Some(2), "{}", all_output(&output));
    assert!(all_output(&output).contains("which case?"), "{}", all_output(&output));
}

#[test]
fn an_unknown_target_is_reported_before_any_server_starts() {
    let dir = tempfile::tempdir().unwrap();
    let file = file(dir.path(), LOST_UPDATE);
    let output = explain(&file, &["--on", "sqlite", "postgers"]);
    assert_eq!(output.status.code(), Some(2), "{}", all_output(&output));
    assert!(all_output(&output).contains("`postgers` is not a target"), "{}", all_output(&output));
    assert!(output.stdout.is_empty(), "{}", all_output(&output));
}

//! The oracles `isolation`, `topological` and `merged` on the command line.

use isolde_testing::program::{all_output, isolde, stdout, text};
use isolde_testing::servers;
use serde_json::Value;
use std::path::Path;

fn case(name: &str) -> String {
    format!("{}/cases/hermitage/{name}.case", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_isolation_oracle_shows_a_cycle_and_whether_the_level_allows_it() {
    if !servers::is_available("postgres") {
        return;
    }
    let file = case("p4");
    let ran =
        isolde(&["replay", &file, "--on", "postgres", "--oracle", "isolation", "--level", "all"]);
    let printed = all_output(&ran);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    let (weak, strong) = printed.split_once("at REPEATABLE READ").expect("each level has a part");
    assert!(weak.contains("lost-update") && weak.contains("allowed at this level"), "{weak}");
    assert!(weak.contains("comes before"), "a cycle in words: {weak}");
    assert!(strong.contains("no anomaly"), "{strong}");
}

#[test]
fn write_skew_is_allowed_at_repeatable_read_in_json() {
    if !servers::is_available("postgres") {
        return;
    }
    let file = case("g2-item");
    let ran = isolde(&[
        "replay",
        &file,
        "--on",
        "postgres",
        "--oracle",
        "isolation",
        "--level",
        "repeatable read",
        "--json",
    ]);
    let all: Value = serde_json::from_str(&stdout(&ran)).expect("JSON");
    let classes: Vec<&str> = all[0]["anomalies"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|a| a["class"].as_str())
        .collect();
    assert!(classes.contains(&"write-skew"), "{all}");
    assert!(all[0]["anomalies"].as_array().unwrap().iter().all(|a| a["ruled_out"] == false));
}

/// A write skew whose reads go through views, one of them defined on the other.
#[test]
fn reads_through_views_are_attributed_to_base_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("views.case");
    std::fs::write(
        &file,
        "case: views\nlevel: repeatable read\n\nsetup:\n  create table t (a int primary key, b int);\n  \
         insert into t values (1, 10), (2, 20);\n  create view v as select * from t where b < 100;\n  \
         create view w (x, n) as select b, count(*) from v group by b;\n\ns1> begin;\ns2> begin;\n\
         s1> select * from v where a = 1;\ns2> select x, n from w;\n\
         s1> update t set b = 11 where a = 2;\ns2> update t set b = 21 where a = 1;\n\
         s1> commit;\ns2> commit;\n\nfinal:\n  select a, b from t;\n",
    )
    .unwrap();
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
        let serial = target == "sqlite";
        let level = if serial { "serializable" } else { "repeatable read" };
        let on = ["--on", target, "--level", level];
        let ran = isolde(&[&["replay", text(&file), "--oracle", "isolation"], &on[..]].concat());
        let printed = all_output(&ran);
        assert!(!printed.contains("not instrumented"), "{target}: {printed}");
        let expected = if serial { "no anomaly" } else { "write-skew" };
        assert!(printed.contains(expected), "{target}: {printed}");
        let ran = isolde(&[&["explain", text(&file), "--json"], &on[..]].concat());
        let explained: Value = serde_json::from_str(&stdout(&ran)).expect("JSON");
        let steps = explained.to_string();
        assert!(!steps.contains("not modelled"), "{target}: {steps}");
    }
}

#[test]
fn statements_that_cannot_be_instrumented_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.case");
    std::fs::write(
        &file,
        "case: mine\nengines: sqlite\n\nsetup:\n  create table t (a int primary key, b int);\n  \
         insert into t values (1, 10), (2, 20);\n\ns1> begin;\ns1> select total(b) from t;\n\
         s1> update t set b = 11 where a = 1;\ns1> commit;\ns2> select b from t;\n\n\
         final:\n  select a, b from t;\n",
    )
    .unwrap();
    let ran = isolde(&["replay", text(&file), "--oracle", "isolation"]);
    let printed = all_output(&ran);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert!(printed.contains("not instrumented: select total(b) from t"), "{printed}");
    assert!(printed.contains("no anomaly"), "{printed}");
    let other = isolde(&["replay", text(&file), "--oracle", "tx-wss"]);
    assert_eq!(other.status.code(), Some(2));
}

#[test]
fn a_full_speed_hunt_draws_the_cycle_of_a_planted_fault() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let ran = isolde(&[
        "hunt",
        "postgres",
        "--oracle",
        "isolation",
        "--level",
        "serializable",
        "--fault",
        "weaker-level",
        "--seed",
        "3",
        "--cases",
        "2",
        "--round",
        "150",
        "--out",
        text(&out),
    ]);
    let printed = all_output(&ran);
    assert_eq!(ran.status.code(), Some(1), "{printed}");
    let folders = std::fs::read_dir(out.join("findings")).unwrap();
    let folder = folders.flatten().next().expect("a finding").path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("cycle.svg").starts_with("<svg"), "{}", read("cycle.svg"));
    assert!(read("explanation.txt").contains("comes before"), "{}", read("explanation.txt"));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("data:image/svg+xml"), "the cycle is in the page");
    let checked = isolde(&["check", text(&folder.join("history.jsonl"))]);
    assert_eq!(checked.status.code(), Some(1), "{}", all_output(&checked));
    assert!(Path::new(&folder.join("case.case")).exists());
}

#[test]
fn a_full_speed_hunt_without_a_fault_finds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let ran = isolde(&[
        "hunt",
        "sqlite",
        "--oracle",
        "isolation",
        "--seed",
        "3",
        "--cases",
        "3",
        "--round",
        "100",
        "--sessions",
        "4",
        "--keys",
        "5",
        "--out",
        text(&out),
    ]);
    let printed = all_output(&ran);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert!(printed.contains("0 bug"), "{printed}");
}

/// The paper's figure 1, which is documented behaviour.
#[test]
fn the_topological_oracle_compares_with_statements_run_alone() {
    if !servers::is_available("mariadb") {
        return;
    }
    let file = format!("{}/cases/papers/txcheck-figure-1.case", env!("CARGO_MANIFEST_DIR"));
    let judged = ["replay", &file, "--on", "mariadb", "--oracle", "topological"];
    let ran = isolde(&judged);
    let printed = all_output(&ran);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert!(printed.contains("s1.2 before s2.4: predicate-write, row t0#"), "{printed}");
    assert!(printed.contains("return and leave the same in 3 orders"), "{printed}");
    let ran = isolde(&[&judged[..], &["--json"]].concat());
    let all: Value = serde_json::from_str(&stdout(&ran)).expect("JSON");
    assert_eq!(all[0]["oracle"], "topological");
    assert_eq!(all[0]["graph"]["statements"].as_array().map(Vec::len), Some(5), "{all}");
    let ran = isolde(&[&judged[..], &["--level", "read uncommitted"]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", all_output(&ran));
}

#[test]
fn the_merged_oracle_accepts_serial_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("three.case");
    std::fs::write(
        &file,
        "case: three\nlevel: serializable\n\nsetup:\n  create table t (a int primary key, b int);\n  \
         insert into t values (1, 1), (2, 2);\n\ns1> begin;\ns1> update t set b = b + 1 where a = 1;\n\
         s1> commit;\ns2> select sum(b) from t;\ns3> update t set b = b * 2;\n\nfinal:\n  \
         select a, b from t;\n",
    )
    .unwrap();
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
        let ran = isolde(&["replay", text(&file), "--on", target, "--oracle", "merged"]);
        assert_eq!(ran.status.code(), Some(0), "{target}: {}", all_output(&ran));
        assert!(all_output(&ran).contains("no difference"), "{target}: {}", all_output(&ran));
    }
}

//! `--oracle isolation` as people meet it.

mod program;

use program::{isolde, said, stdout, text};
use serde_json::Value;
use std::path::Path;

fn quick() -> bool {
    std::env::var_os("ISOLDE_TEST_QUICK").is_some()
}

fn case(name: &str) -> String {
    format!("{}/../../cases/hermitage/{name}.case", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_case_shows_its_cycle_and_whether_the_level_allows_it() {
    if quick() {
        return;
    }
    let file = case("p4");
    let ran =
        isolde(&["replay", &file, "--on", "postgres", "--oracle", "isolation", "--level", "all"]);
    let said = said(&ran);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let (weak, strong) = said.split_once("at REPEATABLE READ").expect("each level has a part");
    assert!(weak.contains("lost-update") && weak.contains("allowed at this level"), "{weak}");
    assert!(weak.contains("comes before"), "a cycle in words: {weak}");
    assert!(strong.contains("no anomaly"), "{strong}");
}

#[test]
fn write_skew_is_allowed_at_repeatable_read_and_says_so_as_json() {
    if quick() {
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

/// A write skew of which both reads go through views, one of them made of the other.
#[test]
fn reads_through_views_say_what_they_read() {
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
    let targets = if quick() { &["sqlite"][..] } else { &["postgres", "mariadb"][..] };
    for target in targets {
        let serial = *target == "sqlite";
        let level = if serial { "serializable" } else { "repeatable read" };
        let on = ["--on", target, "--level", level];
        let ran = isolde(&[&["replay", text(&file), "--oracle", "isolation"], &on[..]].concat());
        let said = said(&ran);
        assert!(!said.contains("left alone"), "{target}: {said}");
        let expected = if serial { "no anomaly" } else { "write-skew" };
        assert!(said.contains(expected), "{target}: {said}");
        let ran = isolde(&[&["explain", text(&file), "--json"], &on[..]].concat());
        let explained: Value = serde_json::from_str(&stdout(&ran)).expect("JSON");
        let steps = explained.to_string();
        assert!(!steps.contains("not modelled"), "{target}: {steps}");
    }
}

#[test]
fn what_cannot_be_told_about_is_left_alone_and_said() {
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
    let said = said(&ran);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert!(said.contains("left alone: select total(b) from t"), "{said}");
    assert!(said.contains("no anomaly"), "{said}");
    let other = isolde(&["replay", text(&file), "--oracle", "tx-wss"]);
    assert_eq!(other.status.code(), Some(2));
}

#[test]
fn a_hunt_at_full_speed_draws_the_cycle_that_a_fault_makes() {
    if quick() {
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
    let said = said(&ran);
    assert_eq!(ran.status.code(), Some(1), "{said}");
    let folders = std::fs::read_dir(out.join("findings")).unwrap();
    let folder = folders.flatten().next().expect("a finding").path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("cycle.svg").starts_with("<svg"), "{}", read("cycle.svg"));
    assert!(read("explanation.txt").contains("comes before"), "{}", read("explanation.txt"));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("data:image/svg+xml"), "the cycle is in the page");
    let checked = isolde(&["check", text(&folder.join("history.jsonl"))]);
    assert_eq!(checked.status.code(), Some(1), "{}", program::said(&checked));
    assert!(Path::new(&folder.join("case.case")).exists());
}

#[test]
fn without_a_fault_a_hunt_at_full_speed_is_silent() {
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
    let said = said(&ran);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert!(said.contains("0 bug"), "{said}");
}

/// The paper's figure 1, which is documented behaviour, and why.
#[test]
fn a_case_is_judged_by_what_its_statements_do_alone() {
    if quick() {
        return;
    }
    let file = format!("{}/../../cases/papers/txcheck-figure-1.case", env!("CARGO_MANIFEST_DIR"));
    let judged = ["replay", &file, "--on", "mariadb", "--oracle", "topological"];
    let ran = isolde(&judged);
    let told = said(&ran);
    assert_eq!(ran.status.code(), Some(0), "{told}");
    assert!(told.contains("s1.2 before s2.4: predicate-write, row t0#"), "{told}");
    assert!(told.contains("return and leave the same in 3 orders"), "{told}");
    let ran = isolde(&[&judged[..], &["--json"]].concat());
    let all: Value = serde_json::from_str(&stdout(&ran)).expect("JSON");
    assert_eq!(all[0]["oracle"], "topological");
    assert_eq!(all[0]["graph"]["statements"].as_array().map(Vec::len), Some(5), "{all}");
    let ran = isolde(&[&judged[..], &["--level", "read uncommitted"]].concat());
    assert_eq!(ran.status.code(), Some(3), "it is refused: {}", said(&ran));
}

#[test]
fn merged_transactions_are_told_apart_from_no_serial_order() {
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
    let targets = if quick() { &["sqlite"][..] } else { &["sqlite", "postgres", "mariadb"][..] };
    for target in targets {
        let ran = isolde(&["replay", text(&file), "--on", target, "--oracle", "merged"]);
        assert_eq!(ran.status.code(), Some(0), "{target}: {}", said(&ran));
        assert!(said(&ran).contains("nothing differs"), "{target}: {}", said(&ran));
    }
}

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

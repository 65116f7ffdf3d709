//! The anomaly that `isolde explain` names, on real engines, and what prevents it.

use isolde_testing::program::{all_output, isolde, stdout, text};
use isolde_testing::servers;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn hermitage(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("cases/hermitage/{name}.case"))
}

fn runs(arguments: &[&str]) -> Vec<Value> {
    let output = isolde(&[&["explain"], arguments, &["--json"]].concat());
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{arguments:?}: {}", all_output(&output)));
    json["runs"].as_array().unwrap().clone()
}

/// The class of the anomaly, or the label where there is none.
fn named(case: &str, target: &str, level: &str) -> String {
    let path = hermitage(case);
    let runs = runs(&[text(&path), "--on", target, "--level", level]);
    let class = runs[0]["anomaly"]["class"].as_str();
    class.or(runs[0]["label"].as_str()).unwrap().to_string()
}

#[test]
fn anomalies_of_hermitage_have_their_names() {
    for (case, target, level, name) in [
        ("g1a", "mariadb", "ru", "dirty-read"),
        ("g1a", "mariadb", "rc", "consistent"),
        ("g1b", "mariadb", "ru", "dirty-read"),
        ("g1b", "postgres", "rc", "non-repeatable-read"),
        ("p4", "postgres", "rc", "lost-update"),
        ("p4", "postgres", "rr", "consistent"),
        ("p4", "mariadb", "rr", "lost-update"),
        ("g-single", "postgres", "rc", "read-skew"),
        ("g-single", "postgres", "rr", "consistent"),
        ("pmp", "postgres", "rc", "phantom"),
        ("pmp", "mariadb", "rc", "phantom"),
        ("g2-item", "postgres", "rr", "write-skew"),
        ("g2-item", "mariadb", "rr", "write-skew"),
        ("g2", "postgres", "rr", "write-skew"),
        ("g2", "postgres", "ser", "consistent"),
    ] {
        if servers::open_engine(target).is_some() {
            assert_eq!(named(case, target, level), name, "{case} on {target} at {level}");
        }
    }
}

/// A case of two rows of `t`, 10 and 20.
fn own_case(dir: &Path, steps: &str) -> PathBuf {
    let setup = "setup:\n  create table t (id int primary key, v int);\n  \
                 insert into t values (1, 10), (2, 20);\n\n";
    let file = dir.join("own.case");
    std::fs::write(&file, format!("case: own\n{setup}{steps}")).unwrap();
    file
}

/// Each anomaly, with the levels at which PostgreSQL and InnoDB allow it, and its
/// remedies there: rc, ru and rr are levels, `for update` and `update` the others.
const ANOMALIES: [(&str, &str, &str, &str); 8] = [
    (
        "lost-update",
        "s1> begin;\ns2> begin;\ns1> select v from t where id = 1;\n\
         s2> select v from t where id = 1;\ns1> update t set v = 11 where id = 1;\n\
         s2> update t set v = 15 where id = 1;\ns1> commit;\ns2> commit;\n",
        "rc: for update, update, REPEATABLE READ",
        "rc: for update, update, SERIALIZABLE | rr: for update, update, SERIALIZABLE",
    ),
    (
        "non-repeatable-read",
        "s1> begin;\ns1> select v from t where id = 1;\ns2> update t set v = 11 where id = 1;\n\
         s1> select v from t where id = 1;\ns1> commit;\n",
        "rc: REPEATABLE READ",
        "ru: REPEATABLE READ | rc: REPEATABLE READ",
    ),
    (
        "phantom",
        "s1> begin;\ns1> select * from t where v > 5;\ns2> insert into t values (3, 30);\n\
         s1> select * from t where v > 5;\ns1> commit;\n",
        "rc: REPEATABLE READ",
        "ru: REPEATABLE READ | rc: REPEATABLE READ",
    ),
    (
        "phantom",
        "s1> begin;\ns1> select * from t where v > 5;\ns2> insert into t values (3, 30);\n\
         s1> update t set v = v + 1 where v > 5;\ns1> commit;\n",
        "rc: REPEATABLE READ",
        "rc: SERIALIZABLE | rr: SERIALIZABLE",
    ),
    (
        "read-skew",
        "s1> begin;\ns1> select v from t where id = 1;\ns2> begin;\n\
         s2> update t set v = 11 where id = 1;\ns2> update t set v = 19 where id = 2;\n\
         s2> commit;\ns1> select v from t where id = 2;\ns1> commit;\n",
        "rc: REPEATABLE READ",
        "rc: REPEATABLE READ",
    ),
    (
        "write-skew",
        "s1> begin;\ns2> begin;\ns1> select count(*) from t where v > 0;\n\
         s2> select count(*) from t where v > 0;\ns1> update t set v = 0 where id = 1;\n\
         s2> update t set v = 0 where id = 2;\ns1> commit;\ns2> commit;\n",
        "rc: for update, SERIALIZABLE | rr: for update, SERIALIZABLE",
        "rr: for update, SERIALIZABLE",
    ),
    // A lock on rows that are not there needs locks on gaps.
    (
        "write-skew",
        "s1> begin;\ns2> begin;\ns1> select count(*) from t where v = 5;\n\
         s2> select count(*) from t where v = 5;\ns1> insert into t values (3, 5);\n\
         s2> insert into t values (4, 5);\ns1> commit;\ns2> commit;\n",
        "rr: SERIALIZABLE",
        "rc: SERIALIZABLE | rr: for update, SERIALIZABLE",
    ),
    (
        "dirty-read",
        "s1> begin;\ns1> update t set v = 0 where id = 1;\ns2> select * from t;\ns1> rollback;\n",
        "",
        "ru: READ COMMITTED",
    ),
];

/// The remedy that a run of `--fix` shows.
fn remedy(run: &Value) -> String {
    let variant = run["variant"].as_str().unwrap();
    match variant.split_once(", at ") {
        Some((with, _)) if with.contains("FOR UPDATE") => "for update".into(),
        Some(_) => "update".into(),
        None => variant.trim_start_matches("At ").into(),
    }
}

#[test]
fn advice_prevents_each_anomaly() {
    let dir = tempfile::tempdir().unwrap();
    for target in ["postgres", "mariadb", "mysql@8.0.33"] {
        if servers::open_engine(target).is_none() {
            continue;
        }
        for (class, steps, postgres, innodb) in ANOMALIES {
            let file = own_case(dir.path(), steps);
            let levels = if target == "postgres" { postgres } else { innodb };
            for expected in levels.split(" | ").filter(|level| !level.is_empty()) {
                let (level, remedies) = expected.split_once(": ").unwrap();
                let runs = runs(&[text(&file), "--on", target, "--level", level, "--fix"]);
                assert_eq!(runs[0]["anomaly"]["class"], class, "{target} at {level}: {steps}");
                let shown: Vec<String> = runs[1..].iter().map(remedy).collect();
                assert_eq!(shown.join(", "), remedies, "{target} at {level}: {steps}");
                for run in &runs[1..] {
                    assert_eq!(run["label"], "consistent", "{target} at {level}: {steps}{run}");
                }
            }
        }
    }
}

/// An UPDATE that computes the new value from the newest row overwrites no value, and
/// there is no other UPDATE that would.
#[test]
fn update_of_the_newest_row_overwrites_no_value() {
    let dir = tempfile::tempdir().unwrap();
    let steps = "s1> begin;\ns1> select v from t where id = 1;\n\
                 s2> update t set v = 100 where id = 1;\n\
                 s1> update t set v = v + 1 where id = 1;\ns1> commit;\n";
    let file = own_case(dir.path(), steps);
    if servers::open_engine("mariadb").is_some() {
        let runs = runs(&[text(&file), "--on", "mariadb", "--level", "rr", "--fix"]);
        let expected = "s1 changes t 1, which s2 has changed since s1 read it";
        assert_eq!(runs[0]["anomaly"]["text"], expected, "{}", runs[0]);
        let shown: Vec<String> = runs[1..].iter().map(remedy).collect();
        assert_eq!(shown, ["for update", "SERIALIZABLE"]);
        for run in &runs[1..] {
            assert_eq!(run["label"], "consistent", "{run}");
        }
    }
}

#[test]
fn first_line_says_what_happened() {
    if servers::open_engine("postgres").is_none() {
        return;
    }
    let path = hermitage("p4");
    let output = stdout(&isolde(&["explain", text(&path), "--on", "postgres", "--level", "rc"]));
    let lines: Vec<&str> = output.lines().take(3).collect();
    assert!(
        lines[0].starts_with("Lost update: s1's write (11) to test 1 is overwritten by s2"),
        "{output}"
    );
    assert!(lines[1].starts_with("READ COMMITTED on postgres") && lines[1].contains("allows it"));
    assert!(lines[2].starts_with("To prevent it: SELECT … FOR UPDATE"), "{output}");
    // Then the final rows, and then the steps.
    let finals = output.find("final select * from test").expect(&output);
    assert!(finals < output.find("s1.1").expect(&output), "{output}");
}

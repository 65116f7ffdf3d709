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

#[test]
fn advice_prevents_the_anomaly() {
    for (case, target, level, ways) in [
        ("p4", "postgres", "rc", 2),
        ("p4", "mariadb", "rr", 2),
        ("g2-item", "postgres", "rr", 2),
        ("g2-item", "mariadb", "rr", 2),
        ("g-single", "postgres", "rc", 1),
        ("pmp", "mariadb", "rc", 1),
        ("g1b", "mariadb", "ru", 1),
    ] {
        if servers::open_engine(target).is_none() {
            continue;
        }
        let path = hermitage(case);
        let runs = runs(&[text(&path), "--on", target, "--level", level, "--fix"]);
        assert_eq!(runs[0]["label"], "documented", "{case} on {target}");
        assert_eq!(runs.len(), 1 + ways, "{case} on {target}");
        for run in &runs[1..] {
            let class = &runs[0]["anomaly"]["class"];
            assert_ne!(run["anomaly"]["class"], *class, "{case} on {target}: {}", run["variant"]);
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
        lines[0].starts_with("Lost update: s1's write to test 1 is overwritten by s2"),
        "{output}"
    );
    assert!(lines[1].starts_with("READ COMMITTED on postgres") && lines[1].contains("allows it"));
    assert!(lines[2].starts_with("To prevent it: SELECT … FOR UPDATE"), "{output}");
    assert!(output.contains("final select * from test"), "{output}");
}

//! Patterns of applications, each with the verdict that an expert gives it at every
//! level. Two lines at the top of a case state the anomaly and the levels at which
//! it occurs (`# postgres: lost-update at rc; write-skew at rr`); at all other levels
//! the case is consistent.

use isolde_testing::program::{all_output, isolde, text};
use isolde_testing::servers;
use serde_json::Value;
use std::path::{Path, PathBuf};

const LEVELS: [(&str, &str); 4] = [
    ("ru", "READ UNCOMMITTED"),
    ("rc", "READ COMMITTED"),
    ("rr", "REPEATABLE READ"),
    ("ser", "SERIALIZABLE"),
];

fn cases() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/patterns");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(dir).unwrap().flatten().map(|f| f.path()).collect();
    cases.sort();
    cases
}

/// The expected anomaly at a level, or `consistent`.
fn expected(case: &str, family: &str, level: &str) -> String {
    let mark = format!("# {family}: ");
    let line = case.lines().find_map(|l| l.strip_prefix(&mark)).unwrap();
    let at_level = |part: &str| {
        let (anomaly, levels) = part.split_once(" at ")?;
        levels.split(' ').any(|l| l == level).then(|| anomaly.to_string())
    };
    line.split("; ").find_map(at_level).unwrap_or_else(|| "consistent".into())
}

fn compare(family: &str, engine: &str, target: &str) {
    if servers::open_engine(target).is_none() {
        return;
    }
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for path in cases() {
        let case = std::fs::read_to_string(&path).unwrap();
        let engines = case.lines().find_map(|l| l.strip_prefix("engines: ")).unwrap();
        if !engines.split(", ").any(|e| e == engine) {
            continue;
        }
        let output = isolde(&["explain", text(&path), "--on", target, "--level", "all", "--json"]);
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", all_output(&output)));
        for run in json["runs"].as_array().unwrap() {
            let level = LEVELS.iter().find(|(_, name)| run["level"] == *name).unwrap().0;
            // PostgreSQL's READ UNCOMMITTED is READ COMMITTED.
            let as_level = if family == "postgres" && level == "ru" { "rc" } else { level };
            let found = run["anomaly"]["class"].as_str().or(run["label"].as_str()).unwrap();
            let expected = expected(&case, family, as_level);
            compared += 1;
            if found != expected {
                let (file, why) = (path.display(), &run["why"]);
                wrong.push(format!("{file} at {level}: {found} instead of {expected} ({why})"));
            }
        }
    }
    assert!(compared >= 120, "{target}: {compared} runs");
    assert!(wrong.is_empty(), "{target}: {} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn patterns_on_postgres_have_the_verdict_of_an_expert() {
    compare("postgres", "postgres", "postgres");
}

#[test]
fn patterns_on_mariadb_have_the_verdict_of_an_expert() {
    compare("innodb", "mariadb", "mariadb");
}

#[test]
fn patterns_on_fetched_engines_have_the_verdict_of_an_expert() {
    compare("innodb", "mysql", "mysql@8.0.33");
    compare("innodb", "mysql", "mysql@9.7");
    compare("postgres", "postgres", "postgres@18");
}

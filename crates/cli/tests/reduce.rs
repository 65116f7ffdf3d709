//! `isolde reduce`: findings and own cases are reduced, other input is refused.

use isolde_model::case;
use isolde_testing::program::{all_output, isolde, stdout, text};
use isolde_testing::servers;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folder of a finding that is not reduced.
fn whole_finding(folder: &Path) -> PathBuf {
    let out = folder.join("out");
    let wish = ["hunt", "sqlite", "--fault", "statement-dropped", "--seed", "3", "--cases", "60"];
    let output = isolde(&[&wish[..], &["--no-reduce", "--out", text(&out)]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", all_output(&output));
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(out.join("findings")).unwrap().map(|f| f.unwrap().path()).collect();
    found.sort();
    let whole = |path: &Path, name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    let first = found.swap_remove(0);
    assert_eq!(whole(&first, "finding.json").matches("reduced_by").count(), 0);
    first
}

fn reduced(arguments: &[&str]) -> Value {
    let output = isolde(&[&["reduce", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn reduce_shrinks_a_finding_with_every_strategy_and_worker_count() {
    let folder = tempfile::tempdir().unwrap();
    let finding = whole_finding(folder.path());
    let mut of_pisco = String::new();
    for strategy in ["pisco", "ddmin", "creduce"] {
        let out = folder.path().join(format!("{strategy}.case"));
        let report = reduced(&[text(&finding), "--strategy", strategy, "--out", text(&out)]);
        assert_eq!(
            (&report["strategy"], &report["cut"]),
            (&strategy.into(), &false.into()),
            "{report}"
        );
        let (before, after) = (report["steps_before"].as_u64(), report["steps_after"].as_u64());
        assert!(after < before, "{report}");
        // The reduced case fails like the finding: the planted fault breaks a rule.
        assert_eq!(report["cause"], "bug", "{report}");
        assert_eq!(report["rate"]["seen"], report["rate"]["runs"], "{report}");
        let small = std::fs::read_to_string(&out).unwrap();
        assert_eq!(report["text"], small.as_str());
        let steps = case::parse(&small).unwrap().steps.len() as u64;
        assert_eq!(Some(steps), after);
        if strategy == "pisco" {
            of_pisco = small;
        }
    }
    let out = folder.path().join("two.case");
    let report = reduced(&[text(&finding), "-j", "2", "--out", text(&out)]);
    assert_eq!(report["text"], of_pisco.as_str(), "two workers change only the time");
}

/// Two transactions that each copy from the table into which the other inserts, among
/// irrelevant statements.
const SKEW: &str = "case: mine/skew\ntitle: each copies from where the other writes\n\
    engines: postgres\nlevel: repeatable read\n\nsetup:\n  \
    create table source (id int, note varchar(20));\n  create table target (id int, note varchar(20));\n  \
    create table aside (x int primary key, y int);\n  \
    insert into source values (11, 'one'), (12, 'two');\n  insert into target values (21, 'three');\n  \
    insert into aside values (5, 50), (6, 60);\n\n\
    s1> begin;\ns2> begin;\ns3> update aside set y = 7 where x = 5;\n\
    s1> select x from aside order by x;\n\
    s1> insert into target (id, note) select id, note from source;\n\
    s2> update aside set y = y + 1 where x = 6;\n\
    s2> insert into source (id, note) select id, note from target;\n\
    s1> commit;\ns2> commit;\n\n\
    final:\n  select id, note from source;\n  select id, note from target;\n  select x, y from aside;\n";

#[test]
fn reduce_removes_irrelevant_parts_of_a_case() {
    if !servers::is_available("postgres") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case_file = folder.path().join("skew.case");
    std::fs::write(&case_file, SKEW).unwrap();
    let output = isolde(&["reduce", text(&case_file), "--on", "postgres"]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    let report = all_output(&output);
    assert!(
        report.contains("Reduced from 9 to ") && report.contains("documented, found by tx-wss"),
        "{report}"
    );
    let small = std::fs::read_to_string(folder.path().join("skew.reduced.case")).unwrap();
    assert!(stdout(&output).contains(&small), "{report}");
    let case = case::parse(&small).unwrap();
    assert_eq!((case.id.as_str(), case.sessions().len()), ("mine/skew", 2), "{small}");
    assert!(case.steps.len() <= 6, "{small}");
    for gone in ["aside", "update", "varchar", "note"] {
        assert!(!small.contains(gone), "{gone}: {small}");
    }
    assert_eq!(std::fs::read_to_string(&case_file).unwrap(), SKEW, "the case itself stays");
}

#[test]
fn reduce_refuses_passing_and_malformed_cases() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sound = "case: mine/sound\n\nsetup:\n  create table t (a int);\n\n\
                 s1> insert into t values (1);\n\nfinal:\n  select a from t;\n";
    std::fs::write(at("sound.case"), sound).unwrap();
    std::fs::write(at("bad.case"), "case: mine/bad\n\nsetup:\n  create").unwrap();
    let ends = |arguments: &[&str], code: i32, why: &str| {
        let output = isolde(&[&["reduce"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{}", all_output(&output));
        assert!(all_output(&output).contains(why), "{}", all_output(&output));
    };
    ends(&[text(&at("sound.case")), "--on", "sqlite"], 1, "there is nothing to reduce");
    ends(&[text(&at("bad.case"))], 5, "bad.case");
    ends(&[text(&at("nowhere.case"))], 5, "nowhere.case");
    ends(&[text(&at("sound.case")), "--on", "sqlite", "--level", "all"], 2, "one level");
    ends(&[text(&at("sound.case")), "--strategy", "guess"], 2, "pisco");
    assert!(!at("sound.reduced.case").exists() && !at("bad.reduced.case").exists());
}

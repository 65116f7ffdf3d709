//! `isolde reduce`: findings and cases of one's own made small, and what is refused.

mod program;

use isolde_core::case;
use program::{isolde, said, stdout, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folder of a finding that nobody has made smaller.
fn whole_finding(folder: &Path) -> PathBuf {
    let out = folder.join("out");
    let wish = ["hunt", "sqlite", "--fault", "statement-dropped", "--seed", "3", "--cases", "60"];
    let output = isolde(&[&wish[..], &["--no-reduce", "--out", text(&out)]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
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
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_finding_is_made_small_by_every_strategy_and_any_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let finding = whole_finding(folder.path());
    let mut of_pisco = String::new();
    for strategy in ["pisco", "ddmin", "creduce"] {
        let out = folder.path().join(format!("{strategy}.case"));
        let told = reduced(&[text(&finding), "--strategy", strategy, "--out", text(&out)]);
        assert_eq!((&told["strategy"], &told["cut"]), (&strategy.into(), &false.into()), "{told}");
        let (before, after) = (told["steps_before"].as_u64(), told["steps_after"].as_u64());
        assert!(after < before, "{told}");
        // It fails as the finding does: by the fault of its hunt, which breaks a rule.
        assert_eq!(told["cause"], "bug", "{told}");
        assert_eq!(told["rate"]["seen"], told["rate"]["runs"], "{told}");
        let small = std::fs::read_to_string(&out).unwrap();
        assert_eq!(told["text"], small.as_str());
        let steps = case::parse(&small).unwrap().steps.len() as u64;
        assert_eq!(Some(steps), after);
        if strategy == "pisco" {
            of_pisco = small;
        }
    }
    let out = folder.path().join("two.case");
    let told = reduced(&[text(&finding), "-j", "2", "--out", text(&out)]);
    assert_eq!(told["text"], of_pisco.as_str(), "two workers change only the time");
}

/// Two transactions that each copy what the other adds to, among much that has nothing to
/// do with it.
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
fn a_case_of_ones_own_loses_what_it_does_not_need() {
    let folder = tempfile::tempdir().unwrap();
    let case_file = folder.path().join("skew.case");
    std::fs::write(&case_file, SKEW).unwrap();
    let output = isolde(&["reduce", text(&case_file), "--on", "postgres"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let told = said(&output);
    assert!(told.contains("9 steps became ") && told.contains("documented by tx-wss"), "{told}");
    let small = std::fs::read_to_string(folder.path().join("skew.reduced.case")).unwrap();
    assert!(stdout(&output).contains(&small), "{told}");
    let case = case::parse(&small).unwrap();
    assert_eq!((case.id.as_str(), case.sessions().len()), ("mine/skew", 2), "{small}");
    assert!(case.steps.len() <= 6, "{small}");
    for gone in ["aside", "update", "varchar", "note"] {
        assert!(!small.contains(gone), "{gone}: {small}");
    }
    assert_eq!(std::fs::read_to_string(&case_file).unwrap(), SKEW, "the case itself stays");
}

#[test]
fn what_does_not_fail_or_cannot_be_read_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sound = "case: mine/sound\n\nsetup:\n  create table t (a int);\n\n\
                 s1> insert into t values (1);\n\nfinal:\n  select a from t;\n";
    std::fs::write(at("sound.case"), sound).unwrap();
    std::fs::write(at("bad.case"), "case: mine/bad\n\nsetup:\n  create").unwrap();
    let ends = |arguments: &[&str], code: i32, why: &str| {
        let output = isolde(&[&["reduce"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
    };
    ends(&[text(&at("sound.case")), "--on", "sqlite"], 1, "there is nothing to reduce");
    ends(&[text(&at("bad.case"))], 5, "bad.case");
    ends(&[text(&at("nowhere.case"))], 5, "nowhere.case");
    ends(&[text(&at("sound.case")), "--on", "sqlite", "--level", "all"], 2, "one level");
    ends(&[text(&at("sound.case")), "--strategy", "guess"], 2, "pisco");
    assert!(!at("sound.reduced.case").exists() && !at("bad.reduced.case").exists());
}

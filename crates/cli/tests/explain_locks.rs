//! `isolde explain`: the account of locks and of what a transaction sees, on real
//! engines.

use isolde_testing::program::{all_output, isolde, text};
use isolde_testing::servers;
use serde_json::Value;

const SETUP: &str = "case: own\n\nsetup:\n  create table t (id int primary key, v int not null);\n  \
                     insert into t values (1, 10), (10, 20);\n\n";

/// The rules and the reason of one step of a case.
fn account(target: &str, level: &str, steps: &str, step: &str) -> Option<(Vec<String>, String)> {
    servers::open_engine(target)?;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.case");
    std::fs::write(&file, format!("{SETUP}{steps}")).unwrap();
    let output = isolde(&["explain", text(&file), "--on", target, "--level", level, "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", all_output(&output)));
    let steps = json["runs"][0]["steps"].as_array().unwrap();
    let found = steps.iter().find(|s| s["step"] == step).unwrap();
    assert_eq!(found["verdict"], "inside", "{json}");
    let rules = found["rules"].as_array().unwrap().iter();
    let rules = rules.map(|r| r.as_str().unwrap().to_string()).collect();
    Some((rules, found["why"].as_str().unwrap().to_string()))
}

const INNODB: [&str; 2] = ["mariadb", "mysql@8.0.33"];

#[test]
fn insert_that_waits_for_a_gap_names_the_scan_that_locked_it() {
    let steps = "s1> begin;\ns2> begin;\ns1> select * from t where id = 12 for update;\n\
                 s1> select * from t where id = 5 for update;\ns2> insert into t values (6, 1);\n\
                 s1> commit;\ns2> commit;\n";
    for target in INNODB {
        let Some((rules, why)) = account(target, "rr", steps, "s2.2") else { continue };
        assert_eq!(rules, ["I12", "I18"], "{target}");
        let expected = "waits for s1, which has locked the gap of t for the new row (s1.3)";
        assert_eq!(why, expected, "{target}");
    }
}

#[test]
fn insert_that_waits_for_its_key_is_no_wait_for_a_gap() {
    let steps = "s1> begin;\ns2> begin;\ns1> insert into t values (5, 1);\n\
                 s2> insert into t values (5, 2);\ns1> rollback;\ns2> commit;\n";
    for target in INNODB {
        let Some((rules, why)) = account(target, "rr", steps, "s2.2") else { continue };
        assert_eq!(rules, ["I11", "I18"], "{target}: {why}");
    }
}

#[test]
fn deadlock_over_a_gap_is_explained_by_gap_locks() {
    let steps = "s1> begin;\ns2> begin;\ns1> select * from t where id = 5 for update;\n\
                 s2> select * from t where id = 6 for update;\ns1> insert into t values (5, 1);\n\
                 s2> insert into t values (6, 1);\ns1> commit;\ns2> commit;\n";
    for target in INNODB {
        let Some((rules, why)) = account(target, "rr", steps, "s2.3") else { continue };
        assert_eq!(rules, ["I18", "I12", "I22"], "{target}");
        assert!(why.contains("has locked the gap of t for the new row (s1.2)"), "{target}: {why}");
        assert!(why.ends_with("it and s1.3 wait for each other"), "{target}: {why}");
    }
}

#[test]
fn skip_locked_and_nowait_cite_their_own_rules() {
    let steps = "s1> begin;\ns2> begin;\ns3> begin;\n\
                 s1> select * from t where id = 1 for update;\n\
                 s2> select * from t where id = 1 for update nowait;\n\
                 s3> select * from t order by id for update skip locked;\n\
                 s1> commit;\ns2> rollback;\ns3> commit;\n";
    for (target, nowait, skip) in
        [("postgres", "P19", "P18"), ("mariadb", "I31", "I30"), ("mysql@8.0.33", "I31", "I30")]
    {
        let Some((rules, _)) = account(target, "rc", steps, "s2.2") else { continue };
        assert!(rules.contains(&nowait.to_string()), "{target}: {rules:?}");
        let (rules, why) = account(target, "rc", steps, "s3.2").unwrap();
        assert!(rules.contains(&skip.to_string()), "{target}: {rules:?}");
        assert_eq!(why, "skips rows that s1 has locked", "{target}");
    }
}

#[test]
fn own_write_uncovers_what_others_wrote_to_its_row_and_no_other() {
    let steps = "s1> begin;\ns1> select * from t;\ns2> begin;\n\
                 s2> update t set v = 100 where id = 1;\ns2> update t set v = 200 where id = 10;\n\
                 s2> commit;\ns1> update t set v = v + 1 where id = 1;\ns1> select * from t;\n\
                 s1> commit;\n";
    for target in INNODB {
        let Some((_, why)) = account(target, "rr", steps, "s1.4") else { continue };
        let only = "only in rows that s1 has changed itself since";
        assert_eq!(why, format!("sees what s2 committed after its snapshot {only}"), "{target}");
    }
    let one = steps.replace("s2> update t set v = 200 where id = 10;\n", "");
    for target in INNODB {
        let Some((_, why)) = account(target, "rr", &one, "s1.4") else { continue };
        assert!(why.starts_with("sees what s2 committed after its snapshot, in rows"), "{why}");
    }
    let none = one.replace("s1> update t set v = v + 1 where id = 1;", "s1> select 1;");
    for target in INNODB {
        let Some((_, why)) = account(target, "rr", &none, "s1.4") else { continue };
        assert_eq!(why, "does not see what s2 committed after its snapshot", "{target}");
    }
}

/// The condition cannot hold, so the first SELECT makes no view, and the second does.
#[test]
fn read_that_creates_no_view_does_not_cite_the_rule_that_it_does() {
    let steps = "s1> begin;\ns1> select * from t where v is null;\n\
                 s2> insert into t values (5, 1);\ns1> select * from t;\ns1> commit;\n";
    for target in INNODB {
        let Some((first, _)) = account(target, "rr", steps, "s1.2") else { continue };
        let (second, _) = account(target, "rr", steps, "s1.3").unwrap();
        assert!(first == ["I8"] && second == ["I1"], "{target}: {first:?} {second:?}");
    }
}

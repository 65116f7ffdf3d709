//! `isolde spec` and `isolde convert`: output, exit codes, expected files, other
//! engines.

use isolde_testing::program::{isolde, stderr, stdout};
use isolde_testing::servers;
use std::path::{Path, PathBuf};

/// A spec that every engine can run; one session waits for another.
const NEUTRAL: &str = "\
setup { create table t (id int primary key, v int); insert into t values (1, 1), (2, null); }
teardown { drop table t; }
session s1
step s1b { begin; }
step s1u { update t set v = 10 where id = 1; }
step s1c { commit; }
session s2
step s2b { begin; }
step s2u { update t set v = v + 5 where id = 1; }
step s2c { commit; }
step s2s { select id, v from t order by id; select count(*) as n from t; }
step s2none { select id from t where id > 5; }
permutation s1b s1u s2b s2u s1c s2c s2s s2none
permutation s1b s1u s2u s2s s1c
";
const FIRST_OUTPUT: &str = "\
Parsed test spec with 2 sessions

starting permutation: s1b s1u s2b s2u s1c s2c s2s s2none
step s1b: begin;
step s1u: update t set v = 10 where id = 1;
step s2b: begin;
step s2u: update t set v = v + 5 where id = 1; <waiting ...>
step s1c: commit;
step s2u: <... completed>
step s2c: commit;
step s2s: select id, v from t order by id; select count(*) as n from t;
id| v
--+--
 1|15
 2|  
(2 rows)

n
-
2
(1 row)

step s2none: select id from t where id > 5;
id
--
(0 rows)

";

/// A new directory with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    for (file, content) in files {
        std::fs::write(dir.join(file), content).unwrap();
    }
    dir
}

fn path(dir: &Path, file: &str) -> String {
    dir.join(file).display().to_string()
}

/// The spec without its second permutation, in which the wait of s2 never ends.
fn first_permutation() -> String {
    let kept = NEUTRAL.lines().filter(|l| !l.ends_with("s2s s1c"));
    kept.map(|l| format!("{l}\n")).collect()
}

#[test]
fn a_spec_runs_on_every_available_engine() {
    let dir = folder("engines", &[("n.spec", &first_permutation())]);
    let all = ["sqlite", "sqlite+wal", "postgres", "mariadb", "mysql", "tidb"];
    for target in servers::available(&all) {
        let output = isolde(&["spec", &path(&dir, "n.spec"), "--on", target]);
        assert_eq!(stdout(&output), FIRST_OUTPUT, "{target}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{target}");
    }
}

#[test]
fn sqlite_is_busy_where_a_wait_would_never_end() {
    let dir = folder("busy", &[("n.spec", NEUTRAL)]);
    let output = isolde(&["spec", &path(&dir, "n.spec"), "--on", "sqlite"]);
    let shown = stdout(&output);
    let second = shown.split("starting permutation: ").nth(2).unwrap();
    assert!(second.contains("step s2u: <... completed>\nERROR:  database is locked"), "{second}");
    assert!(second.ends_with("step s1c: commit;\n"), "{second}");
}

#[test]
fn the_sql_that_an_engine_rejects_is_named_with_its_step() {
    let spec = "session s1\nstep ok { select 1 as one; }\nstep cast { select 1::text; }\n";
    let dir = folder("rejects", &[("r.spec", spec)]);
    let output = isolde(&["spec", &path(&dir, "r.spec"), "--on", "sqlite"]);
    let printed = stderr(&output);
    assert!(printed.contains("sqlite rejected step cast (line 3)"), "{printed}");
    assert!(stdout(&output).contains("step cast: select 1::text;\nERROR:  "));
    let json = isolde(&["spec", &path(&dir, "r.spec"), "--on", "sqlite", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(value["specs"][0]["rejected"][0]["place"], "step cast");
    let failing = "setup { select nothing; }\nsession s1\nstep a { select 1; }\n";
    let dir = folder("failing", &[("f.spec", failing)]);
    let output = isolde(&["spec", &path(&dir, "f.spec"), "--on", "sqlite"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("\nsetup failed: ERROR:  "));
}

#[test]
fn expected_files_have_alternatives_and_differences_are_shown() {
    let spec = first_permutation();
    let wrong = FIRST_OUTPUT.replace(" 1|15", " 1|99");
    let dir = folder(
        "expected",
        &[
            ("same.spec", spec.as_str()),
            ("other.spec", spec.as_str()),
            ("wrong.spec", spec.as_str()),
            ("none.spec", spec.as_str()),
            ("same.out", FIRST_OUTPUT),
            ("other.out", wrong.as_str()),
            ("other_1.out", FIRST_OUTPUT),
            ("wrong.out", wrong.as_str()),
        ],
    );
    let expected = dir.display().to_string();
    let run = |files: &[&str]| {
        let paths: Vec<String> = files.iter().map(|f| path(&dir, f)).collect();
        let mut arguments = vec!["spec", "--on", "sqlite", "--expected", &expected];
        arguments.extend(paths.iter().map(String::as_str));
        isolde(&arguments)
    };
    let good = run(&["same.spec", "other.spec"]);
    assert_eq!(good.status.code(), Some(0));
    assert_eq!(stdout(&good), "ok same\nok other  (other_1.out)\n2 specs: 2 ok, 0 not ok\n");
    let bad = run(&["same.spec", "wrong.spec", "none.spec"]);
    let shown = stdout(&bad);
    assert_eq!(bad.status.code(), Some(1));
    assert!(shown.contains("not ok wrong  (against wrong.out)\n"), "{shown}");
    assert!(shown.contains("    - 1|99\n    + 1|15\n"), "{shown}");
    assert!(
        shown.contains("not ok none\n    ") && shown.contains("none.out does not exist"),
        "{shown}"
    );
    assert!(shown.ends_with("3 specs: 1 ok, 2 not ok\n"), "{shown}");
}

#[test]
fn malformed_specs_are_exit_code_5_with_their_position() {
    let dir = folder(
        "malformed",
        &[
            ("a.spec", "session s1\nstep a { select 1; \n"),
            ("b.spec", "session s1\nstep a {x}\npermutation a b\n"),
            ("c.test", "begin;\nwhile ($i) {\n"),
            ("d.txt", "conn_0> begin;\nconn_1> select 1\n"),
            ("e.case", "case: x\n\ns1> select '}';\n"),
            ("f.spec", "session s1\nstep a {x}\nstep b {y}\npermutation a\npermutation b\n"),
        ],
    );
    for (arguments, line) in [
        (vec!["spec", "a.spec"], 2),
        (vec!["spec", "b.spec"], 3),
        (vec!["convert", "c.test", "--to", "case"], 2),
        (vec!["convert", "d.txt", "--to", "case"], 2),
        (vec!["convert", "e.case", "--to", "spec"], 3),
        (vec!["convert", "f.spec", "--to", "case"], 5),
    ] {
        let file = path(&dir, arguments[1]);
        let mut arguments = arguments;
        arguments[1] = &file;
        let output = isolde(&arguments);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{printed}");
        assert!(printed.contains(&format!("{file}: line {line}, column ")), "{printed}");
        assert!(printed.trim_end().ends_with('^'), "{printed}");
    }
}

#[test]
fn a_spec_that_is_not_text_is_refused_at_its_byte() {
    let dir = folder("bytes", &[]);
    for name in ["b.spec", "b.test", "b.py", "b.case"] {
        std::fs::write(dir.join(name), b"begin;\nselect '\xff';\n").unwrap();
        let file = path(&dir, name);
        let output = match name {
            "b.spec" => isolde(&["spec", &file]),
            _ => isolde(&["convert", &file, "--to", "spec"]),
        };
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{printed}");
        let place = format!("{file}: line 2, column 9: the byte 0xff here is not UTF-8");
        assert!(printed.contains(&place) && printed.trim_end().ends_with('^'), "{printed}");
    }
}

#[test]
fn scripts_convert_into_each_other() {
    let script = "create table t (a int);\n\nconn_0> begin;\nconn_1> select * from t;\n";
    let dir = folder("convert", &[("bug.txt", script)]);
    let convert = |from: &str, to: &str, into: &str| {
        let output = isolde(&["convert", &path(&dir, from), "--to", to]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        std::fs::write(dir.join(into), &output.stdout).unwrap();
        stdout(&output)
    };
    let case = convert("bug.txt", "case", "bug.case");
    assert!(case.contains("conn_0> begin;\nconn_1> select * from t;\n"), "{case}");
    convert("bug.case", "spec", "bug.spec");
    assert_eq!(convert("bug.spec", "case", "again.case"), case);
    convert("bug.case", "mtr", "bug.test");
    assert_eq!(convert("bug.test", "case", "again.case"), case);
    assert!(convert("bug.case", "sql", "bug.sql").contains("/* conn_1 */ select * from t;\n"));
}

//! Scripts and specs: round trips between the formats, and parsers that return a
//! case or an error for any text and never panic.

use isolde_interop::script::{
    case_of_spec, read_mtr, read_replbug, spec_of_case, write_mtr, write_sql,
};
use isolde_interop::spec;
use isolde_model::case;
use isolde_model::case::Case;
use proptest::prelude::*;
use proptest::test_runner::Config;

const CASE: &str = "\
case: lost-update
title: A lost update

setup:
  create table t (id int primary key, v int);
  insert into t values (1, 10);

s1> begin;
s2> begin;
s1> select v from t where id = 1;
s2> update t set v = 12
    where id = 1;
s2> commit;
s1> update t set v = 11 where id = 1;
s1> commit;

final:
  select * from t order by id;
";

fn read(text: &str) -> Case {
    case::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The parts that a round trip must keep: setup, schedule, final reads.
fn schedule(case: &Case) -> (Vec<String>, Vec<(String, String)>, Vec<String>) {
    let setup = case.setups.iter().flat_map(|s| &s.statements).map(|s| s.sql.clone()).collect();
    let steps = case.steps.iter().map(|s| (s.session.clone(), s.sql.clone())).collect();
    (setup, steps, case.finals.iter().map(|s| s.sql.clone()).collect())
}

#[test]
fn a_case_survives_conversion_to_a_spec_and_back() {
    let case = read(CASE);
    let text = spec_of_case(&case).unwrap();
    let parsed = spec::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let back = case_of_spec(&parsed, &case.id, None).unwrap();
    assert_eq!(schedule(&back), schedule(&case), "{text}");
    assert_eq!(
        spec_of_case(&back).unwrap().lines().skip(1).collect::<Vec<_>>(),
        text.lines().skip(1).collect::<Vec<_>>()
    );
}

#[test]
fn a_case_survives_conversion_to_mysqltest_and_back() {
    let case = read(&format!("{CASE}\nexpect:\n  s1.3 waits\n  s1.3 error 1213\n"));
    let text = write_mtr(&case).unwrap();
    assert!(text.contains("send\nupdate t set v = 11 where id = 1;"), "{text}");
    let back = read_mtr(&text, &case.id).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(schedule(&back), schedule(&case), "{text}");
    assert_eq!(back.expectations[0].claims, case.expectations[0].claims);
}

#[test]
fn levels_survive_conversion_as_session_levels() {
    let levels =
        "case: x\nlevel s1: serializable\nlevel s2: read committed\n\ns1> begin;\ns2> begin;\n";
    let case = read(levels);
    let parsed = spec::parse(&spec_of_case(&case).unwrap()).unwrap();
    assert_eq!(case_of_spec(&parsed, "x", None).unwrap().session_levels, case.session_levels);
    let mtr = write_mtr(&case).unwrap();
    assert_eq!(read_mtr(&mtr, "x").unwrap().session_levels, case.session_levels, "{mtr}");
}

#[test]
fn a_replbug_script_becomes_a_case_that_survives_formatting() {
    let text = "create table t (a int);\ninsert into t values (1);\n\nconn_0> begin;\n\
                conn_1> update t\n        set a = 2;\n# look\nconn_0> select * from t;\n";
    let case = read_replbug(text, "bug 1").unwrap();
    assert_eq!(case.id, "bug-1");
    assert_eq!(read(&case::format(&case)), case);
}

#[test]
fn sql_scripts_mark_every_statement_with_its_session() {
    let text = write_sql(&read(CASE)).unwrap();
    assert!(text.contains("/* s1 */ begin;\n/* s2 */ begin;"), "{text}");
    let case = read("case: x\nlevel: serializable\n\ns1> begin;\n");
    let error = write_sql(&case).unwrap_err().in_text("case: x\nlevel: serializable\n");
    assert_eq!((error.line, error.column), (2, 1));
    let case = read("case: x\nengines: mysql\nlevel: serializable\n\ns1> begin;\n");
    assert!(write_sql(&case).unwrap().contains("set session transaction isolation level"));
}

#[test]
fn scripts_keep_anyway_steps_and_omit_steps_not_sent() {
    let text = "case: x\nengines: mysql\n\ns1> begin;\ns1> delete from t;\n\
                s1(anyway)> delete from u;\ns1> delete from v;\n\n\
                expect:\n  s1.2 error 1213\n  s1.4 not sent\n";
    let case = read(text);
    assert!(case.steps[2].anyway && !case.steps[3].anyway);
    assert_eq!(case::format(&case), text);
    let sql = write_sql(&case).unwrap();
    assert!(sql.contains("has ended or failed by now:\n/* s1 */ delete from u;"), "{sql}");
    let mtr = write_mtr(&case).unwrap();
    assert!(mtr.contains("delete from u;") && !mtr.contains("delete from v;"), "{mtr}");
    let again = read_mtr(&mtr, "x").unwrap();
    let anyway: Vec<&str> =
        again.steps.iter().filter(|s| s.anyway).map(|s| s.sql.as_str()).collect();
    assert_eq!(anyway, ["delete from u"]);
    let wrong = "case: x\n\ns1(anyhow)> begin;\n";
    assert_eq!(case::parse(wrong).unwrap_err().column, 4);
}

#[test]
fn unsupported_parts_of_a_case_are_refused_with_their_line() {
    let brace = "case: x\n\ns1> begin;\ns1> select '}';\n";
    assert_eq!(spec_of_case(&read(brace)).unwrap_err().in_text(brace).line, 4);
    let own = "case: x\n\nsetup:\n  select 1;\n\nsetup postgres:\n  select 2;\n\ns1> begin;\n";
    assert_eq!(spec_of_case(&read(own)).unwrap_err().in_text(own).line, 7);
    assert_eq!(write_mtr(&read(own)).unwrap_err().in_text(own).line, 7);
    let snapshot = "case: x\n\ns1(snapshot)> begin;\n";
    assert_eq!(write_mtr(&read(snapshot)).unwrap_err().in_text(snapshot).line, 3);
    for (text, line) in [
        ("session a step a1 {x}\nsession b step b1 {x}", 1),
        ("session a step a1 {x}\npermutation a1\npermutation a1", 3),
        ("session a step a1 {x}\nsession b step b1 {x}\npermutation a1(*) b1", 3),
        ("teardown {\nselect 1; }\nsession a step a1 {x}", 2),
    ] {
        let parsed = spec::parse(text).unwrap();
        let error = case_of_spec(&parsed, "x", None).unwrap_err().in_text(text);
        assert_eq!(error.line, line, "{text:?}: {error}");
    }
}

#[test]
fn a_spec_drops_referencing_tables_first() {
    let case = read(
        "case: x\n\nsetup:\n  create table a (i int primary key);\n  \
         create table b (i int references a);\n\ns1> begin;\n",
    );
    let written = spec_of_case(&case).unwrap();
    assert!(written.contains("drop table b;\n  drop table a;"), "{written}");
}

#[test]
fn a_spec_sets_levels_in_the_dialect_of_the_case() {
    let mysql = CASE
        .replace("title:", "engines: mariadb, mysql\nlevel: serializable\ntitle:")
        .replace("s1> begin;", "s1(read committed)> begin;");
    let written = spec_of_case(&read(&mysql)).unwrap();
    assert!(written.contains("setup { set session transaction isolation level serializable; }"));
    assert!(written.contains("{ set transaction isolation level read committed; begin; }"));
    let other = spec_of_case(&read(&mysql.replace("mariadb, mysql", "postgres"))).unwrap();
    assert!(other.contains("set session characteristics as transaction isolation level"));
    assert!(other.contains("{ begin isolation level read committed; }"), "{other}");
    let again = case_of_spec(&spec::parse(&written).unwrap(), "x", None).unwrap();
    assert_eq!(again.session_levels.len(), 2);
}

#[test]
fn a_missing_permutation_is_refused_with_their_number() {
    let parsed = spec::parse("session a\nstep x {select 1}\nsession b\nstep y {select 2}").unwrap();
    let error = case_of_spec(&parsed, "x", Some(3)).unwrap_err().in_text("session a");
    assert_eq!(error.message, "there is no permutation 3; there are 2");
}

/// Pieces that are keywords or syntax of one of the parsers.
fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "session",
        "step",
        "setup",
        "teardown",
        "permutation",
        "notices",
        " s1 ",
        "{",
        "}",
        "(",
        ")",
        "*",
        ",",
        "\"",
        "\n",
        " ",
        "#",
        "1",
        ";",
        "select 1;",
        "begin;",
        "commit;",
        "conn_0>",
        "conn_1> ",
        "--connection ",
        "connect (a,,,);",
        "--send ",
        "--reap\n",
        "--error 1\n",
        "'",
        "\"\"\"",
        "SETUP_SQL_SCRIPT = \"\"\"",
        "def get_scenarios",
        "{isolation_level}",
        "disconnect a;",
        "default",
        "größe",
        "\u{feff}",
        "\t",
        "\r\n",
        "--",
        "/*",
        "$x$",
        "}",
        "{ }",
        "drop table t;",
        "99999999999999999999",
    ]);
    prop::collection::vec(words, 0..40).prop_map(|v| v.concat())
}

fn check_all(text: &str) {
    let shows = |e: isolde_model::case::ParseError| {
        assert!(e.line >= 1 && e.column >= 1);
        let _ = e.to_string();
    };
    match spec::parse(text) {
        Ok(parsed) => {
            let written = spec::format(&parsed);
            assert_eq!(spec::parse(&written).as_ref(), Ok(&parsed), "{written}");
            for n in [None, Some(0), Some(1), Some(2)] {
                match case_of_spec(&parsed, "x", n) {
                    Ok(case) => write_all(&case, text),
                    Err(error) => shows(error.in_text(text)),
                }
            }
        }
        Err(error) => shows(error),
    }
    for read in [read_mtr, read_replbug] {
        match read(text, "x") {
            Ok(case) => {
                let written = case::format(&case);
                assert!(case::parse(&written).is_ok(), "{text:?}\n{written}");
                write_all(&case, text);
            }
            Err(error) => shows(error),
        }
    }
}

fn write_all(case: &Case, text: &str) {
    for write in [spec_of_case, write_mtr, write_sql] {
        if let Err(error) = write(case) {
            let _ = error.in_text(text).to_string();
        }
    }
    if let Ok(written) = spec_of_case(case) {
        assert!(spec::parse(&written).is_ok(), "{text:?}\n{written}");
    }
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn no_text_makes_a_script_parser_panic(text in any::<String>()) {
        check_all(&text);
    }

    #[test]
    fn no_mixture_of_keywords_makes_a_script_parser_panic(text in pieces()) {
        check_all(&text);
    }
}

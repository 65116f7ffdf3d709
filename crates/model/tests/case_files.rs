//! The case format: a malformed file is refused with a position, a well-formed
//! one survives a round trip.

#![allow(clippy::disallowed_methods)]

mod strategies;

use isolde_model::case;
use isolde_model::case::{Case, Claim, Expected, Setup, Statement, Step, Subject};
use proptest::prelude::*;
use std::path::Path;
use strategies::{level, rows, selector};

fn malformed() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/malformed");
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn two_hundred_malformed_cases_are_refused_each_with_a_position() {
    let files = malformed();
    assert!(files.len() >= 200, "{} files", files.len());
    let mut accepted = Vec::new();
    for (name, text) in &files {
        match case::parse(text) {
            Ok(_) => accepted.push(name),
            Err(error) => {
                let lines = text.lines().count().max(1);
                assert!((1..=lines).contains(&error.line), "{name}: line {}", error.line);
                let width = error.source_line.chars().count() + 1;
                assert!(
                    (1..=width.max(1)).contains(&error.column),
                    "{name}: column {}",
                    error.column
                );
                let shown = error.to_string();
                assert!(shown.ends_with('^') && shown.contains(&error.message), "{name}: {shown}");
            }
        }
    }
    assert!(accepted.is_empty(), "accepted: {accepted:?}");
}

#[test]
fn a_parse_error_shows_the_line_with_a_caret() {
    let error = case::parse("case: x\nlevel: sreializable\ns1> begin;\n").unwrap_err();
    let expected = "line 2, column 8: `sreializable` is not an isolation level; write read \
                    uncommitted, read committed, repeatable read, snapshot or serializable (or \
                    RU, RC, RR, SI, SER)\n  |\n2 | level: sreializable\n  |        ^";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_example_in_the_documentation_is_a_case_in_canonical_form() {
    let page = include_str!("../../../docs/case-format.md");
    let example = page.split("```").nth(1).unwrap().trim_start();
    let case = case::parse(example).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(case::format(&case), example);
}

#[test]
fn comments_of_a_case_keep_their_position() {
    let text = "case: x\n\nsetup:\n  create table t (a int);\n\n# why s1 goes first\ns1> begin;\ns1> commit;\n\n# at the end\n";
    let case = case::parse(text).unwrap();
    assert_eq!(case.steps[0].notes, ["why s1 goes first"]);
    assert_eq!(case::format(&case), text);
}

#[test]
fn a_statement_may_span_lines_that_are_indented() {
    let text = "case: x\n\ns1> select a,\n      b\n    from t;\n";
    let case = case::parse(text).unwrap();
    assert_eq!(case.steps[0].sql, "select a,\n  b\nfrom t");
    assert_eq!(case::format(&case), text);
}

fn sql() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("select * from t".to_string()),
        Just("begin".to_string()),
        Just("commit".to_string()),
        Just("insert into t values ('a;b', \"c\")".to_string()),
        Just("select 1 -- why\n, 2".to_string()),
        Just("select 1 -- and a remark".to_string()),
        "[a-z]{1,8} [a-z0-9=,() ]{0,20}[a-z0-9)]",
    ]
}

prop_compose! {
    fn any_case()(
        id in "[a-z][a-z0-9/_.-]{0,12}",
        title in "[A-Za-z][A-Za-z0-9 ,]{0,20}[a-z]",
        about in proptest::option::of("[A-Za-z][A-Za-z0-9 ,.]{0,40}\\."),
        setup in proptest::collection::vec(sql(), 0..4),
        setup_on in proptest::collection::vec(selector(), 0..3),
        steps in proptest::collection::vec((1..4u8, sql(), any::<bool>()), 1..8),
        level in proptest::option::of(level()),
        finals in proptest::collection::vec(sql(), 0..3),
        expect_on in proptest::collection::vec(selector(), 0..3),
        expect_at in proptest::collection::vec(level(), 0..3),
        rows in rows(),
    ) -> Case {
        let statement = |sql: String| Statement { sql, line: Default::default() };
        let mut case = Case { id, title, level, ..Case::default() };
        case.about = about.unwrap_or_default();
        if !setup.is_empty() {
            let statements = setup.into_iter().map(statement).collect();
            case.setups.push(Setup { on: setup_on, statements, notes: Vec::new() });
        }
        for (session, sql, anyway) in steps {
            let step = Step::plain(&format!("s{session}"), &sql, Default::default());
            case.steps.push(Step { anyway, ..step });
        }
        case.finals = finals.into_iter().map(statement).collect();
        let session = case.steps[0].session.clone();
        let claims = vec![
            Claim {
                subject: Subject::Step { session: session.clone(), nth: 1 },
                expected: Expected::Rows(rows.clone()),
            },
            Claim { subject: Subject::Session(session), expected: Expected::Commits },
            Claim { subject: Subject::Final(1), expected: Expected::Rows(rows) },
        ];
        case.expectations.push(isolde_model::case::Expectation {
            on: expect_on,
            levels: expect_at,
            claims,
            or: Vec::new(),
            notes: Vec::new(),
            line: Default::default(),
        });
        case
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_case_survives_formatting_and_parsing(case in any_case()) {
        let text = case::format(&case);
        let again = case::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&again, &case, "{}", text);
        prop_assert_eq!(case::format(&again), text);
    }

    #[test]
    fn no_text_makes_the_case_parser_panic(text in "(case: x\n)?([a-z0-9 :;>().,'\"#@/$*-]{0,30}\n){0,12}") {
        let _ = case::parse(&text);
    }

    #[test]
    fn no_bytes_make_the_case_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = case::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_damaged_case_is_parsed_or_refused_with_a_position(at in 0..400usize, what in "[ -~\n]{0,3}", cut in 0..5usize) {
        let good = include_str!("../../cli/cases/hermitage/otv.case");
        let at = at.min(good.len());
        let end = (at + cut).min(good.len());
        let damaged = format!("{}{what}{}", &good[..at], &good[end..]);
        if let Err(error) = case::parse(&damaged) {
            prop_assert!(error.line >= 1 && error.line <= damaged.lines().count().max(1));
        }
    }
}

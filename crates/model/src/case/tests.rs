//! Cases as text: what goes in comes out.

use super::{Case, format, parse};
use isolde_sql::dialect::Family;
use isolde_sql::{Control, Stmt};

const BUG: &str = "\
case: mysql/1
title: A title
reported: mysql 5.7.17, 8.0.11
engines: mysql
kind: bug
about:
  What it is about.
reporter:
  Expected: no wait.
  Seen: a wait.

s1> begin;
s1> select 1;

shows when:
  s1.2 waits

shows when at read committed, serializable:
  s1.2 error

expect mysql@9.7.4 at repeatable read:
  setup error 1064

expect mysql@8.0.33 at repeatable read:
  s1.2 counts 40
  final error 1146
";

#[test]
fn the_words_of_a_bug_round_trip() {
    let case = parse(BUG).unwrap();
    assert_eq!(format(&case), BUG);
    assert_eq!(case.shows_when.len(), 2);
    assert_eq!(case.reporter, "Expected: no wait.\nSeen: a wait.");
    assert_eq!(case.reported.as_deref(), Some("mysql 5.7.17, 8.0.11"));
}

#[test]
fn claims_about_a_setup_and_counts_are_checked() {
    for (claim, at) in [("setup ok", 9), ("s1.1 counts x", 15), ("final counts", 15)] {
        let text = format!("case: x\n\ns1> begin;\n\nshows when:\n  {claim}\n");
        let error = parse(&text).unwrap_err();
        assert_eq!((error.line, error.column), (6, at), "{claim}: {error}");
    }
}

#[test]
fn a_step_is_read_in_the_sql_of_the_engines_of_its_case() {
    let steps = "s1> insert into t values (1) on duplicate key update a = 2;\ns1> begin;\n";
    let of = |engines: &str| parse(&format!("case: x\n{engines}{steps}")).unwrap();
    let first = |case: &Case| case.steps[0].statement().is_some();
    assert!(first(&of("engines: mysql, tidb@8-\n")));
    assert!(!first(&of("engines: mysql, postgres\n")));
    let anywhere = of("");
    assert!(!first(&anywhere));
    assert_eq!(
        anywhere.steps[1].statement(),
        Some(&Stmt::Control(Control::Begin(Default::default())))
    );
    let there = anywhere.clone().read_as(Family::Mysql);
    assert!(first(&there));
    assert_eq!(there, anywhere, "what was read takes no part in comparisons");
}

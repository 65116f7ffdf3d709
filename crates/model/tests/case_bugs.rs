//! The parts of a case file that bug reports and recordings have: a well-formed
//! one survives a round trip, any other text is parsed or refused with its line.

mod strategies;

use isolde_model::case;
use isolde_model::case::{Case, CaseKind, Claim, Condition, Expectation, Step};
use isolde_model::recording;
use proptest::prelude::*;
use strategies::{claims, level, notes, selector};

prop_compose! {
    fn condition()(levels in proptest::collection::vec(level(), 0..3), claims in claims(), notes in notes()) -> Condition {
        Condition { levels, claims, notes }
    }
}

prop_compose! {
    fn expectation()(
        on in proptest::collection::vec(selector(), 0..3),
        levels in proptest::collection::vec(level(), 0..3),
        claims in claims(),
        or in proptest::collection::vec(claims(), 0..3),
        notes in notes(),
    ) -> Expectation {
        Expectation { on, levels, claims, or, notes, line: Default::default() }
    }
}

prop_compose! {
    /// A case with the parts that only bug reports and recordings have.
    fn any_bug()(
        reported in proptest::option::of("[a-z]{1,8} [0-9., ]{0,12}[0-9]"),
        rebuilt in proptest::option::of("from [a-z ,;()]{0,30}[a-z]"),
        reporter in proptest::collection::vec("[A-Z][A-Za-z0-9 :;>,.#']{0,40}\\.", 0..4),
        server_options in proptest::collection::vec("--[a-z][a-z0-9_-]{0,10}(=[A-Za-z0-9/:=,._-]{0,8})?", 0..4),
        kind in proptest::sample::select(CaseKind::ALL.to_vec()),
        shows_when in proptest::collection::vec(condition(), 0..4),
        expectations in proptest::collection::vec(expectation(), 0..4),
        trailing_notes in notes(),
    ) -> Case {
        let step = Step::plain("s1", "select 1", Default::default());
        Case {
            id: "x/1".into(),
            kind: Some(kind.1),
            reporter: reporter.join("\n"),
            steps: vec![step],
            reported,
            rebuilt,
            server_options,
            shows_when,
            expectations,
            trailing_notes,
            ..Case::default()
        }
    }
}

/// An error names an existing line, whatever the text.
fn read_or_refused(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = case::parse(text) {
        let lines = text.lines().count().max(1);
        prop_assert!((1..=lines).contains(&error.line), "line {} of {}", error.line, lines);
        prop_assert!(!error.message.is_empty() && error.to_string().ends_with('^'));
    }
    Ok(())
}

/// Lines that `isolde test` reads and writes, well formed and broken.
const WORDS: [&str; 34] = [
    "case: x/1",
    "reported: mysql 5.7",
    "reported:",
    "rebuilt: from the text",
    "rebuilt:",
    "server options: --a --b=c",
    "server options: a",
    "server options:",
    "reporter:",
    "  Expected: a wait.",
    "kind: fixed",
    "s1> select 1;",
    "s2(serializable)> begin;",
    "final:",
    "  select 1;",
    "shows when:",
    "shows when at read committed, SER:",
    "shows when at :",
    "shows when at",
    "possible when:",
    "expect:",
    "expect mysql@8.0 at RC:",
    "expect at RC:",
    "or:",
    "or: s1.1 ok",
    "or mysql:",
    "  s1.1 counts 3",
    "  s1.1 counts",
    "  setup error 1064",
    "  setup ok",
    "  final error 1146",
    "  final 2 counts 1",
    "# a remark",
    "",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_bug_report_survives_formatting_and_parsing(case in any_bug()) {
        let text = case::format(&case);
        let again = case::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&again, &case, "{}", text);
        prop_assert_eq!(case::format(&again), text);
    }

    #[test]
    fn bug_sections_in_any_order_are_parsed_or_refused_with_a_position(
        lines in proptest::collection::vec(proptest::sample::select(WORDS.to_vec()), 0..25),
        more in "[ -~é\n]{0,20}",
        at in 0..25usize,
    ) {
        let mut lines = lines;
        lines.insert(at.min(lines.len()), &more);
        let text = lines.join("\n");
        read_or_refused(&text)?;
        read_or_refused(&format!("case: x\ns1> select 1;\n{text}"))?;
        if let Ok(case) = case::parse(&text) {
            let formatted = case::format(&case);
            let again = case::parse(&formatted).map_err(|e| TestCaseError::fail(format!("{e}\n{formatted}")))?;
            prop_assert_eq!(case::format(&again), formatted);
        }
    }

    #[test]
    fn a_damaged_bug_report_is_parsed_or_refused_with_a_position(case in any_bug(), at in 0..2000usize, what in "[ -~\n]{0,3}", cut in 0..9usize) {
        let good = case::format(&case);
        let at = (at % (good.len() + 1)..).find(|i| good.is_char_boundary(*i)).unwrap_or(good.len());
        let end = (at + cut..).find(|i| *i >= good.len() || good.is_char_boundary(*i)).unwrap_or(at).min(good.len());
        read_or_refused(&format!("{}{what}{}", &good[..at], &good[end..]))?;
    }

    #[test]
    fn settled_outcomes_are_parts_of_the_recorded_runs(runs in proptest::collection::vec(claims(), 1..6)) {
        let outcomes = recording::settle(&runs);
        prop_assert!(!outcomes.is_empty() && outcomes.len() <= runs.len());
        // Equal runs settle to one outcome.
        let all_equal = vec![runs[0].clone(), runs[0].clone()];
        prop_assert_eq!(recording::settle(&all_equal), vec![runs[0].clone()]);
        let text = |o: &Vec<Claim>| o.iter().map(ToString::to_string).collect::<Vec<_>>();
        for outcome in &outcomes {
            let within = |run: &Vec<Claim>| text(outcome).iter().all(|c| text(run).contains(c));
            prop_assert!(runs.iter().any(within), "{outcome:?} is in no run");
        }
        let again = recording::united(&outcomes, outcomes.clone());
        prop_assert_eq!(again.iter().map(text).collect::<Vec<_>>(), outcomes.iter().map(text).collect::<Vec<_>>());
    }
}

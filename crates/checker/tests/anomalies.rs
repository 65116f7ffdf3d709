//! Every example in `docs/anomalies.md` shows what the page says about it.

use isolde_checker::{Class, History, Level, Verdict, check};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/anomalies.md");

struct Example {
    class: &'static str,
    breaks: Level,
    history: History,
}

fn examples() -> Vec<Example> {
    let classes = PAGE.split("\n## The classes\n").nth(1).unwrap();
    let classes = classes.split("\n## ").next().unwrap();
    classes
        .split("\n### ")
        .skip(1)
        .map(|section| {
            let class = section.lines().next().unwrap();
            let words = section.split_whitespace().collect::<Vec<_>>().join(" ");
            let level = words.split("reaks ").nth(1).expect("it breaks a level");
            let level = level.split([' ', '.']).next().unwrap();
            let lines: Vec<&str> =
                section.lines().filter_map(|line| line.strip_prefix("    ")).collect();
            Example {
                class,
                breaks: level.parse().unwrap_or_else(|e| panic!("{class}: {e}")),
                history: lines.join("\n").parse().unwrap_or_else(|e| panic!("{class}: {e}")),
            }
        })
        .collect()
}

#[test]
fn every_class_has_an_example_in_which_it_is_found() {
    let shown: BTreeSet<&str> = examples().iter().map(|example| example.class).collect();
    let all: BTreeSet<&str> = Class::ALL.iter().map(|class| class.name()).collect();
    assert_eq!(shown, all);
    for example in examples() {
        let report = check(&example.history);
        let found: Vec<String> = report.anomalies.iter().map(|anomaly| anomaly.name()).collect();
        assert!(found.iter().any(|name| name == example.class), "{}: {found:?}", example.class);
    }
}

#[test]
fn every_example_breaks_the_level_that_is_named_and_none_below() {
    for Example { class, breaks, history } in examples() {
        let report = check(&history);
        assert_eq!(report.verdict(breaks), Verdict::Violated, "{class} and {breaks}");
        for weaker in breaks.implies() {
            assert_eq!(report.verdict(*weaker), Verdict::Holds, "{class} and {weaker}");
        }
    }
}

#[test]
fn every_example_is_explained_by_sentences_about_its_transactions() {
    for Example { class, history, .. } in examples() {
        for anomaly in check(&history).anomalies {
            let sentences = anomaly.sentences(&history);
            assert!(!sentences.is_empty(), "{class}");
            assert!(
                sentences.iter().all(|sentence| sentence.contains('T')),
                "{class}: {sentences:?}"
            );
        }
    }
}

#[test]
fn serial_histories_satisfy_every_level() {
    for clean in [
        "T1: a(l,1) | T2: r(l,[1]) a(l,2) | T3: r(l,[1 2])",
        "T1: w(x,1) w(x,2) | T2: r(x,2)",
        "T1 aborted: w(x,1) | T2: r(x,nil)",
        "T1: r(x,nil) w(x,1) | T2: r(x,1) w(x,2)",
        "T1: r(x,nil) w(y,1) | T2: r(y,1) w(x,2)",
        "T1: p(P:) w(a,1) | T2: p(P: a=1) w(b,2) | P: a=1 b=2",
        "T1 @1-2: w(x,1) | T2 @5-6: r(x,1)",
        "s/T1: w(x,1) | s/T2: r(x,1) | s/T3: w(x,2)",
        "T1 unknown: w(x,1) | T2: r(x,1) | T3 unknown: w(x,2) | T4: r(x,1)",
    ] {
        let history: History = clean.parse().unwrap();
        let report = check(&history);
        assert!(report.anomalies.is_empty(), "{clean}: {:?}", report.anomalies);
        for level in Level::ALL {
            let verdict = report.verdict(level);
            assert!(
                verdict == Verdict::Holds || verdict == Verdict::NotApplicable,
                "{clean}: {level} {verdict}"
            );
        }
    }
}

#[test]
fn a_write_that_does_not_change_the_matches_is_no_phantom() {
    // b's new version does not satisfy P, nor did its initial one.
    let history: History = "T1: p(P:) w(a,1) | T2: p(P:) w(b,2) | P: a=1".parse().unwrap();
    assert_eq!(check(&history).verdict(Level::Serializable), Verdict::Holds);
}

#[test]
fn a_list_with_aborted_elements_is_a_g1a_and_no_incompatible_order() {
    let history: History = "T1: a(l,1) | T2 aborted: a(l,2) | T3: r(l,[1 2]) | T4: a(l,3) | \
         T5: r(l,[1 3]) | T6: r(l,[1])"
        .parse()
        .unwrap();
    let report = check(&history);
    let found: Vec<String> = report.anomalies.iter().map(|anomaly| anomaly.name()).collect();
    assert_eq!(found, ["G1a"]);
    assert_eq!(report.verdict(Level::ReadUncommitted), Verdict::Holds);
    assert_eq!(report.verdict(Level::ReadCommitted), Verdict::Violated);
}

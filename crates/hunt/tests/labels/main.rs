//! The proof of the rules: for each of them a run that it explains, taken from
//! a real engine, and that run falsified in every way of [`falsify`], of which
//! the rules must notice each.
//!
//! The cases also have the label that a hunt would give them. The tests print
//! a confusion matrix: the label that a run should have, against the one that
//! it got.

mod bench;
mod cases;
mod falsify;
mod matrix;
mod open;
mod planted;
#[path = "../../../engines/tests/support/mod.rs"]
mod support;

use bench::{Bench, Shown};
use cases::{Labelled, Where};
use falsify::{Change, falsified};
use isolde_core::Level;
use isolde_core::semantics::rules::{Rule, dolt, duckdb, innodb, postgres, sqlite, tidb};
use isolde_hunt::cause::Label;
use matrix::Matrix;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[test]
fn sqlite_with_a_rollback_journal() {
    // That a COMMIT waits for readers is taken as it comes.
    let lacks = [&["S3", "S4"], SHARED_CACHE].concat();
    prove("sqlite", cases::sqlite::CASES, sqlite::RULES, &lacks);
}

#[test]
fn sqlite_with_a_write_ahead_log() {
    let lacks = [&["S4"], SHARED_CACHE].concat();
    prove("sqlite+wal", cases::sqlite::CASES, sqlite::RULES, &lacks);
}

const SHARED_CACHE: &[&str] = &["S12", "S13", "S14"];

#[test]
fn sqlite_with_a_shared_cache() {
    let rules = sqlite::RULES.iter().copied();
    let rules: Vec<_> = rules.filter(|r| SHARED_CACHE.contains(&r.id)).collect();
    prove("sqlite+shared-cache", cases::shared_cache::CASES, &rules, &[]);
}

/// It has a test of its own.
const SERIAL_ORDER: &[&str] = &["P9"];

#[test]
fn postgres_of_this_machine() {
    prove("postgres", cases::postgres::CASES, postgres::RULES, SERIAL_ORDER);
}

#[test]
fn postgres_that_was_fetched() {
    for target in support::FETCHED.iter().filter(|t| t.starts_with("postgres")) {
        prove(target, cases::postgres::CASES, postgres::RULES, SERIAL_ORDER);
    }
}

#[test]
fn mariadb_of_this_machine() {
    prove("mariadb", cases::innodb::CASES, innodb::RULES, &["I10", "M2"]);
}

#[test]
fn mysql_and_mariadb_that_were_fetched() {
    for target in support::FETCHED.iter().filter(|t| !t.starts_with("postgres")) {
        let lacks: &[&str] = match *target {
            // Under snapshot isolation every view is told by the rule of the first
            // read, and updates are not semi-consistent.
            "mariadb@11.8" => &["I7", "I10", "I14"],
            // No NOWAIT, by which a lock is told.
            "mysql@5.7" | "mariadb@10.2" => &["M2", "I11"],
            _ => &["M2"],
        };
        prove(target, cases::innodb::CASES, innodb::RULES, lacks);
    }
}

#[test]
fn dolt_that_was_fetched() {
    prove("dolt", cases::dolt::CASES, dolt::RULES, &[]);
}

#[test]
fn tidb_that_was_fetched() {
    prove("tidb", cases::tidb::CASES, tidb::RULES, &[]);
}

#[test]
fn duckdb_that_was_fetched() {
    prove("duckdb", cases::duckdb::CASES, duckdb::RULES, &[]);
}

/// The rule of a serial order is broken where every statement is as it should
/// be, but not all of them together: write skew, which REPEATABLE READ allows.
#[test]
fn write_skew_of_postgres_has_no_serial_order() {
    let Some(mut bench) = Bench::open("postgres") else { return };
    let is_skew = |c: &&Labelled| c.name.starts_with("two transactions each write");
    let skew = cases::postgres::CASES.iter().find(is_skew).unwrap();
    let mut run = bench.run(skew).unwrap();
    assert!(matches!(bench.explain(&run, &run.history), Shown::Inside(_)));
    let mut reading = run.fixture.reading.as_deref().unwrap().clone();
    reading.levels.fill(Level::Serializable);
    run.fixture.reading = Some(Arc::new(reading));
    let shown = bench.explain(&run, &run.history);
    assert!(matches!(shown, Shown::Outside { rule: None, .. }), "{shown:?}");
}

/// Runs all cases of an engine, looks for the rules and the label that each
/// names, falsifies each, and asks whether no rule was left out.
fn prove(target: &str, cases: &[Labelled], rules: &[&'static Rule], lacks: &[&str]) {
    let Some(mut bench) = Bench::open(target) else { return };
    let mut matrix = Matrix::default();
    let mut shown: BTreeSet<&str> = BTreeSet::new();
    let mut noticed: BTreeSet<&str> = BTreeSet::new();
    let mut wrong: Vec<String> = Vec::new();
    let mut sound = BTreeMap::new();
    for labelled in cases {
        let Some(run) = bench.run(labelled) else { continue };
        let name = labelled.name;
        sound.insert(name, run.history.clone());
        let label = bench.label(&run);
        matrix.add("documented", label.name());
        let explanation = bench.explain(&run, &run.history);
        let Shown::Inside(used) = &explanation else {
            wrong.push(format!("{name}: {explanation:?}\n{}", run.transcript()));
            continue;
        };
        if label != Label::Documented {
            wrong.push(format!("{name}: labelled {}", label.name()));
        }
        for (rule, place) in labelled.shows {
            let found = match place {
                Where::Step(label) => used[run.step(label)].contains(rule),
                Where::SomeStep => used.iter().any(|used| used.contains(rule)),
                Where::Order => bench.order_rule(&run) == Some(*rule),
            };
            match found {
                true => drop(shown.insert(rule)),
                false => wrong.push(format!(
                    "{name}: {rule} does not explain {place:?}, but {used:?}\n{}",
                    run.transcript()
                )),
            }
        }
        for false_run in falsified(&run.history) {
            let why_open = open::why(&run, labelled, &false_run);
            let judged = bench.explain(&run, &false_run.history);
            let what = || format!("{name}: {}", false_run.what(&run.history));
            match judged {
                Shown::Outside { step, rule } => {
                    matrix.add("bug", "bug");
                    let at_its_place = step == false_run.step;
                    if !at_its_place
                        && why_open.is_none()
                        && !false_run.may_show_elsewhere(&run.history)
                    {
                        wrong.push(format!("{}: noticed only at {step:?}", what()));
                    }
                    noticed.extend(rule.as_deref().and_then(|r| known(rules, r)));
                    noticed.extend(labelled.breaks.iter().filter_map(|(rule, place, change)| {
                        let here = match place {
                            Where::Step(label) => false_run.step == Some(run.step(label)),
                            Where::SomeStep | Where::Order => true,
                        };
                        (here && *change == false_run.change).then_some(*rule)
                    }));
                    if let (true, Some(step), Some(rule)) = (at_its_place, step, rule.as_deref()) {
                        // Whatever keeps a statement waiting may be named for a
                        // wait; all else breaks a rule that explained it.
                        let waits =
                            matches!(false_run.change, Change::WaitAdded | Change::WaitRemoved);
                        if !waits && !used[step].contains(&rule) {
                            let used = &used[step];
                            wrong.push(format!("{}: {rule} was named, not of {used:?}", what()));
                        }
                    }
                    if let (true, Some(step)) = (at_its_place, step) {
                        noticed.extend(used[step].iter().filter_map(|r| known(rules, r)));
                    }
                }
                Shown::Inside(_) | Shown::NotModelled(_) if why_open.is_some() => {
                    matrix.left_open(why_open.unwrap_or_default());
                }
                Shown::Inside(_) => {
                    matrix.add("bug", "documented");
                    wrong.push(format!("{}: not noticed\n{}", what(), run.transcript()));
                }
                Shown::NotModelled(why) => {
                    matrix.add("bug", "undecided");
                    wrong.push(format!("{}: not modelled: {why}", what()));
                }
            }
        }
    }
    planted::label_all(&bench, cases, &sound, &mut matrix, &mut wrong);
    println!("{target} {}\n{matrix}", bench.version());
    let ids = || rules.iter().map(|r| r.id).filter(|id| !lacks.contains(id));
    let unshown: Vec<&str> = ids().filter(|id| !shown.contains(id)).collect();
    let unbroken: Vec<&str> = ids().filter(|id| !noticed.contains(id)).collect();
    assert!(wrong.is_empty(), "{target}: {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(unshown.is_empty(), "{target}: no case shows {unshown:?}");
    assert!(unbroken.is_empty(), "{target}: no falsified run breaks {unbroken:?}");
}

fn known(rules: &[&'static Rule], id: &str) -> Option<&'static str> {
    rules.iter().map(|r| r.id).find(|known| *known == id)
}

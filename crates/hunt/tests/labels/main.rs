//! Evidence for the rules: for each rule a run on a real engine that it explains,
//! and that run falsified in every way of [`falsify`]. The rules must reject
//! every falsified run.
//!
//! Each run also gets the label that a hunt gives it. The tests print a confusion
//! matrix: the expected label against the assigned one.

mod bench;
mod cases;
mod falsify;
mod matrix;
mod open;
mod planted;
use bench::{Bench, Shown};
use cases::{Labelled, Where};
use falsify::{Change, falsified};
use isolde_catalog::Rule;
use isolde_catalog::engines::{dolt, duckdb, innodb, postgres, sqlite, tidb};
use isolde_hunt::cause::Verdict;
use isolde_model::Level;
use isolde_testing::servers;
use matrix::Matrix;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[test]
fn rules_explain_sqlite_with_a_rollback_journal() {
    // The rules accept a COMMIT that waits for readers, and one that does not.
    let lacks = [&["S3", "S4"], SHARED_CACHE].concat();
    prove("sqlite", cases::sqlite::CASES, sqlite::RULES, &lacks);
}

#[test]
fn rules_explain_sqlite_with_a_write_ahead_log() {
    let lacks = [&["S4"], SHARED_CACHE].concat();
    prove("sqlite+wal", cases::sqlite::CASES, sqlite::RULES, &lacks);
}

const SHARED_CACHE: &[&str] = &["S12", "S13", "S14"];

#[test]
fn rules_explain_sqlite_with_a_shared_cache() {
    let rules = sqlite::RULES.iter().copied();
    let rules: Vec<_> = rules.filter(|r| SHARED_CACHE.contains(&r.id)).collect();
    prove("sqlite+shared-cache", cases::shared_cache::CASES, &rules, &[]);
}

/// These rules have their own tests.
const SERIAL_ORDER: &[&str] = &["P9", "P18", "P20"];

/// The rules of gap locks and SKIP LOCKED have tests of their own, and old versions lack NOWAIT.
const TESTED_ELSEWHERE: &[&str] = &["I12", "I30", "I31"];

#[test]
fn rules_explain_the_installed_postgres() {
    prove("postgres", cases::postgres::CASES, postgres::RULES, SERIAL_ORDER);
}

#[test]
fn rules_explain_fetched_postgres() {
    for target in servers::FETCHED.iter().filter(|t| t.starts_with("postgres")) {
        prove(target, cases::postgres::CASES, postgres::RULES, SERIAL_ORDER);
    }
}

#[test]
fn rules_explain_the_installed_mariadb() {
    prove(
        "mariadb",
        cases::innodb::CASES,
        innodb::RULES,
        &[&["I10", "M2"], TESTED_ELSEWHERE].concat(),
    );
}

#[test]
fn rules_explain_fetched_mysql_and_mariadb() {
    for target in servers::FETCHED.iter().filter(|t| !t.starts_with("postgres")) {
        let lacks: &[&str] = match *target {
            // Under snapshot isolation the rule of the first read explains every read
            // view, and updates are not semi-consistent.
            "mariadb@11.8" => &["I7", "I10", "I11", "I14"],
            // There is no NOWAIT, which would reveal a lock.
            "mysql@5.7" | "mariadb@10.2" => &["M2", "I11"],
            _ => &["M2"],
        };
        let lacks = [lacks, TESTED_ELSEWHERE].concat();
        prove(target, cases::innodb::CASES, innodb::RULES, &lacks);
    }
}

#[test]
fn rules_explain_fetched_dolt() {
    prove("dolt", cases::dolt::CASES, dolt::RULES, &[]);
}

#[test]
fn rules_explain_fetched_tidb() {
    prove("tidb", cases::tidb::CASES, tidb::RULES, &[]);
}

#[test]
fn rules_explain_fetched_duckdb() {
    prove("duckdb", cases::duckdb::CASES, duckdb::RULES, &[]);
}

/// The rule of the serial order breaks although every single statement obeys the
/// rules: write skew, which REPEATABLE READ allows.
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

/// Runs all cases of an engine, compares rules and label of each run with the
/// expected ones, falsifies each run, and asserts that every rule was shown and
/// broken.
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
        if !matches!(label, Verdict::Documented | Verdict::Consistent) {
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
            let locking = matches!(judged, Shown::Locking { .. });
            let judged = match judged {
                Shown::Locking { step, rule } => {
                    Shown::Outside { step: Some(step), rule: Some(rule) }
                }
                other => other,
            };
            match judged {
                Shown::Outside { step, rule } => {
                    matrix.add("bug", if locking { "locking" } else { "bug" });
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
                        // For a wait any rule about locks may be named; any other
                        // change breaks a rule that explained the step.
                        let waits =
                            matches!(false_run.change, Change::WaitAdded | Change::WaitRemoved);
                        // A read that creates no read view cites I8 instead of the rule by
                        // which it would read.
                        let stands_for = rule == "I1" && used[step].contains(&"I8");
                        if !waits && !locking && !stands_for && !used[step].contains(&rule) {
                            let used = &used[step];
                            wrong.push(format!("{}: {rule} was named, not of {used:?}", what()));
                        }
                    }
                    if let (true, Some(step)) = (at_its_place, step) {
                        noticed.extend(used[step].iter().filter_map(|r| known(rules, r)));
                    }
                }
                Shown::Locking { .. } => unreachable!("it is treated as a breach"),
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

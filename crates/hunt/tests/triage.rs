//! Triage on a real engine: findings of two planted faults are two groups,
//! and a case of the library lends its name to what fails in its way only.

use isolde_core::case;
use isolde_core::generate::{Dialect, Generator, Options};
use isolde_core::oracle::USUAL;
use isolde_core::triage::Features;
use isolde_engines::engine::Engine;
use isolde_engines::fault::{self, Planted};
use isolde_engines::runner::Runner;
use isolde_engines::sqlite::{Mode, Sqlite};
use isolde_hunt::cause::Label;
use isolde_hunt::executor::Executor;
use isolde_hunt::finding::Finding;
use isolde_hunt::hunter::Hunter;
use isolde_hunt::known::KnownBugs;
use isolde_hunt::report::grouped;
use isolde_hunt::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};

/// What a fault makes the rules say, of so many findings.
fn findings(name: &str, wanted: usize, known: &KnownBugs) -> Vec<Finding> {
    let plain: Box<dyn Engine> =
        Box::new(Sqlite::private(Mode::RollbackJournal, "sqlite").unwrap());
    let info = plain.info().clone();
    let level = plain.profile().default_level;
    let fault = fault::find(name).unwrap();
    let engine = fault::plant(plain, Planted { fault, rate: 1.0, seed: 7 });
    let dialect = Dialect::for_engine(&info.engine, &info.version);
    let generator = Generator::new(dialect, 7, Options::new(vec![level], level));
    let mut hunter = Hunter {
        executor: Executor::new(Runner::new(engine)),
        generator: &generator,
        oracles: USUAL,
        known,
        stop: &|| false,
        trials: 40,
        seen: BTreeMap::new(),
    };
    let mut found = Vec::new();
    // One of each three: they share their transactions.
    for number in (0..3000).step_by(3) {
        let examined = hunter.examine(&generator.plan(number), &mut Tally::default()).unwrap();
        let bugs = examined.evidence.into_iter().map(|e| e.finding);
        found.extend(bugs.filter(|f| f.cause.label == Label::Bug));
        if found.len() >= wanted {
            return found;
        }
    }
    panic!("{name} was found {} times", found.len());
}

const SWALLOWED: &str = "case: sqlite/swallowed\ntitle: An error is swallowed\nengines: sqlite\n\
    kind: bug\n\nsetup:\n  create table t (a int primary key);\n\n\
    s1> begin;\ns2> insert into t values (1);\ns1> insert into t values (1);\ns1> commit;\n\n\
    shows when:\n  s1.2 affects 1\n";

#[test]
fn two_faults_are_two_groups_and_only_what_fails_alike_is_named() {
    let known = || KnownBugs::of([case::parse(SWALLOWED).unwrap()]);
    let swallowed = findings("error-swallowed", 4, &known());
    let skipped = findings("row-skipped", 4, &known());
    let defects = |all: &[Finding]| -> BTreeSet<String> {
        all.iter().map(|f| f.defect().to_string()).collect()
    };
    let (one, other) = (defects(&swallowed), defects(&skipped));
    assert!(one.is_disjoint(&other), "{one:?} {other:?}");
    let all: Vec<Finding> = swallowed.iter().chain(&skipped).cloned().collect();
    let groups = grouped(&all, &|_| false);
    let large = groups.iter().filter(|g| g.findings.len() > 1).count();
    assert!(
        large >= 2 && groups.len() <= 5,
        "{:?}",
        groups.iter().map(|g| g.reason).collect::<Vec<_>>()
    );
    let turned: Vec<Finding> = all.iter().rev().cloned().collect();
    let reasons = |groups: &[isolde_hunt::report::Group<'_>]| -> BTreeSet<(String, usize)> {
        groups.iter().map(|g| (g.reason.to_string(), g.findings.len())).collect()
    };
    assert_eq!(reasons(&groups), reasons(&grouped(&turned, &|_| false)));
    let named = swallowed.iter().filter(|f| f.known == ["sqlite/swallowed"]).count();
    assert!(named >= 2, "{named} of {}: {one:#?}", swallowed.len());
    assert!(skipped.iter().all(|f| f.known.is_empty()), "named by what it is not");
    let with = |f: &&Finding| f.features.as_ref().is_some_and(|f| *f != Features::default());
    assert_eq!(all.iter().filter(with).count(), all.len());
}

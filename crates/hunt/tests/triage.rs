//! Triage on a real engine: findings of two planted faults form two groups, and a
//! case of the library gives its name only to findings that fail like it.

use isolde_engines::engine::Engine;
use isolde_engines::fault::{self, Planted};
use isolde_engines::runner::Runner;
use isolde_engines::sqlite::{Mode, Sqlite};
use isolde_generator::{Generator, Options};
use isolde_hunt::cause::Verdict;
use isolde_hunt::executor::Executor;
use isolde_hunt::finding::Finding;
use isolde_hunt::hunter::Hunter;
use isolde_hunt::known::KnownBugs;
use isolde_hunt::report::group_by_defect;
use isolde_hunt::tally::Tally;
use isolde_model::case;
use isolde_oracles::DEFAULT_ORACLES;
use isolde_sql::Dialect;
use isolde_triage::Features;
use std::collections::{BTreeMap, BTreeSet};

/// The first findings of a hunt with a planted fault.
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
        oracles: DEFAULT_ORACLES,
        known,
        stop: &|| false,
        trials: 40,
        similar: BTreeMap::new(),
    };
    let mut found = Vec::new();
    // One plan of three, because three share their transactions.
    for number in (0..3000).step_by(3) {
        let examined = hunter.examine(&generator.plan(number), &mut Tally::default()).unwrap();
        let bugs = examined.evidence.into_iter().map(|e| e.finding);
        found.extend(bugs.filter(|f| f.cause.label == Verdict::Bug));
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
fn findings_of_two_faults_form_two_groups_and_a_known_bug_names_its_own() {
    let known = || KnownBugs::of([case::parse(SWALLOWED).unwrap()]);
    let swallowed = findings("error-swallowed", 4, &known());
    let skipped = findings("row-skipped", 4, &known());
    let defects = |all: &[Finding]| -> BTreeSet<String> {
        all.iter().map(|f| f.defect().to_string()).collect()
    };
    let (one, other) = (defects(&swallowed), defects(&skipped));
    assert!(one.is_disjoint(&other), "{one:?} {other:?}");
    let all: Vec<Finding> = swallowed.iter().chain(&skipped).cloned().collect();
    let groups = group_by_defect(&all, &|_| false);
    let large = groups.iter().filter(|g| g.findings.len() > 1).count();
    assert!(
        large >= 2 && groups.len() <= 5,
        "{:?}",
        groups.iter().map(|g| &g.reason).collect::<Vec<_>>()
    );
    let turned: Vec<Finding> = all.iter().rev().cloned().collect();
    let reasons = |groups: &[isolde_hunt::report::Group<'_>]| -> BTreeSet<(String, usize)> {
        groups.iter().map(|g| (g.reason.to_string(), g.findings.len())).collect()
    };
    assert_eq!(reasons(&groups), reasons(&group_by_defect(&turned, &|_| false)));
    let named = swallowed.iter().filter(|f| f.known == ["sqlite/swallowed"]).count();
    assert!(named >= 2, "{named} of {}: {one:#?}", swallowed.len());
    assert!(skipped.iter().all(|f| f.known.is_empty()), "named by what it is not");
    let with = |f: &&Finding| f.features.as_ref().is_some_and(|f| *f != Features::default());
    assert_eq!(all.iter().filter(with).count(), all.len());
}

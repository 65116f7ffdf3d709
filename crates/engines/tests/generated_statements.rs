//! Generated statements are valid SQL of their engine: nearly every one succeeds,
//! or fails for a reason that concurrency or a constraint may cause.

use isolde_engines::runner::{RunError, Runner};
use isolde_generator::{Generator, Options};
use isolde_model::history::{ErrorClass, EventKind};
use isolde_model::value::compare_rows;
use isolde_model::{History, Level};
use isolde_sql::{Dialect, Feature};
use isolde_testing::cases::{self, repeats};
use isolde_testing::servers::{FETCHED, open};
use std::collections::BTreeMap;

const SEED: u64 = 7;

/// How often a feature appeared, and how often it succeeded.
#[derive(Default)]
struct Tally {
    sent: usize,
    invalid: usize,
    features: BTreeMap<Feature, (usize, usize)>,
    /// Error texts with one statement each.
    complaints: BTreeMap<String, (usize, String)>,
}

impl Tally {
    fn complain(&mut self, error: &str, sql: &str) {
        self.invalid += 1;
        let digits = |c: char| !c.is_ascii_digit();
        let kind: String = error.chars().filter(|c| digits(*c)).take(60).collect();
        self.complaints.entry(kind).or_insert((0, format!("{error}\n    {sql}"))).0 += 1;
    }

    fn share(&self) -> f64 {
        100.0 * (self.sent - self.invalid) as f64 / self.sent.max(1) as f64
    }
}

fn generator(runner: &Runner) -> Generator {
    let (info, profile) = (runner.engine.info(), runner.engine.profile());
    let dialect = Dialect::for_engine(&info.engine, &info.version);
    let levels: Vec<Level> = profile.level_names();
    let mut options = Options::new(levels, profile.default_level);
    // On TiDB a schema change waits, invisibly, for transactions that the case
    // ends only later, so each one takes the runner's whole time limit.
    options.ddl = !info.engine.starts_with("tidb");
    options.prepared = true;
    Generator::new(dialect, SEED, options)
}

/// Whether the engine rejected the statement as invalid, and not because of
/// another transaction or a constraint.
fn makes_no_sense(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Rejected | ErrorClass::Other | ErrorClass::Internal)
}

fn run_one(runner: &mut Runner, generator: &Generator, number: u64, tally: &mut Tally) {
    let plan = generator.plan(number);
    let case = plan.to_case();
    let history = match runner.run(&case, None) {
        Ok(history) => history,
        Err(RunError::Setup { sql, error, .. }) => {
            tally.sent += case.steps.len();
            tally.invalid += case.steps.len() - 1;
            tally.complain(&format!("in the setup: {error}"), &sql);
            return;
        }
        Err(error) => panic!("{}: {error}", runner.engine.info().target),
    };
    for (step, features) in plan.features().into_iter().enumerate() {
        let reply = history.outcome(step).reply;
        match reply {
            None | Some(EventKind::NotSent { .. }) => continue,
            Some(EventKind::Error(error)) if makes_no_sense(error.class) => {
                tally.complain(&error.to_string(), &case.steps[step].sql);
            }
            _ => {}
        }
        tally.sent += 1;
        let succeeded = reply.is_some_and(|r| r.error().is_none());
        for feature in features {
            let counts = tally.features.entry(feature).or_default();
            counts.0 += 1;
            counts.1 += usize::from(succeeded);
        }
    }
    for rows in &history.final_state {
        assert!(rows.error.is_none(), "{}: {:?}", rows.query, rows.error);
    }
}

fn nearly_all_statements_make_sense(target: &str, cases: usize) {
    let Some(mut runner) = open(target) else { return };
    let generator = generator(&runner);
    let mut tally = Tally::default();
    // Few cases of many blocks: schemas differ more than transactions do.
    for number in 0..cases as u64 {
        run_one(&mut runner, &generator, number * 10, &mut tally);
    }
    let succeeded = |f: &Feature| tally.features.get(f).is_some_and(|counts| counts.1 > 0);
    let ran: Vec<Feature> = tally.features.keys().copied().collect();
    let failed = names(ran.into_iter().filter(|f| !succeeded(f)));
    println!(
        "{target}: {cases} cases, {} statements, {:.2}% make sense; never succeeded: {}",
        tally.sent,
        tally.share(),
        if failed.is_empty() { "none" } else { &failed }
    );
    for (count, example) in tally.complaints.values() {
        println!("  {count} times {example}");
    }
    assert!(tally.share() >= 90.0, "{target}: only {:.2}% make sense", tally.share());
    let absent = names(never_generated(&generator).into_iter());
    assert!(absent.is_empty(), "{target}: claimed, but never generated: {absent}");
}

fn names(features: impl Iterator<Item = Feature>) -> String {
    features.map(Feature::name).collect::<Vec<_>>().join(", ")
}

/// Features that the dialect claims and no case has. Searches more cases than
/// are run, since some features are rare.
fn never_generated(generator: &Generator) -> Vec<Feature> {
    let mut missing: Vec<Feature> = generator.features().iter().collect();
    for number in 0..1500 {
        let found = generator.plan(number * 10).features();
        missing.retain(|feature| !found.iter().flatten().any(|f| f == feature));
    }
    missing
}

/// The outcome of a step, with its rows sorted.
fn outcome(history: &History, step: usize) -> String {
    match history.outcome(step).reply {
        Some(EventKind::Rows { rows, .. }) => {
            let mut rows = rows.clone();
            rows.sort_by(|a, b| compare_rows(a, b));
            format!("{rows:?}")
        }
        Some(EventKind::Error(error)) => format!("{:?}", error.class),
        other => format!("{other:?}"),
    }
}

/// Runs the transactions serially from the same rows stored in another order. An
/// engine may visit rows in any order, so the results must not change.
fn the_order_of_rows_changes_nothing(target: &str, cases: usize) {
    let Some(mut runner) = open(target) else { return };
    let generator = generator(&runner);
    let mut compared = 0;
    for number in 0..cases as u64 {
        let mut plan = generator.plan(number * 6 + 1);
        plan.schedule.sort_unstable();
        let mut turned = plan.clone();
        turned.rows.iter_mut().for_each(|rows| rows.reverse());
        let case = plan.to_case();
        let one = cases::run(&mut runner, &case, None);
        let other = cases::run(&mut runner, &turned.to_case(), None);
        for step in 0..case.steps.len() {
            let (a, b) = (outcome(&one, step), outcome(&other, step));
            let text = isolde_model::case::format(&case);
            assert_eq!(a, b, "{target}: {}\n{text}", case.steps[step].sql);
            compared += 1;
        }
        assert_eq!(one.final_state.len(), other.final_state.len(), "{target}");
        for (a, b) in one.final_state.iter().zip(&other.final_state) {
            let text = isolde_model::case::format(&case);
            assert_eq!(a.rows, b.rows, "{target}: {}\n{text}", a.query);
        }
    }
    assert!(compared > cases, "{target}: only {compared} statements were compared");
}

fn cases(usual: usize) -> usize {
    repeats("ISOLDE_GENERATED", usual)
}

#[test]
fn sqlite_accepts_generated_statements() {
    nearly_all_statements_make_sense("sqlite", cases(200));
}

#[test]
fn postgres_accepts_generated_statements() {
    nearly_all_statements_make_sense("postgres", cases(150));
}

#[test]
fn mariadb_accepts_generated_statements() {
    nearly_all_statements_make_sense("mariadb", cases(150));
}

#[test]
fn generated_statements_do_not_depend_on_the_order_of_rows() {
    the_order_of_rows_changes_nothing("sqlite", cases(120));
    the_order_of_rows_changes_nothing("postgres", cases(60));
    the_order_of_rows_changes_nothing("mariadb", cases(60));
}

#[test]
fn fetched_servers_accept_generated_statements() {
    let chosen = std::env::var("ISOLDE_GENERATED_ON").unwrap_or_default();
    let others = [
        "sqlite+wal",
        "tidb@8.5",
        "tidb@6.6",
        "tidb+optimistic@8.5",
        "dolt",
        "turso@0.8.3",
        "turso+mvcc@0.8.3",
        "turso@0.1.5",
        "duckdb",
    ];
    for target in FETCHED.into_iter().chain(others) {
        if target.contains(&chosen) {
            nearly_all_statements_make_sense(target, cases(20));
        }
    }
}

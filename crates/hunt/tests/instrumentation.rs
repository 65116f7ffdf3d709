//! Instrumentation changes nothing: generated cases with it and without, on real engines,
//! come to the same outcomes, the same waits and the same ends.

#[path = "../../engines/tests/support/mod.rs"]
mod support;

use isolde_core::generate::{Generator, Options, Plan};
use isolde_core::history::{History, What};
use isolde_core::instrument::{Instrument, Means, Probe, ToldCase};
use isolde_core::semantics::Reading;
use isolde_core::sql::dialect::Family;
use isolde_core::sql::{Feature, Stmt, Table};
use isolde_core::value::{Row, same_multiset};
use isolde_core::{Case, Level, Value};
use isolde_hunt::executor::{Executor, Fixture};

/// What came of a step: its answer, or how often it waited.
#[derive(Debug)]
enum Outcome {
    Rows(Vec<Row>),
    Count(u64),
    Failed(String),
    Waited,
    NotSent,
}

impl Outcome {
    fn same(&self, other: &Outcome) -> bool {
        match (self, other) {
            (Outcome::Rows(a), Outcome::Rows(b)) => same_multiset(a, b),
            (Outcome::Count(a), Outcome::Count(b)) => a == b,
            (Outcome::Failed(a), Outcome::Failed(b)) => a == b,
            (Outcome::Waited, Outcome::Waited) | (Outcome::NotSent, Outcome::NotSent) => true,
            _ => false,
        }
    }
}

/// The outcomes of each step, as a run without instrumentation shows them.
fn plain(history: &History, steps: usize) -> Vec<Vec<Outcome>> {
    let mut all: Vec<Vec<Outcome>> = (0..steps).map(|_| Vec::new()).collect();
    for event in &history.events {
        let Some(step) = event.step else { continue };
        all[step].extend(outcome(&event.what, |rows| Outcome::Rows(rows.to_vec())));
    }
    all
}

fn outcome(what: &What, rows_mean: impl Fn(&[Row]) -> Outcome) -> Option<Outcome> {
    match what {
        What::Rows { rows, .. } => Some(rows_mean(rows)),
        What::Affected { count } => Some(Outcome::Count(*count)),
        What::Error(error) => Some(Outcome::Failed(error.code.clone())),
        What::Waiting { .. } => Some(Outcome::Waited),
        What::NotSent { .. } => Some(Outcome::NotSent),
        _ => None,
    }
}

/// The same of a run with it: what was added is taken away again.
fn instrumented(told: &ToldCase, history: &History, case: &Case) -> Vec<Vec<Outcome>> {
    let mut all: Vec<Vec<Outcome>> = (0..case.steps.len()).map(|_| Vec::new()).collect();
    for event in &history.events {
        let Some(step) = event.step else { continue };
        let (Some(original), probe) = told.step(step) else { continue };
        let looks_first =
            step + 1 < told.case.steps.len() && told.step(step + 1).0 == Some(original);
        let rows_mean = |rows: &[Row]| match probe {
            Probe::Read { own_columns, .. } => {
                let set_operation = matches!(case.steps[original].statement(),
                    Some(Stmt::Select(select)) if select.set_operation.is_some());
                // Below the rows of a set operation stands what its sides read.
                let own = |row: &&Row| {
                    !set_operation || row[*own_columns..].iter().all(|cell| *cell == Value::Null)
                };
                Outcome::Rows(rows.iter().filter(own).map(|r| r[..*own_columns].to_vec()).collect())
            }
            Probe::Rows { own_columns: 0, .. } => Outcome::Count(rows.len() as u64),
            _ => Outcome::Rows(rows.to_vec()),
        };
        let found = outcome(&event.what, rows_mean);
        // A look before the statement waits and fails for it.
        let found =
            found.filter(|o| !looks_first || matches!(o, Outcome::Waited | Outcome::Failed(_)));
        let repeated = matches!(
            (&found, all[original].last()),
            (Some(Outcome::NotSent), Some(Outcome::Failed(_) | Outcome::NotSent))
        );
        all[original].extend(found.filter(|_| !repeated));
    }
    all
}

/// Whether a case has what is documented to behave otherwise.
fn is_fit(plan: &Plan, means: &Means) -> bool {
    // An index that has all columns of a query has not all that the query then asks for:
    // InnoDB comes to the rows by another way, and locks what it meets there.
    let one_way = |t: &Table| t.indexes.is_empty() && t.unique.is_empty();
    if means.family == Family::Mysql && !plan.schema.tables.iter().all(one_way) {
        return false;
    }
    plan.statements().all(|statement| match statement {
        // Counted twice by MySQL's family: once for the row that goes.
        Stmt::Insert(insert) => !matches!(insert.conflict, isolde_core::sql::Conflict::Replace),
        // What is looked for before a DELETE that waits may be seen a moment earlier.
        Stmt::Delete(_) => means.returns_deleted,
        _ => true,
    })
}

/// Runs of a case whose outcomes differ, each with instrumentation and without.
const RUNS: usize = 6;

fn first_difference(a: &[Vec<Outcome>], b: &[Vec<Outcome>]) -> Option<usize> {
    a.iter()
        .zip(b)
        .position(|(a, b)| a.len() != b.len() || !a.iter().zip(b).all(|(a, b)| a.same(b)))
}

/// At most `tolerated` of a hundred cases may differ.
fn compare(target: &str, levels: &[Level], wanted: usize, tolerated: usize) {
    let Some(runner) = support::open(target) else { return };
    let mut executor = Executor::new(runner);
    let info = executor.runner.engine.info().clone();
    let mut dialect = info.dialect();
    // Nobody follows what their actions do.
    dialect.features = dialect.features.without(Feature::ForeignKeyAction);
    let (engine, version) = info.understood_as();
    let means = Means::of(engine, version);
    let mut options = Options::new(levels.to_vec(), levels[0]);
    options.own_levels = false;
    let generator = Generator::new(dialect, 77, options);
    let (mut compared, mut differ) = (0, Vec::new());
    for number in 0.. {
        if compared == wanted {
            break;
        }
        let plan = generator.plan(number * 3);
        if !is_fit(&plan, &means) {
            continue;
        }
        let (case, reading) = (plan.to_case(), Reading::of_plan(&plan));
        let mut instrument = Instrument::new(plan.schema.clone(), plan.dialect, means);
        let told_plan = instrument.plan(&plan);
        let told = instrument.case(&case, &reading.operations);
        let own = Fixture {
            create: told_plan.create_sql(),
            reset: told_plan.reset_sql(),
            ..Fixture::of(&plan)
        };
        // Two sessions that one COMMIT lets go on race: what comes of that differs from run to
        // run, with instrumentation and without.
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let mut same = false;
        for _ in 0..RUNS {
            let before = executor.run(&Fixture::of(&plan), &case).expect("tables");
            without.push(plain(&before, case.steps.len()));
            let after = executor.run(&own, &told.case).expect("the same tables with more columns");
            with.push(instrumented(&told, &after, &case));
            same = without.iter().any(|a| with.iter().any(|b| first_difference(a, b).is_none()));
            if same {
                break;
            }
        }
        compared += 1;
        if !same && let Some(step) = first_difference(&without[0], &with[0]) {
            let level = plan.level.map_or("", Level::name);
            let (a, b) = (&without[0][step], &with[0][step]);
            let sql = &case.steps[step].sql;
            let text = format!("case {number} at {level}, {sql}:\n  {a:?}\n  {b:?}\n");
            differ.push(text + &isolde_core::case::format(&case));
        }
    }
    let (count, told) = (differ.len(), differ.join("\n"));
    println!("{target}: {count} of {compared} differ");
    assert!(count * 100 <= compared * tolerated, "{target}: {count} of {compared} differ: {told}");
}

#[test]
fn on_sqlite_nothing_changes() {
    compare("sqlite", &[Level::Serializable], 400, 0);
}

#[test]
fn on_postgres_nothing_changes() {
    let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    compare("postgres", &levels, 300, 0);
}

#[test]
fn on_mariadb_nothing_changes_but_a_choice_of_the_optimizer() {
    let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    // Wider rows may make the optimizer scan where it looked up, and InnoDB locks what it scans.
    compare("mariadb", &levels, 300, 1);
}

//! Instrumentation changes nothing: generated cases with and without it, on real engines, have
//! the same results, the same lock waits and the same ends of transactions.

use isolde_generator::{Generator, Options, Plan};
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::history::{EventKind, History};
use isolde_model::parsed_case::ParsedCase;
use isolde_model::value::{Row, same_multiset};
use isolde_model::{Case, Level};
use isolde_oracles::instrument::{EngineCapabilities, Instrument, InstrumentedCase, Probe};
use isolde_sql::dialect::Family;
use isolde_sql::{Stmt, Table, Write};
use isolde_testing::servers;

/// The outcome of a step: its result or a lock wait.
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

fn outcome(what: &EventKind, rows_mean: impl Fn(&[Row]) -> Outcome) -> Option<Outcome> {
    match what {
        EventKind::Rows { rows, .. } => Some(rows_mean(rows)),
        EventKind::Affected { count } => Some(Outcome::Count(*count)),
        EventKind::Error(error) => Some(Outcome::Failed(error.code.clone())),
        EventKind::Waiting { .. } => Some(Outcome::Waited),
        EventKind::NotSent { .. } => Some(Outcome::NotSent),
        _ => None,
    }
}

/// The outcomes of each step of an instrumented run, without the instrumentation.
fn instrumented(
    instrumented_case: &InstrumentedCase,
    history: &History,
    case: &Case,
) -> Vec<Vec<Outcome>> {
    let mut all: Vec<Vec<Outcome>> = (0..case.steps.len()).map(|_| Vec::new()).collect();
    for event in &history.events {
        let Some(step) = event.step else { continue };
        let (Some(original), probe) = instrumented_case.step(step) else { continue };
        let looks_first = step + 1 < instrumented_case.case.steps.len()
            && instrumented_case.step(step + 1).0 == Some(original);
        let rows_mean = |rows: &[Row]| match probe {
            Probe::Rows { own_columns: 0, .. } => Outcome::Count(rows.len() as u64),
            _ => Outcome::Rows(rows.iter().filter_map(|row| probe.own_row(row)).collect()),
        };
        let found = outcome(&event.what, rows_mean);
        // A probe before the statement waits and fails in its place.
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

/// Whether a case has no statement that is documented to behave otherwise.
fn is_fit(plan: &Plan, capabilities: &EngineCapabilities) -> bool {
    // An index that covers a query does not cover the instrumented query: InnoDB then reads the
    // rows by another index and locks the rows of that one. A foreign key has an index.
    let one_way =
        |t: &Table| t.indexes.is_empty() && t.unique.is_empty() && t.foreign_keys.is_empty();
    if capabilities.family == Family::Mysql && !plan.schema.tables.iter().all(one_way) {
        return false;
    }
    plan.statements().all(|statement| match statement {
        // MySQL's family counts a replaced row twice.
        Stmt::Write(Write::Insert(insert)) => {
            !matches!(insert.conflict, isolde_sql::Conflict::Replace)
        }
        // The probe before a blocked DELETE may read a slightly earlier state.
        Stmt::Write(Write::Delete(_)) => capabilities.returns_deleted,
        _ => true,
    })
}

/// How often a case whose outcomes differ is run, with and without instrumentation.
const RUNS: usize = 6;

fn first_difference(a: &[Vec<Outcome>], b: &[Vec<Outcome>]) -> Option<usize> {
    a.iter()
        .zip(b)
        .position(|(a, b)| a.len() != b.len() || !a.iter().zip(b).all(|(a, b)| a.same(b)))
}

/// Compares cases until `wanted` were compared; at most `tolerated` percent may differ.
fn compare(target: &str, levels: &[Level], wanted: usize, tolerated: usize) {
    let Some(runner) = servers::open(target) else { return };
    let mut executor = Executor::new(runner);
    let info = executor.runner.engine.info().clone();
    let dialect = info.dialect();
    let capabilities = info.capabilities();
    let mut options = Options::new(levels.to_vec(), levels[0]);
    options.own_levels = false;
    let generator = Generator::new(dialect, 77, options);
    let (mut compared, mut differ) = (0, Vec::new());
    for number in 0.. {
        if compared == wanted {
            break;
        }
        let plan = generator.plan(number * 3);
        if !is_fit(&plan, &capabilities) {
            continue;
        }
        let (case, reading) = (plan.to_case(), ParsedCase::from(&plan));
        let mut instrument = Instrument::new(plan.schema.clone(), plan.dialect, capabilities);
        let instrumented_plan = plan.on_fixture(instrument.fixture(&plan.fixture()));
        let instrumented_case = instrument.case(&case, &reading.operations);
        let own = Fixture {
            create: instrumented_plan.create_sql(),
            reset: instrumented_plan.reset_sql(),
            ..Fixture::of(&plan)
        };
        // Two sessions that one COMMIT unblocks race: the outcome varies from run to run, with
        // and without instrumentation.
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let mut same = false;
        for _ in 0..RUNS {
            let before = executor.run(&Fixture::of(&plan), &case).expect("tables");
            without.push(plain(&before, case.steps.len()));
            let after = executor
                .run(&own, &instrumented_case.case)
                .expect("the same tables with more columns");
            with.push(instrumented(&instrumented_case, &after, &case));
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
            differ.push(text + &isolde_model::case::format(&case));
        }
    }
    let (count, instrumented_case) = (differ.len(), differ.join("\n"));
    println!("{target}: {count} of {compared} differ");
    assert!(
        count * 100 <= compared * tolerated,
        "{target}: {count} of {compared} differ: {instrumented_case}"
    );
}

#[test]
fn instrumentation_changes_nothing_on_sqlite() {
    compare("sqlite", &[Level::Serializable], 400, 0);
}

#[test]
fn instrumentation_changes_nothing_on_postgres() {
    let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    compare("postgres", &levels, 300, 0);
}

#[test]
fn instrumentation_changes_only_optimizer_choices_on_mariadb() {
    let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    // Wider rows may make the optimizer scan instead of an index lookup, and InnoDB locks the
    // scanned rows.
    compare("mariadb", &levels, 300, 1);
}

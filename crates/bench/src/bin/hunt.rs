//! How fast a hunt is: cases with all checks on, compared with a bare client that
//! sends the same statements (tables, resets and final reads included) in the
//! order in which they finished, without waiting, watching or judging.

use isolde_bench::open;
use isolde_bench::timed::Timed;
use isolde_catalog::CurrentReadScope;
use isolde_engines::engine::{Engine, Session, TxStatus};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_hunt::check::check;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::history::{EventKind, TxEnd};
use isolde_model::parsed_case::ParsedCase;
use isolde_model::profile::Waiting;
use isolde_model::{Case, History, Level, case};
use isolde_oracles::instrument::Instrument;
use isolde_oracles::{DEFAULT_ORACLES, Oracle};
use isolde_sql as sql;
use std::time::{Duration, Instant};

const SEED: u64 = 1;

/// Everything that Isolde knows to start; what is not here is named and passed
/// by.
const TARGETS: [&str; 13] = [
    "sqlite",
    "sqlite+wal",
    "postgres",
    "mariadb",
    "mysql@5.7",
    "mysql@8.0.33",
    "mysql@9.7",
    "tidb",
    "tidb+optimistic",
    "dolt",
    "duckdb",
    "turso",
    "turso+mvcc",
];

/// How long the bare client stays with a statement that waits.
const WAITED: Duration = Duration::from_millis(50);

/// A slow engine gets fewer cases rather than more time.
const LONGEST: Duration = Duration::from_secs(20);

struct Order {
    session: String,
    level: Option<Level>,
    sql: String,
}

struct Open {
    key: (String, Option<Level>),
    session: Box<dyn Session>,
    idle: bool,
}

/// What was sent for one case: its tables if they were made, and its runs.
struct Sent {
    create: Option<Vec<String>>,
    reset: Vec<String>,
    runs: Vec<Vec<Order>>,
    finals: Vec<String>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let cases: u64 = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(600);
    let named: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let targets = if named.is_empty() { TARGETS.to_vec() } else { named };
    println!(
        "up to {cases} cases or {} s, all oracles, one worker, seed {SEED}",
        LONGEST.as_secs()
    );
    println!(
        "{:15} {:>9} {:>14} {:>9} {:>14} {:>16}",
        "", "cases/s", "statements/s", "bare/s", "statements/s", "Isolde to bare"
    );
    for name in targets {
        let Some(engine) = open(name) else { continue };
        let (engine, spent) = Timed::new(engine);
        let info = engine.info().clone();
        let levels = engine.profile().level_names();
        let options = Options::new(levels, engine.profile().default_level);
        let dialect = info.dialect();
        let generator = Generator::new(dialect, SEED, options);
        let mut executor = Executor::new(Runner::new(Box::new(engine)));
        let (sent, ours) = hunt(&mut executor, &generator, cases);
        let shares = spent.shares(ours);
        let parts = parts(&mut executor, &generator, sent.len() as u64);
        let statements: usize = sent.iter().map(statements_of).sum();
        let bare = bare_client(executor.runner.engine.as_mut(), &sent);
        let rate = |n: usize, time: Duration| n as f64 / time.as_secs_f64();
        println!(
            "{name:15} {:>9.0} {:>14.0} {:>9.0} {:>14.0} {:>15.2}x",
            rate(sent.len(), ours),
            rate(statements, ours),
            rate(sent.len(), bare),
            rate(statements, bare),
            bare.as_secs_f64() / ours.as_secs_f64(),
        );
        let since = Instant::now();
        println!("    {shares}");
        println!("    {parts}");
        println!("    {}", instrumentation(&mut executor, &generator, sent.len() as u64));
        let cases = sent.len() as u64;
        let length: usize =
            (0..cases).map(|n| case::format(&generator.plan(n).to_case()).len()).sum();
        let each = since.elapsed().as_secs_f64() * 1e6 / cases as f64;
        println!(
            "    making and writing down a case of {} characters: {each:.0} us",
            length as u64 / cases.max(1)
        );
    }
}

/// The cost per case of the rules and the other oracles, compared with the two serial replays
/// of write-serial states: each set alone, less the run that all of them need.
fn parts(executor: &mut Executor, generator: &Generator, cases: u64) -> String {
    let [bare, rules, replays] = timed(
        executor,
        generator,
        cases,
        [&[], &[Oracle::Semantics], &[Oracle::TxWss, Oracle::StmtWss]],
    );
    // They create tables of their own, which adds cost to the next run.
    let others = [&[][..], &[Oracle::Topological], &[Oracle::Merged]];
    let [base, topological, merged] = timed(executor, generator, cases, others);
    let each = |time: Duration, base: Duration| {
        time.saturating_sub(base).as_secs_f64() * 1e6 / cases.max(1) as f64
    };
    let (rules, replays) = (each(rules, bare), each(replays, bare));
    let alone = |time: Duration| cases as f64 / time.as_secs_f64();
    format!(
        "the rules cost {rules:.0} us a case, the two serial replays {replays:.0} us: {:.2}x\n    \
         topological alone: {:.0} cases/s, {:.2}x of the replays; merged alone: {:.0} cases/s, {:.2}x",
        rules / replays,
        alone(topological),
        each(topological, base) / replays,
        alone(merged),
        each(merged, base) / replays,
    )
}

/// How long the cases take with each set of oracles, one after the other.
fn timed(
    executor: &mut Executor,
    generator: &Generator,
    cases: u64,
    sets: [&[Oracle]; 3],
) -> [Duration; 3] {
    let mut times = [Duration::ZERO; 3];
    for number in 0..cases {
        let plan = generator.plan(number);
        let (fixture, case) = (Fixture::of(&plan), plan.to_case());
        for (oracles, time) in sets.iter().zip(&mut times) {
            let since = Instant::now();
            // What cannot be run costs every set the same.
            let _ = check(executor, &fixture, &case, oracles);
            *time += since.elapsed();
        }
    }
    times
}

/// The cost of instrumentation: the same cases uninstrumented, on instrumented tables, and with
/// version-set reads before each statement.
fn instrumentation(executor: &mut Executor, generator: &Generator, cases: u64) -> String {
    let info = executor.runner.engine.info().clone();
    let capabilities = info.capabilities();
    let mut times = [Duration::ZERO; 3];
    let mut steps = [0; 3];
    for number in 0..cases {
        let plan = generator.plan(number);
        let (plain, case) = (Fixture::of(&plan), plan.to_case());
        let operations = ParsedCase::from(&plan).operations;
        let mut instrument = Instrument::new(plan.schema.clone(), plan.dialect, capabilities);
        let instrumented_plan = plan.on_fixture(instrument.fixture(&plan.fixture()));
        let instrumented_fixture = Fixture {
            create: instrumented_plan.create_sql(),
            reset: instrumented_plan.reset_sql(),
            ..Fixture::of(&plan)
        };
        let instrumented = instrument.case(&case, &operations).case;
        let probed = instrument
            .case_with_views(&case, &operations, &vec![CurrentReadScope::Nothing; operations.len()])
            .case;
        for (n, (fixture, case)) in [
            (&plain, &case),
            (&instrumented_fixture, &instrumented),
            (&instrumented_fixture, &probed),
        ]
        .into_iter()
        .enumerate()
        {
            // The first run makes the tables, which is not what is measured.
            if executor.run(fixture, case).is_err() {
                continue;
            }
            let since = Instant::now();
            let _ = executor.run(fixture, case);
            times[n] += since.elapsed();
            steps[n] += case.steps.len();
        }
    }
    let times_as_long = |n: usize| times[n].as_secs_f64() / times[0].as_secs_f64();
    format!(
        "instrumented tables: {:.2}x the statements in {:.2}x the time; with version-set reads \
         {:.2}x in {:.2}x",
        steps[1] as f64 / steps[0] as f64,
        times_as_long(1),
        steps[2] as f64 / steps[0] as f64,
        times_as_long(2),
    )
}

fn statements_of(sent: &Sent) -> usize {
    let runs: usize =
        sent.runs.iter().map(|r| r.len() + sent.reset.len() + sent.finals.len()).sum();
    runs + sent.create.as_ref().map_or(0, Vec::len)
}

fn hunt(executor: &mut Executor, generator: &Generator, cases: u64) -> (Vec<Sent>, Duration) {
    let mut all = Vec::new();
    let mut time = Duration::ZERO;
    let mut made: Option<Vec<String>> = None;
    for number in 0..cases {
        if time > LONGEST {
            break;
        }
        let since = Instant::now();
        let plan = generator.plan(number);
        let (fixture, case) = (Fixture::of(&plan), plan.to_case());
        let checked = check(executor, &fixture, &case, DEFAULT_ORACLES);
        time += since.elapsed();
        let Ok(checked) = checked else { continue };
        if let Some(why) = checked.unknown {
            println!("    case {number} is unknown: {why}");
        }
        let create = (made.as_ref() != Some(&fixture.create)).then(|| fixture.create.clone());
        made = Some(fixture.create);
        let runs = std::iter::once((&case, &checked.concurrent))
            .chain(checked.replays.iter().map(|(replay, history)| (&replay.case, history)))
            .map(|(case, history)| finished(case, history))
            .collect();
        all.push(Sent { create, reset: fixture.reset, runs, finals: plan.final_sql() });
    }
    (all, time)
}

/// What finished, in that order. A statement that waited and then failed has
/// no place in which it would not wait: there is only the end of its
/// transaction, if it came to that.
fn finished(case: &Case, history: &History) -> Vec<Order> {
    let mut orders = Vec::new();
    for event in &history.events {
        let level = case.session_level(&event.session, None);
        let mut push = |sql: &str| {
            orders.push(Order { session: event.session.clone(), level, sql: sql.into() });
        };
        match (&event.what, event.step) {
            (EventKind::Error(_), Some(step)) if history.outcome(step).waited => {}
            (
                EventKind::Rows { .. }
                | EventKind::Affected { .. }
                | EventKind::Done
                | EventKind::Error(_),
                Some(step),
            ) => push(&history.steps[step].sql),
            (EventKind::Ended { how: TxEnd::Aborted, .. }, _)
            | (EventKind::RolledBackByRunner { .. }, _) => {
                push("rollback");
            }
            _ => {}
        }
    }
    orders
}

fn bare_client(engine: &mut dyn Engine, all: &[Sent]) -> Duration {
    // What only answers late on an engine where nothing waits is no wait.
    let patience = match engine.profile().waiting {
        Waiting::Probe | Waiting::Timeout => WAITED,
        Waiting::Retry | Waiting::Never => Duration::from_secs(30),
    };
    let mut sessions: Vec<Open> = Vec::new();
    let mut blocked = 0;
    engine.clear().expect("an empty database");
    let since = Instant::now();
    for sent in all {
        if let Some(create) = &sent.create {
            engine.clear().expect("an empty database");
            engine.batch(create).expect("tables");
        }
        for run in &sent.runs {
            engine.batch(&sent.reset).expect("rows");
            for order in run {
                let key = (order.session.clone(), order.level);
                let place = sessions.iter().position(|o| o.key == key).unwrap_or_else(|| {
                    let session = open_at(engine, order.level);
                    sessions.push(Open { key, session, idle: true });
                    sessions.len() - 1
                });
                let Open { session, idle, .. } = &mut sessions[place];
                session.start(&order.sql);
                match session.reply(patience) {
                    Some(reply) => *idle = reply.tx == Some(TxStatus::Idle),
                    None => {
                        blocked += 1;
                        engine.cancel(session.id()).expect("a cancel");
                        session.reply(Duration::from_secs(10)).expect("an answer");
                        sessions.remove(place);
                    }
                }
            }
            for open in sessions.iter_mut().filter(|o| !o.idle) {
                open.session.start("rollback");
                open.session.reply(Duration::from_secs(10)).expect("an answer");
                open.idle = true;
            }
            if run.iter().any(|o| sql::taints_session(&o.sql)) {
                sessions.clear();
            }
            for query in &sent.finals {
                engine.control(query).expect("rows");
            }
        }
    }
    let time = since.elapsed();
    if blocked > 0 {
        println!("    ({blocked} statements of the bare client waited, 50 ms each)");
    }
    time.saturating_sub(WAITED * blocked)
}

fn open_at(engine: &mut dyn Engine, level: Option<Level>) -> Box<dyn Session> {
    let mut session = engine.open().expect("a session");
    for sql in level.map(|l| engine.level_sql(l)).unwrap_or_default() {
        session.start(&sql);
        session.reply(Duration::from_secs(10)).expect("an answer");
    }
    session
}

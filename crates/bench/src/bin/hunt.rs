//! How fast a hunt is: cases with all checks on, beside a bare client that
//! sends the same statements (tables, resets and final reads included) in the
//! order in which they finished, without waiting, watching or judging.

use isolde_bench::open;
use isolde_core::History;
use isolde_core::generate::{Dialect, Generator, Options};
use isolde_core::history::What;
use isolde_core::oracle::ORACLES;
use isolde_engines::engine::{Engine, Session};
use isolde_engines::runner::Runner;
use isolde_hunt::bed::{Bed, Ground};
use isolde_hunt::check::check;
use std::time::{Duration, Instant};

const SEED: u64 = 1;

/// What was sent for one case: its tables if they were made, and its runs.
struct Sent {
    create: Option<Vec<String>>,
    reset: Vec<String>,
    runs: Vec<Vec<(String, String)>>,
    finals: Vec<String>,
}

fn main() {
    let cases: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(600);
    println!("{cases} cases, all oracles, one worker, seed {SEED}");
    println!(
        "{:10} {:>9} {:>14} {:>9} {:>14} {:>16}",
        "", "cases/s", "statements/s", "bare/s", "statements/s", "Isolde to bare"
    );
    for name in ["sqlite", "sqlite+wal", "postgres", "mariadb"] {
        let Some(engine) = open(name) else { continue };
        let info = engine.info().clone();
        let levels = engine.profile().level_names();
        let options = Options::new(levels, engine.profile().default_level);
        let dialect = Dialect::for_engine(&info.engine, &info.version);
        let generator = Generator::new(dialect, SEED, options);
        let mut bed = Bed::new(Runner::new(engine));
        let (sent, ours) = hunt(&mut bed, &generator, cases);
        let statements: usize = sent.iter().map(statements_of).sum();
        let bare = bare_client(bed.runner.engine.as_mut(), &sent);
        let rate = |n: usize, time: Duration| n as f64 / time.as_secs_f64();
        println!(
            "{name:10} {:>9.0} {:>14.0} {:>9.0} {:>14.0} {:>15.2}x",
            rate(sent.len(), ours),
            rate(statements, ours),
            rate(sent.len(), bare),
            rate(statements, bare),
            bare.as_secs_f64() / ours.as_secs_f64(),
        );
    }
}

fn statements_of(sent: &Sent) -> usize {
    let runs: usize =
        sent.runs.iter().map(|r| r.len() + sent.reset.len() + sent.finals.len()).sum();
    runs + sent.create.as_ref().map_or(0, Vec::len)
}

fn hunt(bed: &mut Bed, generator: &Generator, cases: u64) -> (Vec<Sent>, Duration) {
    let mut all = Vec::new();
    let mut time = Duration::ZERO;
    let mut made: Option<Vec<String>> = None;
    for number in 0..cases {
        let since = Instant::now();
        let plan = generator.plan(number);
        let (ground, case) = (Ground::of(&plan), plan.to_case());
        let Ok(checked) = check(bed, &ground, &case, ORACLES) else { continue };
        time += since.elapsed();
        let create = (made.as_ref() != Some(&ground.create)).then(|| ground.create.clone());
        made = Some(ground.create);
        let runs = std::iter::once(&checked.concurrent)
            .chain(checked.replays.iter().map(|(_, history)| history))
            .map(finished)
            .collect();
        all.push(Sent { create, reset: ground.reset, runs, finals: plan.final_sql() });
    }
    (all, time)
}

/// What finished, in that order. A statement that waited and then failed has
/// no place in which it would not wait.
fn finished(history: &History) -> Vec<(String, String)> {
    history
        .actual_schedule()
        .into_iter()
        .filter(|step| {
            let outcome = history.outcome(*step);
            !(outcome.waited && matches!(outcome.reply, Some(What::Error(_))))
        })
        .map(|step| (history.steps[step].session.clone(), history.steps[step].sql.clone()))
        .collect()
}

fn bare_client(engine: &mut dyn Engine, all: &[Sent]) -> Duration {
    let mut sessions: Vec<(String, Box<dyn Session>)> = Vec::new();
    engine.clear().expect("an empty database");
    let since = Instant::now();
    for sent in all {
        if let Some(create) = &sent.create {
            engine.clear().expect("an empty database");
            engine.batch(create).expect("tables");
        }
        for run in &sent.runs {
            engine.batch(&sent.reset).expect("rows");
            for (name, sql) in run {
                let place = sessions.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
                    sessions.push((name.clone(), engine.open().expect("a session")));
                    sessions.len() - 1
                });
                let session = &mut sessions[place].1;
                session.start(sql);
                if session.reply(Duration::from_millis(50)).is_none() {
                    let id = session.id();
                    engine.cancel(id).expect("a cancel");
                    session.reply(Duration::from_secs(10)).expect("an answer");
                }
            }
            for (_, session) in &mut sessions {
                session.start("rollback");
                session.reply(Duration::from_secs(10)).expect("an answer");
            }
            for query in &sent.finals {
                engine.control(query).expect("rows");
            }
        }
    }
    since.elapsed()
}

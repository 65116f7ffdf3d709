//! The cost of the runner: a case through it, compared with the same statements sent
//! by a bare loop over the same kind of connections.

use isolde_bench::{case, open};
use isolde_engines::engine::{Engine, Session};
use isolde_engines::runner::Runner;
use isolde_model::case::Case;
use std::time::{Duration, Instant};

// No two transactions overlap: SQLite would make one of them wait.
const CASE: &str = "case: overhead
setup:
  create table t (id int primary key, v int);
  create table u (id int primary key, v int);
  insert into t values (1, 10), (2, 20), (3, 30), (4, 40);
  insert into u values (1, 10), (2, 20), (3, 30), (4, 40);

s1> begin;
s1> select * from t where id = 1;
s1> update t set v = v + 1 where id = 1;
s1> commit;
s2> begin;
s2> select * from u where v > 10;
s2> update u set v = v + 1 where id = 2;
s2> update t set v = v - 1 where id = 3;
s2> commit;
s1> begin;
s1> select count(*) from u;
s1> update u set v = v + 1 where id = 4;
s1> commit;

final:
  select * from t;
  select * from u;
";

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(400);
    let case = case(CASE);
    println!(
        "one case of {} statements and {} final reads, {rounds} times, in alternation",
        case.steps.len(),
        case.finals.len()
    );
    println!("{:12} {:>14} {:>14} {:>8}", "", "Isolde, us", "bare, us", "ratio");
    for name in ["sqlite", "sqlite+wal", "postgres", "mariadb"] {
        let Some(engine) = open(name) else { continue };
        let (ours, bare) = compare(engine, &case, rounds);
        let micros = |d: Duration| d.as_secs_f64() * 1e6;
        println!(
            "{name:12} {:>14.1} {:>14.1} {:>8.2}",
            micros(ours),
            micros(bare),
            ours.as_secs_f64() / bare.as_secs_f64()
        );
    }
}

/// Medians of both, measured in alternation so that noise hits both alike.
fn compare(engine: Box<dyn Engine>, case: &Case, rounds: usize) -> (Duration, Duration) {
    let mut runner = Runner::new(engine);
    runner.run(case, None).expect("the case runs");
    let mut sessions: Vec<Box<dyn Session>> =
        case.sessions().iter().map(|_| runner.engine.open().expect("a session")).collect();
    let names: Vec<String> = case.sessions().iter().map(ToString::to_string).collect();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let since = Instant::now();
        runner.run_steps(case, None).expect("the case runs");
        ours.push(since.elapsed());
        let since = Instant::now();
        for step in &case.steps {
            let session = names.iter().position(|n| *n == step.session).expect("a session");
            sessions[session].start(&step.sql);
            sessions[session].reply(Duration::from_secs(10)).expect("an answer");
        }
        for query in &case.finals {
            runner.engine.control(&query.sql).expect("an answer");
        }
        bare.push(since.elapsed());
    }
    (median(ours), median(bare))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

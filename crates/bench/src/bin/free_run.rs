//! The cost of a free run: its transactions per second, compared with the same
//! transactions sent by bare clients, one thread per client, in the same run.

use isolde_bench::open;
use isolde_engines::engine::{Engine, Session};
use isolde_engines::free_run::{FreeRun, OnAbort, Statements, Stop};
use isolde_engines::runner::Runner;
use std::time::{Duration, Instant};

/// Parts of the time, measured in alternation so that noise hits both alike.
const ROUNDS: u32 = 10;

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(4.0);
    let time = Duration::from_secs_f64(seconds) / ROUNDS;
    println!(
        "transactions of 4 statements, each session on a row of its own, {seconds} s each way"
    );
    println!(
        "{:12} {:>8} {:>16} {:>14} {:>8}",
        "", "sessions", "free run, tx/s", "bare, tx/s", "ratio"
    );
    // SQLite has one writer at a time: more sessions would measure its lock.
    for (name, sessions) in [("sqlite", 1), ("sqlite+wal", 1), ("postgres", 4), ("mariadb", 4)] {
        let Some(engine) = open(name) else { continue };
        let (ours, bare) = compare(engine, sessions, time);
        println!("{name:12} {sessions:>8} {ours:>16.0} {bare:>14.0} {:>8.2}", ours / bare);
    }
}

fn transaction(session: usize) -> Statements {
    let row = session + 1;
    let texts = [
        "begin".to_string(),
        format!("select * from t where id = {row}"),
        format!("update t set v = v + 1 where id = {row}"),
        "commit".to_string(),
    ];
    texts.into()
}

fn compare(engine: Box<dyn Engine>, sessions: usize, time: Duration) -> (f64, f64) {
    let mut runner = Runner::new(engine);
    runner.clear().expect("an empty database");
    for sql in [
        "create table t (id int primary key, v int)",
        "insert into t values (1, 0), (2, 0), (3, 0), (4, 0)",
    ] {
        runner.engine.control(sql).expect("a table");
    }
    let all: Vec<Statements> = (0..sessions).map(transaction).collect();
    let free = FreeRun {
        sessions,
        level: None,
        on_abort: OnAbort::GiveUp,
        stop: Stop { transactions: None, time: Some(time) },
    };
    let (mut ours, mut bare) = (Rate::default(), Rate::default());
    for _ in 0..ROUNDS {
        let trace = free.run(&mut runner, &mut |session| Some(Statements::clone(&all[session])));
        let trace = trace.expect("a run");
        let last = trace.operations.iter().map(|o| o.end).max().unwrap_or(0);
        ours.add(trace.ends().committed, Duration::from_nanos(last));
        let clients: Vec<Box<dyn Session>> =
            (0..sessions).map(|_| runner.engine.open().expect("a session")).collect();
        let since = Instant::now();
        let done = bare_clients(clients, &all, since + time);
        bare.add(done, since.elapsed());
    }
    (ours.per_second(), bare.per_second())
}

/// Each client on a thread that does nothing but wait for its answers.
fn bare_clients(clients: Vec<Box<dyn Session>>, all: &[Statements], end: Instant) -> u64 {
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .zip(all)
            .map(|(mut session, statements)| {
                scope.spawn(move || {
                    let mut done = 0;
                    while Instant::now() < end {
                        for sql in statements.iter() {
                            session.start(sql);
                            session.reply(Duration::from_secs(10)).expect("an answer");
                        }
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("a client")).sum()
    })
}

#[derive(Default)]
struct Rate {
    count: u64,
    time: Duration,
}

impl Rate {
    fn add(&mut self, count: u64, time: Duration) {
        self.count += count;
        self.time += time;
    }

    fn per_second(&self) -> f64 {
        // Far fewer than a float counts exactly.
        #[allow(clippy::cast_precision_loss)]
        let count = self.count as f64;
        count / self.time.as_secs_f64()
    }
}

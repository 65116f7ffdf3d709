//! From sending a statement to knowing that it waits: the runner, a bare loop
//! that polls the same view, and a runner that waits two seconds.

use isolde_bench::{Times, case, open};
use isolde_engines::engine::{Engine, Session, WaitState};
use isolde_engines::runner::Runner;
use std::time::{Duration, Instant};

const SETUP: &str = "create table t (id int primary key, v int)";
const FILL: &str = "insert into t values (1, 10), (2, 20)";
const LOCK: &str = "update t set v = v + 1 where id = 1";

fn main() {
    let tries: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(300);
    println!("from sending to knowing that it waits, in ms, {tries} tries each");
    println!(
        "{:12} {:14} {:>8} {:>8} {:>8} {:>8} {:>6}",
        "", "", "median", "p90", "p99", "max", "n"
    );
    for name in ["postgres", "mariadb", "mysql"] {
        let Some(engine) = open(name) else { continue };
        let mut runner = Runner::new(engine);
        let ours = detected_by_runner(&mut runner, tries);
        let bare = detected_by_bare_loop(runner.engine.as_mut(), tries);
        let timeout = detected_by_timeout(runner.engine.as_mut());
        println!("{name:12} {:14} {}", "Isolde", ours.show());
        println!("{name:12} {:14} {}", "bare loop", bare.show());
        println!("{name:12} {:14} {}", "2 s timeout", timeout.show());
        let ratio = ours.at(0.99).as_secs_f64() / bare.at(0.99).as_secs_f64();
        println!("{name:12} p99 of Isolde is {ratio:.2} times the bare loop's");
    }
}

fn detected_by_runner(runner: &mut Runner, tries: usize) -> Times {
    let waiting = case(&format!(
        "case: blocking\nsetup:\n  {SETUP};\n  {FILL};\ns1> begin;\ns1> {LOCK};\ns2> begin;\ns2> {LOCK};\ns1> commit;\ns2> commit;\n"
    ));
    runner.run(&waiting, None).expect("the case runs");
    runner.wait_detection.clear();
    // On the same tables, as the bare loop: a new table is slower to lock.
    for _ in 0..tries {
        runner.run_steps(&waiting, None).expect("the case runs");
    }
    Times::new(std::mem::take(&mut runner.wait_detection))
}

fn prepare(engine: &mut dyn Engine) -> (Box<dyn Session>, Box<dyn Session>) {
    engine.clear().expect("an empty database");
    for sql in [SETUP, FILL] {
        engine.control(sql).expect("the setup runs");
    }
    let sessions = (engine.open(), engine.open());
    (sessions.0.expect("a session"), sessions.1.expect("a session"))
}

fn run(session: &mut dyn Session, sql: &str) {
    session.start(sql);
    session.reply(Duration::from_secs(30)).expect("an answer");
}

/// Nothing but the view, asked without a pause.
fn detected_by_bare_loop(engine: &mut dyn Engine, tries: usize) -> Times {
    let (mut holder, mut waiter) = prepare(engine);
    let mut times = Vec::new();
    for _ in 0..tries {
        run(holder.as_mut(), "begin");
        run(holder.as_mut(), LOCK);
        run(waiter.as_mut(), "begin");
        let since = Instant::now();
        waiter.start(LOCK);
        loop {
            let states = engine.waiting(&[waiter.id()]).expect("the view answers");
            if matches!(states[0], WaitState::Waiting(_)) {
                break;
            }
        }
        times.push(since.elapsed());
        run(holder.as_mut(), "commit");
        waiter.reply(Duration::from_secs(30)).expect("the lock is free");
        run(waiter.as_mut(), "commit");
    }
    Times::new(times)
}

/// What WriteCheck and Troc do: no answer for two seconds means a wait.
fn detected_by_timeout(engine: &mut dyn Engine) -> Times {
    let (mut holder, mut waiter) = prepare(engine);
    let mut times = Vec::new();
    for _ in 0..2 {
        run(holder.as_mut(), "begin");
        run(holder.as_mut(), LOCK);
        let since = Instant::now();
        waiter.start(LOCK);
        let answer = waiter.reply(Duration::from_secs(2));
        assert!(answer.is_none(), "it waits");
        times.push(since.elapsed());
        run(holder.as_mut(), "commit");
        waiter.reply(Duration::from_secs(30)).expect("the lock is free");
    }
    Times::new(times)
}

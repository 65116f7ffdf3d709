//! Measures how long the solver takes on a generated history, to be run under
//! `/usr/bin/time -v`:
//!
//! ```text
//! measure_solver goal=ser made=si txns=1000000 keys=10000 zipf=0.9 sessions=50 \
//!     by=session plant=swap keep=sessions times=yes own=yes seed=1
//! ```

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]

use isolde_checker::solver::{
    Budget, Decision, Goal, INITIAL, Problem, RequiredOrders, Rows, Step, decide,
};
use std::collections::HashMap;
use std::time::Instant;

/// SplitMix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The arguments of the command line.
struct Arguments(HashMap<String, String>);

impl Arguments {
    fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.into())
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.0.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }
}

#[derive(Clone, Default)]
struct Generated {
    session: u32,
    reads: Vec<(u32, u32)>,
    writes: Vec<u32>,
    times: [u64; 2],
}

fn main() {
    let arguments = std::env::args().skip(1);
    let pairs = arguments.filter_map(|a| a.split_once('=').map(|(n, v)| (n.into(), v.into())));
    let arguments = Arguments(pairs.collect());
    let problem = make(&arguments);
    let goal = match arguments.text("goal", "ser").as_str() {
        "ser" => Goal::Serializable,
        _ => Goal::SnapshotIsolation,
    };
    let required = arguments.text("keep", "sessions");
    let required = RequiredOrders {
        sessions: required.contains("sessions"),
        times: required.contains("times"),
    };
    let (begin, before) = (Instant::now(), on_cpu());
    let decision = decide(&problem, goal, required, &Budget::default());
    let (seconds, on_cpu) = (begin.elapsed().as_secs_f64(), on_cpu() - before);
    let answer = match &decision {
        Decision::Holds { .. } => "holds".into(),
        Decision::Violated { cycle } => {
            format!("violated by {} steps ({} in all)", cycle.len(), all_steps(cycle))
        }
        Decision::Unknown { open_pairs, transactions } => {
            format!("unknown: {open_pairs} pairs, {transactions} transactions")
        }
    };
    println!(
        "{seconds:8.2} s, {on_cpu:.2} on the CPU  {} transactions: {answer}",
        problem.session_of.len()
    );
}

/// Seconds that this thread has run on a CPU: what counts on a machine with other work.
fn on_cpu() -> f64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn all_steps(steps: &[Step]) -> usize {
    use isolde_checker::solver::Justification;
    let inside = |step: &Step| match &step.justification {
        Justification::Inferred(steps) => all_steps(steps),
        _ => 0,
    };
    steps.iter().map(|step| 1 + inside(step)).sum()
}

/// Sessions take turns at random; each transaction reads a snapshot as of its begin, and is not
/// recorded if another transaction has overwritten in the meantime what it writes (snapshot
/// isolation) or what it reads or writes (serializable).
fn make(arguments: &Arguments) -> Problem {
    let (txns, keys) =
        (arguments.number("txns", 10_000usize), arguments.number("keys", 10_000usize));
    let sessions = arguments.number("sessions", 50usize);
    let serializable = arguments.text("made", "ser") == "ser";
    let mut random = Random(arguments.number("seed", 1));
    let skew = arguments.number("zipf", 0.0f64);
    let mut sum = 0.0;
    let shares: Vec<f64> = (1..=keys)
        .map(|key| {
            sum += 1.0 / (key as f64).powf(skew);
            sum
        })
        .collect();
    let mut holds = vec![INITIAL; keys];
    let planting = arguments.text("plant", "none") != "none";
    let mut before = HashMap::new();
    let mut running: Vec<Option<Generated>> = vec![None; sessions];
    let mut snapshots = vec![Vec::new(); sessions];
    let mut done: Vec<Generated> = Vec::with_capacity(txns);
    let mut clock = 0;
    while done.len() < txns {
        clock += 1;
        let session = random.below(sessions);
        let Some(mut generated) = running[session].take() else {
            let mut generated = Generated { session: session as u32, ..Generated::default() };
            for _ in 0..8 {
                let drawn = random.unit() * sum;
                let key = shares.partition_point(|share| *share < drawn) as u32;
                if random.below(2) == 0 {
                    if !generated.writes.contains(&key) {
                        generated.reads.push((key, holds[key as usize]));
                    }
                } else {
                    generated.writes.push(key);
                }
            }
            generated.reads.sort_unstable();
            generated.reads.dedup();
            generated.writes.sort_unstable();
            generated.writes.dedup();
            generated.times[0] = clock;
            snapshots[session] = generated.writes.iter().map(|key| holds[*key as usize]).collect();
            running[session] = Some(generated);
            continue;
        };
        let mut writes = generated.writes.iter().zip(&snapshots[session]);
        let current = writes.all(|(key, read)| holds[*key as usize] == *read);
        let reads = generated.reads.iter().all(|(key, read)| holds[*key as usize] == *read);
        if !current || serializable && !reads {
            continue;
        }
        generated.times[1] = clock;
        for &key in &generated.writes {
            if planting {
                before.insert((key, done.len() as u32), holds[key as usize]);
            }
            holds[key as usize] = done.len() as u32;
        }
        done.push(generated);
    }
    plant(&arguments.text("plant", "none"), &mut done, &before, &mut random);
    if arguments.text("by", "session") == "session" {
        by_session(&mut done);
    }
    if arguments.text("own", "no") == "yes" {
        done.iter_mut()
            .enumerate()
            .for_each(|(position, generated)| generated.session = position as u32);
    }
    let mut problem = assemble(&done, keys);
    if arguments.text("times", "no") == "no" {
        problem.times = Vec::new();
    }
    problem
}

/// Plants an anomaly: one read observes an overwritten version (`stale`), or two reads swap their
/// results (`swap`).
fn plant(
    what: &str,
    done: &mut [Generated],
    before: &HashMap<(u32, u32), u32>,
    random: &mut Random,
) {
    loop {
        let one = done.len() / 2 + random.below(done.len() / 4);
        let Some(&(key, writer)) = done[one].reads.first() else { continue };
        if what == "none" {
            return;
        }
        if what == "stale" {
            if let Some(&older) = before.get(&(key, writer)) {
                done[one].reads[0].1 = older;
                return;
            }
            continue;
        }
        let other = (one + 1..done.len()).find_map(|other| {
            let position = done[other].reads.iter().position(|(k, w)| *k == key && *w != writer)?;
            Some((other, position))
        });
        if let Some((other, position)) = other {
            done[one].reads[0].1 = done[other].reads[position].1;
            done[other].reads[position].1 = writer;
            return;
        }
    }
}

fn by_session(done: &mut Vec<Generated>) {
    let mut order: Vec<u32> = (0..done.len() as u32).collect();
    order.sort_by_key(|txn| done[*txn as usize].session);
    let mut number = vec![0; done.len()];
    for (position, txn) in order.iter().enumerate() {
        number[*txn as usize] = position as u32;
    }
    for generated in done.iter_mut() {
        for (_, writer) in generated.reads.iter_mut().filter(|(_, writer)| *writer != INITIAL) {
            *writer = number[*writer as usize];
        }
    }
    let mut old: Vec<Option<Generated>> = std::mem::take(done).into_iter().map(Some).collect();
    done.extend(order.iter().map(|txn| old[*txn as usize].take().expect("each once")));
}

fn assemble(done: &[Generated], keys: usize) -> Problem {
    let mut problem = Problem { items: keys as u32, ..Problem::default() };
    for generated in done {
        problem.session_of.push(generated.session);
        problem.sessions = problem.sessions.max(generated.session + 1);
        problem.reads.all.extend(&generated.reads);
        problem.reads.end_row();
        problem.writes.all.extend(&generated.writes);
        problem.writes.end_row();
        problem.times.push(generated.times);
    }
    problem.known_order = Rows { starts: vec![0; keys + 1], all: Vec::new() };
    problem
}

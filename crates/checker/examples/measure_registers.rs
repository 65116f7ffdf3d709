//! How long a decision takes on a history that is made up here, to be run under
//! `/usr/bin/time -v`:
//!
//! ```text
//! measure_registers goal=ser made=si txns=1000000 keys=10000 zipf=0.9 sessions=50 \
//!     by=session plant=swap keep=sessions times=yes own=yes seed=1
//! ```

use isolde_checker::registers::{
    Budget, Decision, Goal, INITIAL, Keep, Problem, Rows, Step, decide,
};
use std::collections::HashMap;
use std::time::Instant;

/// Splitmix64: the same numbers everywhere.
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

/// What was asked for on the command line.
struct Asked(HashMap<String, String>);

impl Asked {
    fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.into())
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> T {
        self.0.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }
}

#[derive(Clone, Default)]
struct Made {
    session: u32,
    reads: Vec<(u32, u32)>,
    writes: Vec<u32>,
    times: [u64; 2],
}

fn main() {
    let arguments = std::env::args().skip(1);
    let pairs = arguments.filter_map(|a| a.split_once('=').map(|(n, v)| (n.into(), v.into())));
    let asked = Asked(pairs.collect());
    let problem = make(&asked);
    let goal = match asked.text("goal", "ser").as_str() {
        "ser" => Goal::Serializable,
        _ => Goal::SnapshotIsolation,
    };
    let keep = asked.text("keep", "sessions");
    let keep = Keep { sessions: keep.contains("sessions"), times: keep.contains("times") };
    let (begin, before) = (Instant::now(), on_cpu());
    let decision = decide(&problem, goal, keep, &Budget::default());
    let (seconds, on_cpu) = (begin.elapsed().as_secs_f64(), on_cpu() - before);
    let said = match &decision {
        Decision::Holds { .. } => "holds".into(),
        Decision::Violated { cycle } => {
            format!("violated by {} steps ({} in all)", cycle.len(), all_steps(cycle))
        }
        Decision::Unknown { open_pairs, transactions } => {
            format!("unknown: {open_pairs} pairs, {transactions} transactions")
        }
    };
    println!(
        "{seconds:8.2} s, {on_cpu:.2} on the CPU  {} transactions: {said}",
        problem.session_of.len()
    );
}

/// Seconds that this thread has run: what counts on a machine with other work.
fn on_cpu() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = told.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

fn all_steps(steps: &[Step]) -> usize {
    use isolde_checker::registers::Because;
    let inside = |step: &Step| match &step.because {
        Because::Opposite(steps) => all_steps(steps),
        _ => 0,
    };
    steps.iter().map(|step| 1 + inside(step)).sum()
}

/// Sessions take turns at random; each transaction reads a snapshot as of its begin, and
/// is not recorded if somebody has overwritten in the meantime what it writes (snapshot
/// isolation) or what it reads or writes (serializable).
fn make(asked: &Asked) -> Problem {
    let (txns, keys) = (asked.number("txns", 10_000usize), asked.number("keys", 10_000usize));
    let sessions = asked.number("sessions", 50usize);
    let serializable = asked.text("made", "ser") == "ser";
    let mut random = Random(asked.number("seed", 1));
    let skew = asked.number("zipf", 0.0f64);
    let mut sum = 0.0;
    let shares: Vec<f64> = (1..=keys)
        .map(|key| {
            sum += 1.0 / (key as f64).powf(skew);
            sum
        })
        .collect();
    let mut holds = vec![INITIAL; keys];
    let planting = asked.text("plant", "none") != "none";
    let mut before = HashMap::new();
    let mut running: Vec<Option<Made>> = vec![None; sessions];
    let mut snapshots = vec![Vec::new(); sessions];
    let mut done: Vec<Made> = Vec::with_capacity(txns);
    let mut clock = 0;
    while done.len() < txns {
        clock += 1;
        let session = random.below(sessions);
        let Some(mut made) = running[session].take() else {
            let mut made = Made { session: session as u32, ..Made::default() };
            for _ in 0..8 {
                let drawn = random.unit() * sum;
                let key = shares.partition_point(|share| *share < drawn) as u32;
                if random.below(2) == 0 {
                    if !made.writes.contains(&key) {
                        made.reads.push((key, holds[key as usize]));
                    }
                } else {
                    made.writes.push(key);
                }
            }
            made.reads.sort_unstable();
            made.reads.dedup();
            made.writes.sort_unstable();
            made.writes.dedup();
            made.times[0] = clock;
            snapshots[session] = made.writes.iter().map(|key| holds[*key as usize]).collect();
            running[session] = Some(made);
            continue;
        };
        let mut writes = made.writes.iter().zip(&snapshots[session]);
        let current = writes.all(|(key, seen)| holds[*key as usize] == *seen);
        let reads = made.reads.iter().all(|(key, seen)| holds[*key as usize] == *seen);
        if !current || serializable && !reads {
            continue;
        }
        made.times[1] = clock;
        for &key in &made.writes {
            if planting {
                before.insert((key, done.len() as u32), holds[key as usize]);
            }
            holds[key as usize] = done.len() as u32;
        }
        done.push(made);
    }
    plant(&asked.text("plant", "none"), &mut done, &before, &mut random);
    if asked.text("by", "session") == "session" {
        by_session(&mut done);
    }
    if asked.text("own", "no") == "yes" {
        done.iter_mut().enumerate().for_each(|(place, made)| made.session = place as u32);
    }
    let mut problem = assemble(&done, keys);
    if asked.text("times", "no") == "no" {
        problem.times = Vec::new();
    }
    problem
}

/// Somebody sees what had been overwritten (`stale`), or two see what the other should have
/// seen (`swap`).
fn plant(what: &str, done: &mut [Made], before: &HashMap<(u32, u32), u32>, random: &mut Random) {
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
            let place = done[other].reads.iter().position(|(k, w)| *k == key && *w != writer)?;
            Some((other, place))
        });
        if let Some((other, place)) = other {
            done[one].reads[0].1 = done[other].reads[place].1;
            done[other].reads[place].1 = writer;
            return;
        }
    }
}

fn by_session(done: &mut Vec<Made>) {
    let mut order: Vec<u32> = (0..done.len() as u32).collect();
    order.sort_by_key(|txn| done[*txn as usize].session);
    let mut number = vec![0; done.len()];
    for (place, txn) in order.iter().enumerate() {
        number[*txn as usize] = place as u32;
    }
    for made in done.iter_mut() {
        for (_, writer) in made.reads.iter_mut().filter(|(_, writer)| *writer != INITIAL) {
            *writer = number[*writer as usize];
        }
    }
    let mut old: Vec<Option<Made>> = std::mem::take(done).into_iter().map(Some).collect();
    done.extend(order.iter().map(|txn| old[*txn as usize].take().expect("each once")));
}

fn assemble(done: &[Made], keys: usize) -> Problem {
    let mut problem = Problem { items: keys as u32, ..Problem::default() };
    for made in done {
        problem.session_of.push(made.session);
        problem.sessions = problem.sessions.max(made.session + 1);
        problem.reads.all.extend(&made.reads);
        problem.reads.end_row();
        problem.writes.all.extend(&made.writes);
        problem.writes.end_row();
        problem.times.push(made.times);
    }
    problem.known_order = Rows { starts: vec![0; keys + 1], all: Vec::new() };
    problem
}

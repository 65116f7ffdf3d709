//! Histories of a few transactions that conflict often: simulated, simulated and then corrupted,
//! or made up.

use super::super::problem::Problem;
use crate::digraph::Rows;
use crate::types::INITIAL;

/// SplitMix64: the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A transaction before it is added to a problem.
#[derive(Clone, Default, Debug)]
pub struct Sketch {
    pub session: u32,
    pub reads: Vec<(u32, u32)>,
    pub writes: Vec<u32>,
    pub times: [u64; 2],
}

/// A problem of these transactions; versions are in commit order, of which `known` are known.
pub fn assemble(sketches: &[Sketch], orders: &[Vec<u32>], known: &[usize]) -> Problem {
    let mut problem = Problem { items: orders.len() as u32, ..Problem::default() };
    for sketch in sketches {
        problem.session_of.push(sketch.session);
        problem.sessions = problem.sessions.max(sketch.session + 1);
        let mut reads = sketch.reads.clone();
        reads.sort_unstable();
        reads.dedup();
        problem.reads.all.extend(reads);
        problem.reads.end_row();
        let mut writes = sketch.writes.clone();
        writes.sort_unstable();
        writes.dedup();
        problem.writes.all.extend(writes);
        problem.writes.end_row();
        problem.times.push(sketch.times);
    }
    let mut rows = Rows::default();
    for (order, known) in orders.iter().zip(known) {
        rows.all.extend(&order[..*known]);
        rows.end_row();
    }
    problem.known_order = rows;
    problem
}

pub fn small(random: &mut Random) -> Problem {
    let txns = 2 + random.below(5);
    let items = 1 + random.below(3);
    let sessions = 1 + random.below(4);
    let simulated = random.chance(75);
    let (mut sketches, mut orders) = if simulated {
        let serial = random.chance(50);
        simulate(random, txns, items, sessions, serial)
    } else {
        make_up(random, txns, items, sessions)
    };
    if random.chance(50) {
        corrupt(random, &mut sketches, &mut orders);
    }
    let known: Vec<usize> = orders
        .iter()
        .map(|order| if random.chance(25) { random.below(order.len() + 1) } else { 0 })
        .collect();
    assemble(&sketches, &orders, &known)
}

/// A history that is too large to be decided pair by pair.
pub fn medium(random: &mut Random, serial: bool, corrupted: bool) -> Problem {
    let (mut sketches, mut orders) = simulate(random, 140, 14, 8, serial);
    if corrupted {
        corrupt(random, &mut sketches, &mut orders);
    }
    let known = vec![0; orders.len()];
    let mut problem = assemble(&sketches, &orders, &known);
    if random.chance(50) {
        problem.times.clear();
    }
    problem
}

fn operations(random: &mut Random, items: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..1 + random.below(4) {
        let item = random.below(items) as u32;
        let list = if random.chance(50) { &mut reads } else { &mut writes };
        if !list.contains(&item) {
            list.push(item);
        }
    }
    (reads, writes)
}

/// Runs transactions with one snapshot each and first committer wins; one at a time if `serial`.
/// Transactions that lose are not in the history.
fn simulate(
    random: &mut Random,
    txns: usize,
    items: usize,
    sessions: usize,
    serial: bool,
) -> (Vec<Sketch>, Vec<Vec<u32>>) {
    let mut done: Vec<Sketch> = Vec::new();
    let mut orders = vec![Vec::<u32>::new(); items];
    let mut running: Vec<Option<(Sketch, Vec<usize>)>> = vec![None; sessions];
    let mut clock = 0;
    for _ in 0..10 * txns {
        clock += 1;
        let session = random.below(sessions);
        if serial && running.iter().enumerate().any(|(other, r)| other != session && r.is_some()) {
            continue;
        }
        match running[session].take() {
            None if done.len() + running.iter().flatten().count() < txns => {
                let (reads, writes) = operations(random, items);
                let latest = |item: &u32| orders[*item as usize].last().copied();
                let reads: Vec<(u32, u32)> =
                    reads.iter().map(|item| (*item, latest(item).unwrap_or(INITIAL))).collect();
                let seen = orders.iter().map(Vec::len).collect();
                let times = [clock - random.below(2) as u64, 0];
                let sketch = Sketch { session: session as u32, reads, writes, times };
                running[session] = Some((sketch, seen));
            }
            Some((mut sketch, seen)) => {
                let loses = |item: &u32| orders[*item as usize].len() != seen[*item as usize];
                if sketch.writes.iter().any(loses) {
                    continue;
                }
                sketch.times[1] = clock + random.below(3) as u64;
                for item in &sketch.writes {
                    orders[*item as usize].push(done.len() as u32);
                }
                done.push(sketch);
            }
            None => {}
        }
    }
    (done, orders)
}

/// Transactions whose reads observe arbitrary versions.
fn make_up(
    random: &mut Random,
    txns: usize,
    items: usize,
    sessions: usize,
) -> (Vec<Sketch>, Vec<Vec<u32>>) {
    let mut orders = vec![Vec::new(); items];
    let mut wanted = Vec::new();
    let mut sketches: Vec<Sketch> = (0..txns as u32)
        .map(|txn| {
            let (reads, writes) = operations(random, items);
            for item in &writes {
                let order: &mut Vec<u32> = &mut orders[*item as usize];
                let position = random.below(order.len() + 1);
                order.insert(position, txn);
            }
            wanted.push(reads);
            let begin = random.below(12) as u64;
            let times = [begin, begin + random.below(6) as u64];
            Sketch { session: random.below(sessions) as u32, reads: Vec::new(), writes, times }
        })
        .collect();
    for txn in 0..txns {
        for &item in &wanted[txn] {
            let order = &orders[item as usize];
            let writer = order.get(random.below(order.len() + 1)).copied().unwrap_or(INITIAL);
            if writer != txn as u32 {
                sketches[txn].reads.push((item, writer));
            }
        }
    }
    (sketches, orders)
}

/// Changes a read, a version order, or a session.
fn corrupt(random: &mut Random, sketches: &mut [Sketch], orders: &mut [Vec<u32>]) {
    if sketches.is_empty() {
        return;
    }
    let txn = random.below(sketches.len());
    match random.below(4) {
        0 => {
            let order = &mut orders[random.below(orders.len())];
            if order.len() > 1 {
                let position = random.below(order.len() - 1);
                order.swap(position, position + 1);
            }
        }
        1 => sketches[txn].session = random.below(4) as u32,
        _ => {
            let item = random.below(orders.len());
            let order = &orders[item];
            let writer = order.get(random.below(order.len() + 1)).copied().unwrap_or(INITIAL);
            if writer != txn as u32 {
                if random.chance(90) {
                    sketches[txn].reads.retain(|(other, _)| *other != item as u32);
                }
                sketches[txn].reads.push((item as u32, writer));
            }
        }
    }
}

//! Histories of a simulated database, for tests and benchmarks: sessions side by
//! side on registers or lists, valid at the level that is asked for, or with a
//! planted anomaly.
//!
//! A step of a random session is one read or write, or a commit. At serializable a
//! commit fails if what the transaction read has been replaced meanwhile, so
//! transactions have the order of their commits, which is also that of real time. At
//! snapshot isolation it reads what was committed when it began, and fails if
//! another has written the same items since.

mod planted;

pub use planted::Planted;

use isolde_checker::{Builder, History, Item, Status, Value};
use isolde_core::random::Random;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    Serializable,
    Snapshot,
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub transactions: usize,
    pub sessions: usize,
    /// Items that are in use at a time. A list that is full gives its place to a new one.
    pub items: usize,
    /// Operations of a transaction; half of them read.
    pub operations: usize,
    pub lists: bool,
    /// Whether some items are used far more than others.
    pub skewed: bool,
    pub isolation: Isolation,
    pub planted: Option<Planted>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            seed: 1,
            transactions: 1000,
            sessions: 50,
            items: 10_000,
            operations: 8,
            lists: false,
            skewed: false,
            isolation: Isolation::Serializable,
            planted: None,
        }
    }
}

/// Elements of a list before another one takes its place.
const LONGEST_LIST: usize = 32;

/// A history with times, and with at least as many transactions as planned.
pub fn simulate(plan: &Plan) -> History {
    let mut simulation = Simulation::new(plan);
    let mut open: Vec<Option<Open>> = (0..plan.sessions).map(|_| None).collect();
    let mut begun = 0;
    loop {
        let session = simulation.random.below(plan.sessions);
        simulation.now += 1;
        match open[session].take() {
            Some(mut txn) if txn.ops.len() < plan.operations => {
                simulation.step(&mut txn);
                open[session] = Some(txn);
            }
            Some(txn) => simulation.end(session, &txn),
            None if begun < plan.transactions => {
                begun += 1;
                let begin = simulation.now;
                open[session] = Some(Open { begin, ops: Vec::new() });
            }
            None if open.iter().all(Option::is_none) => break,
            None => {}
        }
    }
    if let Some(planted) = plan.planted {
        let item = simulation.next_item;
        planted.plant(&mut simulation.builder, plan.lists, item, simulation.now + 1);
    }
    simulation.builder.finish()
}

struct Simulation<'p> {
    plan: &'p Plan,
    random: Random,
    builder: Builder,
    now: u64,
    /// What each place holds.
    places: Vec<Versions>,
    next_item: u64,
}

/// The versions of an item that are committed, with the times of their commits.
#[derive(Default)]
struct Versions {
    item: u64,
    /// How many values were ever taken, committed or not.
    taken: u64,
    committed: Vec<(u64, u64)>,
}

/// A transaction that is running.
struct Open {
    begin: u64,
    ops: Vec<Done>,
}

struct Done {
    place: usize,
    item: u64,
    /// The value that was written; none of a read.
    written: Option<u64>,
    /// How many versions were seen.
    seen: usize,
}

impl<'p> Simulation<'p> {
    fn new(plan: &'p Plan) -> Simulation<'p> {
        let places = (0..plan.items as u64).map(|item| Versions { item, ..Versions::default() });
        Simulation {
            plan,
            random: Random::stream(plan.seed, "simulate", 0),
            builder: Builder::new(),
            now: 0,
            places: places.collect(),
            next_item: plan.items as u64,
        }
    }

    fn place(&mut self) -> usize {
        let below = match self.plan.skewed {
            true => self.random.below(self.plan.items) + 1,
            false => self.plan.items,
        };
        self.random.below(below)
    }

    fn step(&mut self, txn: &mut Open) {
        let place = self.place();
        let writes = self.random.chance(50);
        let versions = &mut self.places[place];
        let seen = match self.plan.isolation {
            Isolation::Serializable => versions.committed.len(),
            Isolation::Snapshot => {
                versions.committed.partition_point(|(time, _)| *time < txn.begin)
            }
        };
        let written = writes.then(|| {
            versions.taken += 1;
            versions.taken
        });
        txn.ops.push(Done { place, item: versions.item, written, seen });
    }

    /// Whether the transaction may commit.
    fn is_valid(&self, txn: &Open) -> bool {
        txn.ops.iter().all(|op| {
            let versions = &self.places[op.place];
            // A list that has made way for another one has lost nothing by it.
            let unchanged = versions.item == op.item && versions.committed.len() == op.seen;
            match self.plan.isolation {
                Isolation::Serializable => unchanged || op.written.is_some(),
                Isolation::Snapshot => unchanged || op.written.is_none(),
            }
        }) && txn.ops.iter().all(|op| self.places[op.place].item == op.item)
    }

    fn end(&mut self, session: usize, txn: &Open) {
        let valid = self.is_valid(txn);
        let session = self.builder.numbered_session(session as u64);
        self.builder.begin(session);
        self.builder.times(txn.begin, self.now);
        for at in 0..txn.ops.len() {
            self.tell(txn, at);
        }
        self.builder.end(if valid { Status::Committed } else { Status::Aborted });
        if valid {
            self.commit(txn);
        }
    }

    /// Tells the builder what an operation did.
    fn tell(&mut self, txn: &Open, at: usize) {
        let op = &txn.ops[at];
        let item: Item = self.builder.numbered_item(op.item);
        let own = txn.ops[..at].iter().filter(|own| own.item == op.item);
        let mut own = own.filter_map(|own| own.written.map(Value));
        // Of a list that is gone its reader, which fails for that, has seen nothing.
        let committed = match self.places[op.place].item == op.item {
            true => &self.places[op.place].committed[..op.seen],
            false => &[],
        };
        match (op.written, self.plan.lists) {
            (Some(value), true) => self.builder.append(item, Value(value)),
            (Some(value), false) => self.builder.write(item, Value(value)),
            (None, true) => {
                let list: Vec<Value> =
                    committed.iter().map(|(_, value)| Value(*value)).chain(own).collect();
                self.builder.read_list(item, &list);
            }
            (None, false) => {
                let committed = committed.last().map_or(Value::INITIAL, |(_, v)| Value(*v));
                self.builder.read(item, own.next_back().unwrap_or(committed));
            }
        }
    }

    fn commit(&mut self, txn: &Open) {
        for (at, op) in txn.ops.iter().enumerate() {
            let Some(value) = op.written else { continue };
            let later = txn.ops[at + 1..]
                .iter()
                .any(|later| later.item == op.item && later.written.is_some());
            let versions = &mut self.places[op.place];
            // Of a register the last write counts, of a list all appends do.
            if self.plan.lists || !later {
                versions.committed.push((self.now, value));
            }
        }
        for op in txn.ops.iter().filter(|op| op.written.is_some()) {
            let full = self.plan.lists && self.places[op.place].committed.len() >= LONGEST_LIST;
            if full {
                let item = self.next_item;
                self.next_item += 1;
                self.places[op.place] = Versions { item, ..Versions::default() };
            }
        }
    }
}

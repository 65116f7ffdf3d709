//! Histories of a simulated database, for tests and benchmarks: concurrent sessions on registers or
//! lists, valid at the requested level, or with a planted anomaly.
//!
//! A step of a random session is one read or write, or a commit. At serializable a commit fails if
//! a version that the transaction read has been overwritten meanwhile, so transactions are in the
//! order of their commits, which is also the real-time order. At snapshot isolation a transaction
//! reads the versions that were committed when it began, and its commit fails if another one has
//! written the same items since.

mod planted;

pub use planted::Planted;

use isolde_checker::{Builder, History, Item, Status, Value};
use isolde_model::random::Random;

/// The isolation level of the simulated database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Serializability.
    Serializable,
    /// Snapshot isolation.
    Snapshot,
}

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of the random choices.
    pub seed: u64,
    /// The number of transactions.
    pub transactions: usize,
    /// The number of sessions.
    pub sessions: usize,
    /// The number of items in use at a time. A full list is replaced by a new one.
    pub items: usize,
    /// The number of operations of a transaction; half of them are reads.
    pub operations: usize,
    /// Whether items are lists instead of registers.
    pub lists: bool,
    /// Whether some items are used far more than others.
    pub skewed: bool,
    /// The level of the database.
    pub isolation: Isolation,
    /// The anomaly to plant, if any.
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

/// The number of elements of a list before another one replaces it.
const LONGEST_LIST: usize = 32;

/// Simulates a history with times, and with at least as many transactions as planned.
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
    /// The versions of each slot.
    places: Vec<Versions>,
    next_item: u64,
}

/// The committed versions of an item, with the times of their commits.
#[derive(Default)]
struct Versions {
    item: u64,
    /// The number of values used so far, committed or not.
    taken: u64,
    committed: Vec<(u64, u64)>,
}

/// A running transaction.
struct Open {
    begin: u64,
    ops: Vec<Done>,
}

struct Done {
    place: usize,
    item: u64,
    /// The value that was written; none for a read.
    written: Option<u64>,
    /// The number of versions that were visible.
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
            // A list that was replaced by another one has not lost anything.
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
            self.record_operation(txn, at);
        }
        self.builder.end(if valid { Status::Committed } else { Status::Aborted });
        if valid {
            self.commit(txn);
        }
    }

    /// Adds an operation to the history.
    fn record_operation(&mut self, txn: &Open, at: usize) {
        let op = &txn.ops[at];
        let item: Item = self.builder.numbered_item(op.item);
        let own = txn.ops[..at].iter().filter(|own| own.item == op.item);
        let mut own = own.filter_map(|own| own.written.map(Value));
        // The reader of a list that was replaced aborts, and has read nothing.
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

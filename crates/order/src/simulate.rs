//! A simulated database between delays of the network, whose true order is known: for the
//! tests of this room and for `bench/order`.
//!
//! Sessions send one operation after the other. It arrives after a delay, takes effect at a
//! moment that only the simulation knows, possibly after a wait for a lock, and its answer
//! takes another delay. What the client sees becomes a trace.

use super::facts::place;
use isolde_model::Level;
use isolde_model::history::{ErrorClass, TargetInfo, TxEnd};
use isolde_model::profile::{ConcurrencyControl, Protocol, ReadVisibility};
use isolde_model::random::Random;
use isolde_model::trace::{Access, Accesses, Operation, OperationResult, Recorder, Trace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub control: ConcurrencyControl,
    pub sessions: usize,
    /// Items in use at a time; they are others after a while, so that none has endless versions.
    pub items: usize,
    pub transactions: usize,
    /// From one to so many reads and writes a transaction.
    pub operations: usize,
    /// Nanoseconds that a message takes at most.
    pub delay: usize,
    pub seed: u64,
}

/// A trace, and what its client cannot know.
pub struct Simulated {
    pub trace: Trace,
    /// When each operation took effect.
    pub moments: Vec<u64>,
    /// The version of each item when all was over.
    pub last: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Begin,
    Read(usize),
    Write(usize),
    Commit,
    Rollback,
}

struct Session {
    plan: Vec<Op>,
    next: usize,
    transaction: Tx,
    sent: u64,
    /// What comes back, and when it took effect.
    answer: Option<(OperationResult, Accesses, u64)>,
}

#[derive(Default)]
struct Tx {
    number: u32,
    began: u64,
    snapshot: Option<u64>,
    accessed: Vec<usize>,
    wrote: Vec<(usize, u64)>,
    failed: bool,
}

#[derive(Clone, Copy)]
struct Version {
    version: u64,
    by: u32,
    stamp: u64,
    committed: Option<u64>,
}

#[derive(Clone, Default)]
struct Item {
    versions: Vec<Version>,
    exclusive: Option<u32>,
    shared: Vec<u32>,
    read_stamp: u64,
}

struct Database {
    shape: Shape,
    random: Random,
    recorder: Recorder,
    moments: Vec<u64>,
    items: Vec<Item>,
    sessions: Vec<Session>,
    events: BinaryHeap<Reverse<(u64, u64, usize, bool)>>,
    blocked: Vec<usize>,
    tick: u64,
    drawn: usize,
    versions: u64,
    sequence: u64,
}

enum Done {
    Answer(OperationResult, Accesses),
    /// Until one of these has ended.
    Waits(Vec<u32>),
    Refused(ErrorClass),
}

pub fn simulate(shape: Shape) -> Simulated {
    let names: Vec<String> = (1..=shape.sessions).map(|n| format!("s{n}")).collect();
    let level = match shape.control.read_visibility {
        ReadVisibility::Latest => Level::ReadUncommitted,
        ReadVisibility::Committed => Level::ReadCommitted,
        ReadVisibility::Locked => Level::Serializable,
        _ if shape.control.protocol == Protocol::Occ => Level::Serializable,
        _ => Level::RepeatableRead,
    };
    let on = TargetInfo { target: "simulated".into(), ..TargetInfo::default() };
    let mut recorder = Recorder::new(on, Some(level), names);
    recorder.controlled(shape.control);
    let session =
        || Session { plan: Vec::new(), next: 0, transaction: Tx::default(), sent: 0, answer: None };
    let mut database = Database {
        shape,
        random: Random::stream(shape.seed, "order", 0),
        recorder,
        moments: Vec::new(),
        items: Vec::new(),
        sessions: (0..shape.sessions).map(|_| session()).collect(),
        events: BinaryHeap::new(),
        blocked: Vec::new(),
        tick: 0,
        drawn: 0,
        versions: 0,
        sequence: 0,
    };
    database.run();
    let Database { recorder, moments, items, .. } = database;
    let newest = |item: &Item| item.versions.last().map_or(0, |version| version.version);
    Simulated { trace: recorder.finish(None), moments, last: items.iter().map(newest).collect() }
}

impl Database {
    fn run(&mut self) {
        for client in 0..self.sessions.len() {
            self.send(client, 0);
        }
        while let Some(Reverse((now, _, client, answers))) = self.events.pop() {
            if answers {
                self.record(client, now);
                self.send(client, now);
            } else {
                self.arrive(client, now);
            }
        }
    }

    fn later(&mut self, now: u64, client: usize, answers: bool) {
        self.sequence += 1;
        let delay = 1 + self.random.below(self.shape.delay.max(1)) as u64;
        self.events.push(Reverse((now + delay, self.sequence, client, answers)));
    }

    fn send(&mut self, client: usize, now: u64) {
        let session = &mut self.sessions[client];
        if session.next >= session.plan.len() {
            if self.drawn >= self.shape.transactions {
                return;
            }
            self.draw(client);
        }
        let think = self.random.below(1 + self.shape.delay / 4) as u64;
        self.sessions[client].sent = now + 1 + think;
        self.later(now + 1 + think, client, false);
    }

    fn draw(&mut self, client: usize) {
        let base = self.drawn / 8;
        self.drawn += 1;
        let mut plan = vec![Op::Begin];
        for _ in 0..self.random.between(1, self.shape.operations.max(1)) {
            let item = base + self.random.below(self.shape.items.max(1));
            while self.items.len() <= item {
                self.recorder.item(&format!("t/{}", self.items.len()));
                self.items.push(Item::default());
            }
            plan.push(if self.random.chance(50) { Op::Read(item) } else { Op::Write(item) });
        }
        plan.push(if self.random.chance(90) { Op::Commit } else { Op::Rollback });
        let number = self.recorder.begin(place(client), None);
        let session = &mut self.sessions[client];
        (session.plan, session.next) = (plan, 0);
        session.transaction = Tx { number, ..Tx::default() };
    }

    /// A moment of its own for everything that happens.
    fn moment(&mut self, now: u64) -> u64 {
        self.tick = now.max(self.tick + 1);
        self.tick
    }

    fn arrive(&mut self, client: usize, now: u64) {
        let moment = self.moment(now);
        match self.execute(client, moment) {
            Done::Answer(result, accesses) => self.answer(client, result, accesses, moment),
            Done::Refused(class) => {
                self.undo(client);
                let error = OperationResult::Error(class);
                self.sessions[client].transaction.failed = true;
                self.answer(client, error, Accesses::default(), moment);
                self.wake(moment);
            }
            Done::Waits(holders) if self.closes_circle(client, &holders) => {
                self.undo(client);
                let error = OperationResult::Error(ErrorClass::Deadlock);
                self.sessions[client].transaction.failed = true;
                self.answer(client, error, Accesses::default(), moment);
                self.wake(moment);
            }
            Done::Waits(_) => self.blocked.push(client),
        }
    }

    fn answer(&mut self, client: usize, result: OperationResult, accesses: Accesses, moment: u64) {
        let session = &mut self.sessions[client];
        let ends = matches!(session.plan[session.next], Op::Commit | Op::Rollback);
        session.answer = Some((result, accesses, moment));
        self.later(moment, client, true);
        if ends {
            self.wake(moment);
        }
    }

    /// Retries the blocked statements, in the order of their waits, after locks were released.
    fn wake(&mut self, now: u64) {
        for client in std::mem::take(&mut self.blocked) {
            let moment = self.moment(now);
            match self.execute(client, moment) {
                Done::Answer(result, accesses) => self.answer(client, result, accesses, moment),
                Done::Waits(_) => self.blocked.push(client),
                Done::Refused(class) => {
                    self.undo(client);
                    self.sessions[client].transaction.failed = true;
                    let error = OperationResult::Error(class);
                    self.answer(client, error, Accesses::default(), moment);
                    // Statements that wait for it are retried at the next end or at its rollback.
                }
            }
        }
    }

    fn closes_circle(&mut self, client: usize, holders: &[u32]) -> bool {
        let own = self.sessions[client].transaction.number;
        let mut next = holders.to_vec();
        let mut seen: Vec<u32> = Vec::new();
        while let Some(holder) = next.pop() {
            if holder == own {
                return true;
            }
            if seen.contains(&holder) {
                continue;
            }
            seen.push(holder);
            let waiting = { self.blocked.iter() }
                .copied()
                .find(|client| self.sessions[*client].transaction.number == holder);
            if let Some(waiting) = waiting {
                next.extend(self.holders(waiting));
            }
        }
        false
    }

    /// Whom a blocked session waits for.
    fn holders(&self, client: usize) -> Vec<u32> {
        let session = &self.sessions[client];
        match session.plan[session.next] {
            Op::Read(item) | Op::Write(item) => {
                let writes = matches!(session.plan[session.next], Op::Write(_));
                self.in_the_way(session.transaction.number, item, writes)
            }
            _ => Vec::new(),
        }
    }

    fn in_the_way(&self, own: u32, item: usize, writes: bool) -> Vec<u32> {
        let item = &self.items[item];
        let shared = item.shared.iter().filter(|_| writes);
        item.exclusive.iter().chain(shared).copied().filter(|tx| *tx != own).collect()
    }

    fn execute(&mut self, client: usize, moment: u64) -> Done {
        let Shape { control: ConcurrencyControl { protocol, read_visibility }, .. } = self.shape;
        let session = &self.sessions[client];
        let op = session.plan[session.next];
        if session.transaction.failed || op == Op::Rollback {
            self.undo(client);
            return Done::Answer(OperationResult::Done, Accesses::default());
        }
        let tx = &mut self.sessions[client].transaction;
        let snapshot_now = match op {
            Op::Begin => read_visibility == ReadVisibility::SnapshotOfBegin,
            Op::Read(_) => true,
            Op::Write(_) => read_visibility == ReadVisibility::Snapshot,
            _ => false,
        };
        // Taken when it arrives, not when it has its lock.
        if snapshot_now {
            tx.snapshot.get_or_insert(moment);
        }
        match op {
            Op::Begin => {
                tx.began = moment;
                Done::Answer(OperationResult::Done, Accesses::default())
            }
            Op::Read(item) => {
                tx.accessed.push(item);
                match protocol {
                    Protocol::TimestampOrdering => self.stamped(client, item, false),
                    _ => self.read(client, item),
                }
            }
            Op::Write(item) => {
                tx.accessed.push(item);
                match protocol {
                    Protocol::Mvcc2pl => self.write(client, item),
                    Protocol::Occ => self.put_by(client, item),
                    Protocol::TimestampOrdering => self.stamped(client, item, true),
                }
            }
            Op::Commit if protocol == Protocol::Occ && !self.is_valid(client) => {
                Done::Refused(ErrorClass::Serialization)
            }
            Op::Commit => {
                self.commit(client, moment);
                Done::Answer(OperationResult::Done, Accesses::default())
            }
            Op::Rollback => unreachable!("it is done above"),
        }
    }

    fn read(&mut self, client: usize, item: usize) -> Done {
        let tx = &self.sessions[client].transaction;
        let own = tx.number;
        if self.shape.control.read_visibility == ReadVisibility::Locked {
            let holders = self.in_the_way(own, item, false);
            if !holders.is_empty() {
                return Done::Waits(holders);
            }
            if !self.items[item].shared.contains(&own) {
                self.items[item].shared.push(own);
            }
        }
        let version = self.visible(&self.sessions[client].transaction, item);
        let reads = vec![Access { item: place(item), version }];
        Done::Answer(OperationResult::Rows(1), Accesses { reads, ..Accesses::default() })
    }

    fn visible(&self, tx: &Tx, item: usize) -> u64 {
        if let Some((_, version)) = tx.wrote.iter().rev().find(|(of, _)| *of == item) {
            return *version;
        }
        let read_visibility = self.shape.control.read_visibility;
        let seen = |version: &&Version| match (read_visibility, version.committed) {
            (ReadVisibility::Latest, _) => true,
            (_, None) => false,
            (ReadVisibility::Committed | ReadVisibility::Locked, Some(_)) => true,
            (_, Some(at)) => tx.snapshot.is_some_and(|snapshot| at <= snapshot),
        };
        self.items[item].versions.iter().rev().find(seen).map_or(0, |version| version.version)
    }

    fn write(&mut self, client: usize, item: usize) -> Done {
        let own = self.sessions[client].transaction.number;
        let holders = self.in_the_way(own, item, true);
        if !holders.is_empty() {
            return Done::Waits(holders);
        }
        let tx = &self.sessions[client].transaction;
        let newest = self.items[item].versions.last().filter(|version| version.by != own);
        let too_new = newest.is_some_and(|v| v.committed > tx.snapshot);
        if self.shape.control.read_visibility == ReadVisibility::Snapshot && too_new {
            return Done::Refused(ErrorClass::Serialization);
        }
        self.items[item].exclusive = Some(own);
        let before = self.items[item].versions.last().map_or(0, |version| version.version);
        self.install(client, item, 0, before)
    }

    /// A new version of an item, and sometimes what it was made of.
    fn install(&mut self, client: usize, item: usize, stamp: u64, before: u64) -> Done {
        self.versions += 1;
        let version = self.versions;
        let tx = &mut self.sessions[client].transaction;
        tx.wrote.push((item, version));
        let by = tx.number;
        self.items[item].versions.push(Version { version, by, stamp, committed: None });
        let mut accesses = Accesses::default();
        accesses.writes.push(Access { item: place(item), version });
        if self.random.chance(50) && self.shape.control.protocol == Protocol::Mvcc2pl {
            accesses.reads.push(Access { item: place(item), version: before });
        }
        Done::Answer(OperationResult::Affected(1), accesses)
    }

    /// Buffers a write that is invisible until its transaction commits.
    fn put_by(&mut self, client: usize, item: usize) -> Done {
        self.versions += 1;
        let version = self.versions;
        self.sessions[client].transaction.wrote.push((item, version));
        let writes = vec![Access { item: place(item), version }];
        Done::Answer(OperationResult::Affected(1), Accesses { writes, ..Accesses::default() })
    }

    fn is_valid(&self, client: usize) -> bool {
        let tx = &self.sessions[client].transaction;
        let unchanged = |item: &usize| {
            self.items[*item].versions.last().is_none_or(|v| v.committed <= tx.snapshot)
        };
        tx.accessed.iter().all(unchanged)
    }

    fn stamped(&mut self, client: usize, item: usize, writes: bool) -> Done {
        let tx = &self.sessions[client].transaction;
        let (own, stamp) = (tx.number, tx.began);
        let of = &self.items[item];
        let newest = of.versions.last().copied();
        let late = newest.is_some_and(|v| v.stamp > stamp);
        if late || writes && of.read_stamp > stamp {
            return Done::Refused(ErrorClass::Serialization);
        }
        if let Some(open) = newest.filter(|v| v.committed.is_none() && v.by != own) {
            return Done::Waits(vec![open.by]);
        }
        if writes {
            return self.install(client, item, stamp, 0);
        }
        let of = &mut self.items[item];
        of.read_stamp = of.read_stamp.max(stamp);
        let version = newest.map_or(0, |version| version.version);
        let reads = vec![Access { item: place(item), version }];
        Done::Answer(OperationResult::Rows(1), Accesses { reads, ..Accesses::default() })
    }

    fn commit(&mut self, client: usize, moment: u64) {
        let tx = std::mem::take(&mut self.sessions[client].transaction.wrote);
        let own = self.sessions[client].transaction.number;
        if self.shape.control.protocol == Protocol::Occ {
            let committed = Some(moment);
            for (item, version) in tx {
                let version = Version { version, by: own, stamp: 0, committed };
                self.items[item].versions.push(version);
            }
        } else {
            for (item, _) in tx {
                let versions = self.items[item].versions.iter_mut();
                versions.filter(|v| v.by == own).for_each(|v| v.committed = Some(moment));
            }
        }
        self.let_go(client);
    }

    fn undo(&mut self, client: usize) {
        let own = self.sessions[client].transaction.number;
        for (item, _) in std::mem::take(&mut self.sessions[client].transaction.wrote) {
            self.items[item].versions.retain(|v| v.by != own || v.committed.is_some());
        }
        self.let_go(client);
    }

    fn let_go(&mut self, client: usize) {
        let own = self.sessions[client].transaction.number;
        for item in std::mem::take(&mut self.sessions[client].transaction.accessed) {
            let item = &mut self.items[item];
            item.exclusive = item.exclusive.filter(|tx| *tx != own);
            item.shared.retain(|tx| *tx != own);
        }
    }

    /// The client has its answer.
    fn record(&mut self, client: usize, now: u64) {
        let session = &mut self.sessions[client];
        let Some((result, accesses, moment)) = session.answer.take() else { return };
        let op = session.plan[session.next];
        let transaction = session.transaction.number;
        let sql = match op {
            Op::Begin => "begin".into(),
            Op::Read(item) => format!("select v from t where k = {item}"),
            Op::Write(item) => format!("update t set v = v + 1 where k = {item}"),
            Op::Commit => "commit".into(),
            Op::Rollback => "rollback".into(),
        };
        let failed = matches!(result, OperationResult::Error(_));
        let aborted = session.transaction.failed;
        session.next += 1;
        if failed && op != Op::Commit {
            // The transaction has failed, so only ROLLBACK is left.
            session.plan = vec![Op::Rollback];
            session.next = 0;
        }
        let over = session.next >= session.plan.len();
        let start = session.sent;
        let none = accesses.reads.is_empty() && accesses.writes.is_empty();
        let accesses = (!none).then(|| Box::new(accesses));
        let statement = self.recorder.statement(&sql);
        let session = place(client);
        self.recorder.operation(Operation {
            session,
            transaction,
            statement,
            start,
            end: now,
            result,
            accesses,
        });
        self.moments.push(moment);
        if over {
            let how = match op {
                _ if aborted => TxEnd::Aborted,
                Op::Rollback => TxEnd::RolledBack,
                _ => TxEnd::Committed,
            };
            self.recorder.end(transaction, how);
        }
    }
}

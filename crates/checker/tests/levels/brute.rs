//! The levels by their definitions: tries every version order and every order of transactions.
//! Only for small histories.

use isolde_checker::{History, Item, Level, OpKind, Status, Txn, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A version that was read: item, writer (none for the initial version).
type VersionRead = (u32, Option<usize>);

pub struct Brute {
    nodes: usize,
    sessions: Vec<u32>,
    times: Vec<Option<(u64, u64)>>,
    /// The reads of other transactions' versions, in program order.
    reads: Vec<Vec<VersionRead>>,
    /// The items that each transaction wrote.
    writes: Vec<BTreeSet<u32>>,
    /// The possible version orders of each item.
    orders: Vec<(u32, Vec<Vec<usize>>)>,
    /// A read that is wrong by itself: read committed and all stronger levels are violated.
    bad_read: bool,
}

impl Brute {
    /// For histories in which all transactions committed or aborted.
    pub fn of(history: &History) -> Brute {
        let committed: Vec<Txn> = history
            .transactions()
            .filter(|txn| history.status(*txn) == Status::Committed)
            .collect();
        let mut writer: BTreeMap<(u32, u64), (Txn, bool)> = BTreeMap::new();
        for txn in history.transactions() {
            let mut last = BTreeMap::new();
            for op in history.ops(txn).iter().filter(|op| op.writes()) {
                let (item, value) = (op.item().unwrap().0, op.value().unwrap().0);
                if let Some(before) = last.insert(item, value) {
                    writer.insert((item, before), (txn, false));
                }
                writer.insert((item, value), (txn, true));
            }
        }
        let node = |txn: Txn| committed.iter().position(|other| *other == txn);
        let mut brute = Brute {
            nodes: committed.len(),
            sessions: committed.iter().map(|txn| history.session_of(*txn).0).collect(),
            times: committed.iter().map(|txn| history.times(*txn)).collect(),
            reads: Vec::new(),
            writes: Vec::new(),
            orders: Vec::new(),
            bad_read: false,
        };
        let mut longest: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for txn in &committed {
            let (mut reads, mut own) = (Vec::new(), BTreeMap::new());
            for op in history.ops(*txn) {
                let Some(Item(item)) = op.item() else { continue };
                if op.writes() {
                    own.insert(item, op.value().unwrap());
                    continue;
                }
                let mut value = op.value().unwrap_or(Value::INITIAL);
                if op.kind() == OpKind::ReadList {
                    let mut list = history.list(*op).unwrap().to_vec();
                    let observed = list.len();
                    list.retain(|element| {
                        let (writer, _) = writer[&(item, *element)];
                        node(writer).is_some()
                    });
                    // It observed an aborted element.
                    brute.bad_read |= list.len() < observed;
                    value = list.last().map_or(Value::INITIAL, |element| Value(*element));
                    let known = longest.entry(item).or_default();
                    if list.len() > known.len() {
                        *known = list;
                    }
                } else if let Some(mine) = own.get(&item) {
                    brute.bad_read |= *mine != value;
                    continue;
                }
                if value == Value::INITIAL {
                    reads.push((item, None));
                    continue;
                }
                match writer.get(&(item, value.0)) {
                    Some((writer, last)) if writer != txn && node(*writer).is_some() => {
                        brute.bad_read |= !last;
                        reads.push((item, node(*writer)));
                    }
                    _ => brute.bad_read = true,
                }
            }
            brute.reads.push(reads);
            brute.writes.push(own.into_keys().collect());
        }
        for item in 0..history.item_count() as u32 {
            let writers: Vec<usize> =
                (0..brute.nodes).filter(|node| brute.writes[*node].contains(&item)).collect();
            let list = longest.remove(&item).unwrap_or_default();
            let mut known: Vec<usize> = list
                .iter()
                .filter_map(|element| writer.get(&(item, *element)))
                .filter_map(|(txn, _)| node(*txn))
                .collect();
            known.dedup();
            let mut rest = writers;
            rest.retain(|writer| !known.contains(writer));
            let orders = permutations(&rest)
                .into_iter()
                .map(|tail| known.iter().copied().chain(tail).collect())
                .collect();
            brute.orders.push((item, orders));
        }
        brute
    }

    pub fn holds(&self, level: Level) -> bool {
        if level != Level::ReadUncommitted && self.bad_read {
            return false;
        }
        match level {
            Level::MonotonicAtomicView
            | Level::StrongSessionMonotonicAtomicView
            | Level::ReadAtomic
            | Level::StrongSessionReadAtomic
            | Level::Causal => self.holds(Level::ReadCommitted) && self.has_commit_order(level),
            _ => {
                let mut chosen = vec![0; self.orders.len()];
                loop {
                    if self.holds_with(level, &chosen) {
                        return true;
                    }
                    // The next combination of version orders.
                    let mut item = 0;
                    while item < chosen.len() {
                        chosen[item] += 1;
                        if chosen[item] < self.orders[item].1.len() {
                            break;
                        }
                        chosen[item] = 0;
                        item += 1;
                    }
                    if item == chosen.len() {
                        return false;
                    }
                }
            }
        }
    }

    fn before(&self, sessions: bool, times: bool) -> Matrix {
        let mut matrix = Matrix::new(self.nodes);
        for a in 0..self.nodes {
            for b in 0..self.nodes {
                let in_session = self.sessions[a] == self.sessions[b] && a < b;
                let in_time = match (self.times[a], self.times[b]) {
                    (Some((_, end)), Some((begin, _))) => end < begin,
                    _ => false,
                };
                if sessions && in_session || times && in_time {
                    matrix.add(a, b);
                }
            }
        }
        matrix
    }

    fn holds_with(&self, level: Level, chosen: &[usize]) -> bool {
        let mut ww = Matrix::new(self.nodes);
        let mut wr = Matrix::new(self.nodes);
        let mut rw = Matrix::new(self.nodes);
        let mut lost_update = false;
        for ((item, orders), choice) in self.orders.iter().zip(chosen) {
            let order = &orders[*choice];
            for pair in order.windows(2) {
                ww.add(pair[0], pair[1]);
            }
            for reader in 0..self.nodes {
                for (of, writer) in self.reads[reader].iter().filter(|(of, _)| of == item) {
                    debug_assert_eq!(of, item);
                    let position = writer.map_or(0, |writer| {
                        order.iter().rposition(|node| *node == writer).unwrap() + 1
                    });
                    if let Some(writer) = writer {
                        wr.add(*writer, reader);
                    }
                    if let Some(next) = order.get(position) {
                        rw.add(reader, *next);
                        lost_update |= *next != reader && order[position..].contains(&reader);
                    }
                }
            }
        }
        let dependencies = ww.and(&wr);
        let before = self.before(level.requires_session_order(), level.requires_real_time());
        match level {
            Level::ReadUncommitted => ww.is_acyclic(),
            Level::ReadCommitted => dependencies.is_acyclic(),
            Level::CursorStability => dependencies.is_acyclic() && !lost_update,
            Level::ConsistentView => {
                let reachable = dependencies.closure();
                dependencies.is_acyclic()
                    && !rw.edges().any(|(from, to)| from != to && reachable.has(to, from))
            }
            Level::RepeatableRead
            | Level::Serializable
            | Level::StrongSessionSerializable
            | Level::StrictSerializable => dependencies.and(&rw).and(&before).is_acyclic(),
            _ => {
                // The begin of n is node n, its commit is node `nodes + n`.
                let mut split = Matrix::new(2 * self.nodes);
                for node in 0..self.nodes {
                    split.add(node, self.nodes + node);
                }
                for (from, to) in dependencies.and(&before).edges() {
                    split.add(self.nodes + from, to);
                }
                for (from, to) in rw.edges().filter(|(from, to)| from != to) {
                    split.add(from, self.nodes + to);
                }
                split.is_acyclic()
            }
        }
    }

    /// Biswas and Enea: some total order of all transactions respects the known edges, and no
    /// reader observed a version older than one that was visible to it.
    fn has_commit_order(&self, level: Level) -> bool {
        let mut known = self.before(level.requires_session_order(), false);
        for reader in 0..self.nodes {
            for writer in self.reads[reader].iter().filter_map(|(_, writer)| *writer) {
                known.add(writer, reader);
            }
        }
        let causes = known.closure();
        for (_, orders) in &self.orders {
            // What all version orders have in common is known.
            for a in 0..self.nodes {
                for b in 0..self.nodes {
                    let earlier = |order: &Vec<usize>| {
                        let at = |node| order.iter().position(|other| *other == node);
                        matches!((at(a), at(b)), (Some(a), Some(b)) if a < b)
                    };
                    if !orders.is_empty() && orders.iter().all(earlier) {
                        known.add(a, b);
                    }
                }
            }
        }
        let all: Vec<usize> = (0..self.nodes).collect();
        permutations(&all).into_iter().any(|order| {
            let mut position = vec![0; self.nodes];
            for (at, node) in order.iter().enumerate() {
                position[*node] = at + 1;
            }
            known.edges().all(|(from, to)| position[from] < position[to])
                && (0..self.nodes)
                    .all(|reader| self.observes_all_visible(level, reader, &position, &causes))
        })
    }

    fn observes_all_visible(
        &self,
        level: Level,
        reader: usize,
        position: &[usize],
        causes: &Matrix,
    ) -> bool {
        let reads = &self.reads[reader];
        reads.iter().enumerate().all(|(at, (item, writer))| {
            let observed = writer.map_or(0, |writer| position[writer]);
            (0..self.nodes).filter(|other| self.writes[*other].contains(item)).all(|other| {
                let before = &reads[..at];
                let in_session = self.sessions[other] == self.sessions[reader] && other < reader;
                let is_visible = other != reader
                    && match level {
                        Level::Causal => causes.has(other, reader),
                        Level::ReadAtomic => reads.iter().any(|(_, w)| *w == Some(other)),
                        Level::StrongSessionReadAtomic => {
                            in_session || reads.iter().any(|(_, w)| *w == Some(other))
                        }
                        _ => before.iter().any(|(_, w)| *w == Some(other)),
                    };
                !is_visible || position[other] <= observed
            })
        })
    }
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..of.len() {
        let mut rest = of.to_vec();
        let first = rest.remove(at);
        for mut tail in permutations(&rest) {
            tail.insert(0, first);
            all.push(tail);
        }
    }
    all
}

/// A graph of at most 32 nodes.
#[derive(Clone)]
struct Matrix(Vec<u32>);

impl Matrix {
    fn new(nodes: usize) -> Matrix {
        Matrix(vec![0; nodes])
    }

    fn add(&mut self, from: usize, to: usize) {
        if from != to {
            self.0[from] |= 1 << to;
        }
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] & 1 << to != 0
    }

    fn and(&self, other: &Matrix) -> Matrix {
        Matrix(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let nodes = self.0.len();
        (0..nodes)
            .flat_map(move |from| (0..nodes).map(move |to| (from, to)))
            .filter(|(a, b)| self.has(*a, *b))
    }

    fn closure(&self) -> Matrix {
        let mut reachable = self.clone();
        for middle in 0..reachable.0.len() {
            for from in 0..reachable.0.len() {
                if reachable.has(from, middle) {
                    reachable.0[from] |= reachable.0[middle];
                }
            }
        }
        reachable
    }

    fn is_acyclic(&self) -> bool {
        let reachable = self.closure();
        (0..reachable.0.len()).all(|node| !reachable.has(node, node))
    }
}

//! Analyses a replay in which no transaction can run: the waits-for graph has a cycle.
//!
//! A wait is certain, or it follows from choices of the replay. The choices on a cycle cannot all
//! be right: they are a nogood. If there are none, the history is a violation. A nogood with
//! several alternatives makes a disjunctive wait (for one of several transactions); if only such
//! waits are left, the closed set of transactions reachable from one of them with one reason each
//! is used: whichever of them came first would still have to wait for another.

use super::problem::Goal;
use super::replay::{Choice, Nogood, Replay, State};
use crate::types::{INITIAL, NONE};
use std::collections::VecDeque;

/// More transactions than this are not explored in one stall.
const MOST: usize = 20_000;
/// How many are explored before the first attempt to find a cycle among them.
const ENOUGH: usize = 256;
/// From how many of them cycles are searched.
const STARTS: usize = 64;

/// Why one transaction waits for another.
#[derive(Clone, Copy)]
enum WaitReason {
    Certain,
    Inferred(u32),
    Chosen(Choice),
    Learned(u32),
}

/// A wait for `through`; `to` is the node of the next transaction of its session.
#[derive(Clone, Copy)]
struct Wait {
    to: u32,
    through: u32,
    reason: WaitReason,
    cost: u32,
}

#[derive(Default)]
pub(super) struct Stall {
    nodes: Vec<u32>,
    /// For each transaction its index in `nodes`, if it is there.
    position: Vec<u32>,
    starts: Vec<u32>,
    waits: Vec<Wait>,
    /// Nogoods with several alternatives, with the node of the waiting transaction.
    disjunctive: Vec<(u32, u32)>,
    cost: Vec<u32>,
    by: Vec<[u32; 2]>,
    /// The number of waits visited.
    pub steps: u64,
}

impl Stall {
    pub fn new(txns: usize) -> Stall {
        Stall { position: vec![0; txns], ..Stall::default() }
    }

    /// Derives a nogood from the stalled replay, unless too many transactions are involved.
    pub fn nogood(&mut self, replay: &Replay, first: u32) -> Option<Nogood> {
        self.nodes.clear();
        self.starts.clear();
        self.waits.clear();
        self.disjunctive.clear();
        if replay.certain.sessions {
            for &head in &replay.session_head {
                if head != NONE {
                    self.node(head);
                }
            }
        } else {
            self.node(first);
        }
        let mut enough = ENOUGH;
        self.starts.push(0);
        while self.explored() < MOST {
            while self.explored() < self.nodes.len().min(enough) {
                self.add_waits(replay, self.explored() as u32);
                self.starts.push(self.waits.len() as u32);
            }
            self.steps += (self.explored() + self.waits.len()) as u64;
            if let Some(nogood) = self.cheapest_cycle(replay) {
                return Some(nogood);
            }
            if self.explored() == self.nodes.len() {
                return Some(self.closed_set(replay));
            }
            enough *= 4;
        }
        None
    }

    /// The number of nodes whose waits are known; the rest have only been mentioned.
    fn explored(&self) -> usize {
        self.starts.len() - 1
    }

    fn node(&mut self, txn: u32) -> u32 {
        let known = self.position[txn as usize];
        if self.nodes.get(known as usize) == Some(&txn) {
            return known;
        }
        self.position[txn as usize] = self.nodes.len() as u32;
        self.nodes.push(txn);
        self.nodes.len() as u32 - 1
    }

    fn wait(&mut self, replay: &Replay, through: u32, reason: WaitReason, cost: u32) {
        let to = self.node(representative(replay, through));
        self.waits.push(Wait { to, through, reason, cost });
    }

    fn add_waits(&mut self, replay: &Replay, node: u32) {
        let txn = self.nodes[node as usize];
        if replay.state[txn as usize] == State::Waiting && replay.missing[txn as usize] > 0 {
            self.add_missing(replay, txn);
            return;
        }
        self.add_overwriting(replay, txn);
        if replay.state[txn as usize] == State::Waiting {
            self.add_nogoods(replay, node);
        }
    }

    fn add_missing(&mut self, replay: &Replay, txn: u32) {
        let (certain, inferred) = (replay.certain, replay.inferred);
        let done = |other: u32| replay.state[other as usize] == State::Done;
        let mut add = |other: u32, reason| {
            if !done(other) {
                self.wait(replay, other, reason, 0);
            }
        };
        let previous = certain.session_previous[txn as usize];
        if previous != NONE {
            add(previous, WaitReason::Certain);
        }
        for &(_, writer) in certain.problem.reads.of(txn) {
            if writer != INITIAL {
                add(writer, WaitReason::Certain);
            }
        }
        for slot in certain.slots(txn) {
            let previous = certain.versions.previous[slot as usize];
            if previous != NONE && !certain.versions.is_initial(previous) {
                add(certain.versions.writer[previous as usize], WaitReason::Certain);
            }
        }
        if !inferred.list.is_empty() {
            for &position in inferred.into.of(txn) {
                add(inferred.list[position as usize].from, WaitReason::Inferred(position));
            }
        }
        if let Some(times) = &certain.times
            && replay.ended < times.ended_before[txn as usize]
        {
            add(times.ends[replay.ended as usize], WaitReason::Certain);
        }
    }

    fn add_overwriting(&mut self, replay: &Replay, txn: u32) {
        let (problem, versions) = (replay.certain.problem, replay.certain.versions);
        let begun = replay.state[txn as usize] == State::Begun;
        for slot in replay.certain.slots(txn) {
            let item = problem.writes.all[slot as usize];
            let [version, first] = replay.current[item as usize];
            let after_run = match versions.is_initial(first) {
                true => (WaitReason::Certain, 0),
                false => (WaitReason::Chosen((versions.writer[first as usize], txn)), 1),
            };
            let holder = replay.locked[item as usize];
            let next = versions.next[version as usize];
            if !begun && holder != NONE {
                let continues = next != NONE && versions.writer[next as usize] == holder;
                let (reason, cost) =
                    if continues { after_run } else { (WaitReason::Chosen((holder, txn)), 1) };
                self.wait(replay, holder, reason, cost);
            } else if next != NONE && next != slot {
                self.wait(replay, versions.writer[next as usize], after_run.0, after_run.1);
            } else if begun || replay.certain.goal == Goal::Serializable {
                let (reason, cost) =
                    if next == slot { (WaitReason::Certain, 0) } else { after_run };
                for &reader in versions.readers.of(version) {
                    if reader != txn && replay.state[reader as usize] == State::Waiting {
                        self.wait(replay, reader, reason, cost);
                    }
                }
            }
        }
    }

    fn add_nogoods(&mut self, replay: &Replay, node: u32) {
        let txn = self.nodes[node as usize];
        let forbidding: Vec<u32> = replay.forbidding(txn).collect();
        for number in forbidding {
            let choices = &replay.nogoods[number as usize].choices;
            let mut alternatives = choices.iter().filter(|(earlier, _)| *earlier == txn);
            match (alternatives.next(), alternatives.next()) {
                (Some(&(_, later)), None) => {
                    let cost = choices.len() as u32 - 1;
                    self.wait(replay, later, WaitReason::Learned(number), cost);
                }
                _ => self.disjunctive.push((node, number)),
            }
        }
        // The alternatives are waited for in turn.
        for position in 0..self.disjunctive.len() {
            let (at, number) = self.disjunctive[position];
            if at == node {
                for &(earlier, later) in &replay.nogoods[number as usize].choices {
                    if earlier == txn {
                        self.node(representative(replay, later));
                    }
                }
            }
        }
    }

    fn waits_of(&self, node: u32) -> std::ops::Range<u32> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    /// The cycle with the fewest choices, of those without disjunctive waits.
    fn cheapest_cycle(&mut self, replay: &Replay) -> Option<Nogood> {
        let mut best: Option<(u32, Vec<[u32; 2]>)> = None;
        let mut queue = VecDeque::new();
        for start in 0..self.explored().min(STARTS) as u32 {
            let limit = best.as_ref().map_or(u32::MAX, |(cost, _)| *cost);
            if limit <= 1 || limit <= 2 && start >= 8 {
                break;
            }
            self.cost.clear();
            self.cost.resize(self.nodes.len(), u32::MAX);
            self.by.resize(self.nodes.len(), [NONE; 2]);
            let mut back = (limit, NONE, NONE);
            queue.clear();
            queue.push_back((start, 0));
            while let Some((node, cost)) = queue.pop_front() {
                if cost >= back.0 || cost > self.cost[node as usize] {
                    continue;
                }
                self.steps += u64::from(self.waits_of(node).end - self.waits_of(node).start);
                for number in self.waits_of(node) {
                    let wait = self.waits[number as usize];
                    let cost = cost + wait.cost;
                    if wait.to as usize >= self.explored() {
                        continue;
                    }
                    if wait.to == start {
                        if cost < back.0 {
                            back = (cost, node, number);
                        }
                    } else if cost < self.cost[wait.to as usize] && cost < back.0 {
                        self.cost[wait.to as usize] = cost;
                        self.by[wait.to as usize] = [node, number];
                        match wait.cost {
                            0 => queue.push_front((wait.to, cost)),
                            _ => queue.push_back((wait.to, cost)),
                        }
                    }
                }
            }
            if back.1 != NONE {
                let mut cycle = vec![[back.1, back.2]];
                let mut node = back.1;
                while node != start {
                    cycle.push(self.by[node as usize]);
                    node = self.by[node as usize][0];
                }
                best = Some((back.0, cycle));
            }
        }
        // If there are many nodes, none of the first may lie on a cycle.
        let cycle = match best {
            Some((_, cycle)) => cycle,
            None => self.any_cycle()?,
        };
        let mut nogood = Nogood::default();
        for [node, number] in cycle {
            self.add_premises(replay, node, number, &mut nogood);
        }
        Some(normalize(nogood))
    }

    /// Any cycle, found by depth-first search.
    fn any_cycle(&self) -> Option<Vec<[u32; 2]>> {
        // 0: not visited, 1: on the path, 2: leads to no cycle.
        let mut seen = vec![0u8; self.nodes.len()];
        seen[self.explored()..].fill(2);
        for start in 0..self.explored() as u32 {
            if seen[start as usize] != 0 {
                continue;
            }
            seen[start as usize] = 1;
            let mut path = vec![[start, self.starts[start as usize]]];
            while let Some(&[node, number]) = path.last() {
                if number == self.starts[node as usize + 1] {
                    seen[node as usize] = 2;
                    path.pop();
                    continue;
                }
                let to = self.waits[number as usize].to;
                match seen[to as usize] {
                    0 => {
                        seen[to as usize] = 1;
                        path.push([to, self.starts[to as usize]]);
                    }
                    1 => {
                        let from = path.iter().position(|[node, _]| *node == to)?;
                        return Some(path.split_off(from));
                    }
                    _ => path.last_mut().expect("it is the last")[1] += 1,
                }
            }
        }
        None
    }

    /// The transactions that are reachable from one transaction with one reason each, chosen so
    /// that the choices are few.
    fn closed_set(&mut self, replay: &Replay) -> Nogood {
        let mut best: Option<Nogood> = None;
        for start in 0..self.nodes.len().min(STARTS) as u32 {
            let mut nogood = Nogood::default();
            let mut inside = vec![false; self.nodes.len()];
            self.steps += self.nodes.len() as u64;
            let mut open = vec![start];
            inside[start as usize] = true;
            while let Some(node) = open.pop() {
                let cheapest = self.waits_of(node).min_by_key(|w| self.waits[*w as usize].cost);
                let mut reached = Vec::new();
                if let Some(number) = cheapest {
                    self.add_premises(replay, node, number, &mut nogood);
                    reached.push(self.waits[number as usize].to);
                } else if let Some((_, number)) =
                    self.disjunctive.iter().find(|(at, _)| *at == node)
                {
                    let txn = self.nodes[node as usize];
                    nogood.transactions.push(txn);
                    nogood.nogoods.push(*number);
                    for &(earlier, later) in &replay.nogoods[*number as usize].choices {
                        if earlier == txn {
                            nogood.transactions.push(later);
                            reached.push(self.position[representative(replay, later) as usize]);
                        } else {
                            nogood.choices.push((earlier, later));
                        }
                    }
                }
                for to in reached {
                    if !std::mem::replace(&mut inside[to as usize], true) {
                        open.push(to);
                    }
                }
            }
            nogood = normalize(nogood);
            if best.as_ref().is_none_or(|best| nogood.choices.len() < best.choices.len()) {
                best = Some(nogood);
            }
        }
        best.unwrap_or_default()
    }

    /// Adds the premises of a wait.
    fn add_premises(&self, replay: &Replay, node: u32, number: u32, nogood: &mut Nogood) {
        let wait = self.waits[number as usize];
        let txn = self.nodes[node as usize];
        nogood.transactions.extend([txn, wait.through]);
        match wait.reason {
            WaitReason::Certain => {}
            WaitReason::Inferred(position) => nogood.inferences.push(position),
            WaitReason::Chosen(choice) => {
                nogood.transactions.push(choice.0);
                nogood.choices.push(choice);
            }
            WaitReason::Learned(other) => {
                nogood.nogoods.push(other);
                let choices = &replay.nogoods[other as usize].choices;
                nogood.choices.extend(choices.iter().filter(|(earlier, _)| *earlier != txn));
            }
        }
    }
}

fn representative(replay: &Replay, txn: u32) -> u32 {
    match replay.certain.sessions {
        true => replay.session_head[replay.certain.problem.session_of[txn as usize] as usize],
        false => txn,
    }
}

fn normalize(mut nogood: Nogood) -> Nogood {
    nogood.choices.sort_unstable();
    nogood.choices.dedup();
    for list in [&mut nogood.transactions, &mut nogood.nogoods, &mut nogood.inferences] {
        list.sort_unstable();
        list.dedup();
        list.shrink_to_fit();
    }
    nogood
}

//! Timestamp ordering (appendix E.1): every transaction has a timestamp from when it enters,
//! and conflicting operations are executed in the order of timestamps, or refused.
//!
//! The order of timestamps follows from begins that do not overlap, from conflicting writes
//! that do not overlap (rule 1), and from reads: the writer of a version is older than its
//! reader (rule 2). This leaves open transactions whose begins overlap and that wrote the same
//! item with overlapping writes. For each group of them orders are tried until the reads
//! of these items are explained (rule 3); what all orders that explain them have in common is
//! known, the rest is chosen.

use super::chains::Chains;
use super::facts::{Facts, place};
use super::reads::Reads;
use super::{Ambiguity, Edges, ProtocolViolation, Rule};
use isolde_model::profile::ReadVisibility;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

type Tx = u32;

pub(super) fn rules(facts: &Facts<'_>, edges: &mut Edges<'_, '_>, budget: u64) {
    let lasting = |at: u32| facts.commit_of(at).is_some();
    let written = Chains::new(facts, lasting, |at| facts.operation(at).end);
    let mut stamps = Stamps::new(facts, &written);
    let groups = stamps.open_groups(&written);
    let mut budget = budget;
    for group in groups {
        stamps.solve(&group, &written, edges, &mut budget);
    }
    let rank = stamps.ranks(edges);
    let by_rank = |at: u32| u64::from(rank[facts.operation(at).transaction as usize]);
    let committed = Chains::new(facts, lasting, by_rank);
    let all = Chains::new(facts, |_| true, by_rank);
    for item in 0..committed.items() {
        let of = committed.of(item);
        for pair in of.windows(2).filter(|pair| pair[0].transaction != pair[1].transaction) {
            let (first, second) = (&pair[0], &pair[1]);
            let known = !stamps.chosen.contains(&(first.transaction, second.transaction));
            let rule = if known { Rule::Timestamp } else { Rule::Chosen };
            if !edges.add(first.write, second.write, rule) {
                edges.violations(ProtocolViolation::NoTimestamps, second.write, Some(first.write));
            }
        }
    }
    stamps.reads_before_writes(&committed, edges);
    Reads { committed: &committed, all: &all, current: false }.add_edges(facts, edges);
}

struct Stamps<'f, 't> {
    facts: &'f Facts<'t>,
    /// For each transaction the younger ones, as far as rules 1 and 2 determine.
    younger: Vec<Vec<Tx>>,
    /// Pairs whose order was chosen.
    chosen: HashSet<(Tx, Tx)>,
}

impl<'f, 't> Stamps<'f, 't> {
    fn new(facts: &'f Facts<'t>, written: &Chains) -> Stamps<'f, 't> {
        let younger = vec![Vec::new(); facts.transactions.len()];
        let mut stamps = Stamps { facts, younger, chosen: HashSet::new() };
        for item in 0..written.items() {
            let of = written.of(item);
            for (at, later) in of.iter().enumerate() {
                // More than there are sessions cannot overlap, so that what lies further
                // back is older than one of these.
                let mut apart = 0;
                for earlier in of[..at].iter().rev() {
                    if facts.must(earlier.write, later.write) {
                        stamps.say(earlier.transaction, later.transaction);
                        apart += 1;
                    }
                    if apart > facts.trace.sessions.len() {
                        break;
                    }
                }
            }
        }
        for at in &facts.by_end {
            let reader = facts.operation(*at).transaction;
            for access in facts.reads(*at) {
                if let Some(place) = written.find(*access) {
                    stamps.say(written.at(place).transaction, reader);
                }
            }
        }
        stamps
    }

    fn say(&mut self, older: Tx, younger: Tx) {
        if older == younger || self.began_before(older, younger) {
            return;
        }
        let of = &mut self.younger[older as usize];
        if !of.contains(&younger) {
            of.push(younger);
        }
    }

    fn began_before(&self, one: Tx, other: Tx) -> bool {
        let begin = |tx: Tx| self.facts.transactions[tx as usize].begin;
        begin(one).zip(begin(other)).is_some_and(|(one, other)| self.facts.must(one, other))
    }

    /// Whether the rules imply that one is older, over a limited number of steps.
    fn is_older(&self, one: Tx, other: Tx) -> bool {
        const STEPS: usize = 64;
        if self.began_before(one, other) || self.younger[one as usize].contains(&other) {
            return true;
        }
        let mut seen: HashSet<Tx> = HashSet::from([one]);
        let mut next = vec![one];
        while let Some(tx) = next.pop() {
            for younger in &self.younger[tx as usize] {
                if *younger == other || self.began_before(*younger, other) {
                    return true;
                }
                if seen.len() < STEPS && seen.insert(*younger) {
                    next.push(*younger);
                }
            }
        }
        false
    }

    /// Transactions with writes of an item that no rule orders, put together where they
    /// share one; and the pairs.
    fn open_groups(&self, written: &Chains) -> Vec<Group> {
        let mut pairs: Vec<(Tx, Tx, u32)> = Vec::new();
        for item in 0..written.items() {
            let of = written.of(item);
            for (at, later) in of.iter().enumerate() {
                for earlier in of[..at].iter().rev() {
                    let (a, b) = (earlier.transaction, later.transaction);
                    if self.facts.must(earlier.write, later.write) {
                        break;
                    }
                    if a != b && !self.is_older(a, b) && !self.is_older(b, a) {
                        pairs.push((a, b, place(item)));
                    }
                }
            }
        }
        let mut leader: BTreeMap<Tx, Tx> = BTreeMap::new();
        fn find(leader: &mut BTreeMap<Tx, Tx>, tx: Tx) -> Tx {
            let mut at = tx;
            while let Some(up) = leader.get(&at).copied().filter(|up| *up != at) {
                at = up;
            }
            leader.insert(tx, at);
            at
        }
        for (a, b, _) in &pairs {
            let (a, b) = (find(&mut leader, *a), find(&mut leader, *b));
            leader.insert(a.max(b), a.min(b));
        }
        let mut groups: BTreeMap<Tx, Group> = BTreeMap::new();
        for (a, b, item) in pairs {
            let group = groups.entry(find(&mut leader, a)).or_default();
            group.members.extend([a, b]);
            group.items.push(item);
            group.pairs.push((a, b));
        }
        let tidy = |mut group: Group| {
            group.members.sort_unstable();
            group.members.dedup();
            group.items.sort_unstable();
            group.items.dedup();
            group
        };
        groups.into_values().map(tidy).collect()
    }

    /// Tries orders of a group.
    fn solve(
        &mut self,
        group: &Group,
        written: &Chains,
        edges: &mut Edges<'_, '_>,
        budget: &mut u64,
    ) {
        let reads = self.reads_of(group, written);
        let mut search = Search {
            stamps: self,
            group,
            reads: &reads,
            budget,
            line: Vec::new(),
            found: Vec::new(),
        };
        let whole = search.go();
        let found = std::mem::take(&mut search.found);
        let name = |tx: Tx| self.facts.transactions[tx as usize].begin.unwrap_or(0);
        let named = (name(group.pairs[0].0), Some(name(group.pairs[0].1)));
        if !whole {
            edges.open(Ambiguity::CutOff, named.0, named.1);
        } else if found.is_empty() {
            edges.violations(ProtocolViolation::NoTimestamps, named.0, named.1);
        }
        let first = found.first().cloned().unwrap_or_else(|| group.members.clone());
        let place = |line: &[Tx], tx: Tx| line.iter().position(|other| *other == tx);
        for (a, b) in &group.pairs {
            let (a, b) = if place(&first, *a) < place(&first, *b) { (*a, *b) } else { (*b, *a) };
            let agreed =
                whole && !found.is_empty() && found.iter().all(|l| place(l, a) < place(l, b));
            self.say(a, b);
            if !agreed {
                edges.open(Ambiguity::TimestampsOpen, name(a), Some(name(b)));
                self.chosen.insert((a, b));
            }
        }
    }

    /// The reads of the items of a group: reader, writer of the version read, another writer.
    fn reads_of(&self, group: &Group, written: &Chains) -> Vec<(Tx, Option<Tx>, Tx)> {
        let mut found = Vec::new();
        let (mut from, mut to) = (u64::MAX, 0);
        for member in &group.members {
            for at in self.facts.operations_of(*member as usize) {
                from = from.min(self.facts.operation(*at).start);
                to = to.max(self.facts.operation(*at).end);
            }
        }
        // Only readers close in time to the group.
        let first =
            { &self.facts.by_end }.partition_point(|at| self.facts.operation(*at).end < from);
        let near = self.facts.by_end[first..].iter();
        let near =
            near.take_while(|at| self.facts.operation(**at).start <= to.saturating_add(to - from));
        for at in near.take(4096) {
            let reader = self.facts.operation(*at).transaction;
            for access in self.facts.reads(*at) {
                if group.items.binary_search(&access.item).is_err() {
                    continue;
                }
                let writer = written.find(*access).map(|place| written.at(place).transaction);
                if writer.is_none() && access.version != 0 {
                    continue;
                }
                let writers: HashSet<Tx> =
                    written.of(access.item as usize).iter().map(|made| made.transaction).collect();
                for other in &group.members {
                    if *other != reader && Some(*other) != writer && writers.contains(other) {
                        found.push((reader, writer, *other));
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The position of each transaction in one total order of timestamps.
    fn ranks(&self, edges: &mut Edges<'_, '_>) -> Vec<u32> {
        let facts = self.facts;
        let count = facts.transactions.len();
        let begin = |tx: usize| facts.transactions[tx].begin.map(|at| facts.operation(at));
        let mut waits = vec![0u32; count];
        self.younger.iter().flatten().for_each(|younger| waits[*younger as usize] += 1);
        let present: Vec<usize> = (0..count).filter(|tx| begin(*tx).is_some()).collect();
        let key = |tx: usize, end: bool| begin(tx).map_or(0, |o| if end { o.end } else { o.start });
        let (mut ends, mut starts) = (present.clone(), present.clone());
        ends.sort_by_key(|tx| key(*tx, true));
        starts.sort_by_key(|tx| key(*tx, false));
        let mut rank = vec![u32::MAX; count];
        let (mut next_end, mut next_start, mut ranked) = (0, 0, 0u32);
        let mut ready: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut admitted = vec![false; count];
        while (ranked as usize) < present.len() {
            while rank[ends[next_end]] != u32::MAX {
                next_end += 1;
            }
            let missing = ends[next_end];
            while next_start < starts.len() && key(starts[next_start], false) <= key(missing, true)
            {
                let tx = starts[next_start];
                next_start += 1;
                admitted[tx] = true;
                if waits[tx] == 0 {
                    ready.push(Reverse((key(tx, true), tx)));
                }
            }
            let now = ready.pop().map_or_else(
                || {
                    let at = facts.transactions[missing].begin.unwrap_or(0);
                    edges.violations(ProtocolViolation::NoTimestamps, at, None);
                    missing
                },
                |Reverse((_, tx))| tx,
            );
            if rank[now] != u32::MAX {
                continue;
            }
            rank[now] = ranked;
            ranked += 1;
            for younger in &self.younger[now] {
                let waits = &mut waits[*younger as usize];
                *waits = waits.saturating_sub(1);
                if *waits == 0 && admitted[*younger as usize] {
                    ready.push(Reverse((key(*younger as usize, true), *younger as usize)));
                }
            }
        }
        rank
    }

    /// Orders reads before younger writes: after such a write the read would have been refused.
    fn reads_before_writes(&self, committed: &Chains, edges: &mut Edges<'_, '_>) {
        for at in &self.facts.by_end {
            let of = self.facts.transaction_of(*at);
            if of.read_visibility == ReadVisibility::Latest {
                continue;
            }
            let reader = self.facts.operation(*at).transaction;
            for access in self.facts.reads(*at) {
                let here = committed.find(*access);
                if here.is_none() && access.version != 0 {
                    continue;
                }
                let Some(next) = committed.after(access.item, here) else { continue };
                let next = committed.at(next);
                let writer = here.map(|here| committed.at(here).transaction);
                let open = writer.is_some_and(|w| self.chosen.contains(&(w, next.transaction)));
                if next.transaction != reader {
                    let rule = if open { Rule::Chosen } else { Rule::Timestamp };
                    edges.add(*at, next.write, rule);
                }
            }
        }
    }
}

/// Transactions whose timestamps have to be ordered together.
#[derive(Default)]
struct Group {
    members: Vec<Tx>,
    items: Vec<u32>,
    pairs: Vec<(Tx, Tx)>,
}

struct Search<'s, 'f, 't> {
    stamps: &'s Stamps<'f, 't>,
    group: &'s Group,
    /// Reader, writer of the version read, another writer of the item.
    reads: &'s [(Tx, Option<Tx>, Tx)],
    budget: &'s mut u64,
    line: Vec<Tx>,
    found: Vec<Vec<Tx>>,
}

/// The maximum number of orders to compare.
const ORDERS: usize = 200;

impl Search<'_, '_, '_> {
    /// False when it was cut off.
    fn go(&mut self) -> bool {
        if *self.budget == 0 || self.found.len() > ORDERS {
            return false;
        }
        *self.budget -= 1;
        if self.line.len() == self.group.members.len() {
            if self.explains() {
                self.found.push(self.line.clone());
            }
            return true;
        }
        for next in self.group.members.clone() {
            if self.line.contains(&next) {
                continue;
            }
            let older_left = self.group.members.iter().any(|other| {
                *other != next && !self.line.contains(other) && self.stamps.is_older(*other, next)
            });
            if older_left {
                continue;
            }
            self.line.push(next);
            let whole = self.go();
            self.line.pop();
            if !whole {
                return false;
            }
        }
        true
    }

    /// Whether no transaction wrote between the writer of a version and its reader.
    fn explains(&self) -> bool {
        let older = |one: Tx, other: Tx| {
            let place = |tx: Tx| self.line.iter().position(|member| *member == tx);
            match (place(one), place(other)) {
                (Some(one), Some(other)) => Some(one < other),
                _ if self.stamps.is_older(one, other) => Some(true),
                _ if self.stamps.is_older(other, one) => Some(false),
                _ => None,
            }
        };
        self.reads.iter().all(|(reader, writer, other)| {
            let before_writer = writer.map_or(Some(false), |writer| older(*other, writer));
            before_writer != Some(false) || older(*other, *reader) != Some(true)
        })
    }
}

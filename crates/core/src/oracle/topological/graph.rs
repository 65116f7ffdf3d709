//! The statement-dependency graph (TxCheck, definition 1): statements of committed
//! transactions, and who must come before whom so that each sees what it saw.

use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

/// The seven dependencies of the paper (definitions 2 to 8), and one that it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    ItemRead,
    ItemWrite,
    ItemAnti,
    PredicateRead,
    PredicateWrite,
    PredicateAnti,
    ValueWrite,
    /// A key that one frees or brings and the other takes or needs: unique keys and foreign
    /// keys are checked against what is there, whatever a snapshot shows.
    Key,
}

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::ItemRead,
        Kind::ItemWrite,
        Kind::ItemAnti,
        Kind::PredicateRead,
        Kind::PredicateWrite,
        Kind::PredicateAnti,
        Kind::ValueWrite,
        Kind::Key,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::ItemRead => "item-read",
            Kind::ItemWrite => "item-write",
            Kind::ItemAnti => "item-anti",
            Kind::PredicateRead => "predicate-read",
            Kind::PredicateWrite => "predicate-write",
            Kind::PredicateAnti => "predicate-anti",
            Kind::ValueWrite => "value-write",
            Kind::Key => "key",
        }
    }
}

/// A statement: which step of the case it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub step: usize,
    /// As it is written, with its session: `s1.2  update t …`.
    pub label: String,
    pub sql: String,
}

/// Statements and their dependencies, by places in `nodes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// From whom must come first to who depends on it, and why: a row of a table.
    pub edges: BTreeMap<(usize, usize, Kind), String>,
}

impl Graph {
    pub fn add(&mut self, from: usize, to: usize, kind: Kind, row: &str) {
        if from != to {
            self.edges.entry((from, to, kind)).or_insert_with(|| row.to_string());
        }
    }

    /// How many edges there are of each kind.
    pub fn count(&self) -> BTreeMap<Kind, u64> {
        let mut count = BTreeMap::new();
        for (_, _, kind) in self.edges.keys() {
            *count.entry(*kind).or_default() += 1;
        }
        count
    }

    fn followers(&self) -> Vec<BTreeSet<usize>> {
        let mut followers = vec![BTreeSet::new(); self.nodes.len()];
        for (from, to, _) in self.edges.keys() {
            followers[*from].insert(*to);
        }
        followers
    }

    /// The statements that are in cycles, each with how many of its edges are.
    pub fn in_cycles(&self) -> Vec<(usize, usize)> {
        let followers = self.followers();
        let reach: Vec<BTreeSet<usize>> = (0..self.nodes.len())
            .map(|start| {
                let mut found = BTreeSet::new();
                let mut open: Vec<usize> = followers[start].iter().copied().collect();
                while let Some(at) = open.pop() {
                    if found.insert(at) {
                        open.extend(&followers[at]);
                    }
                }
                found
            })
            .collect();
        let together = |a: usize, b: usize| reach[a].contains(&b) && reach[b].contains(&a);
        let edges = |node: usize| {
            let of_node = self.edges.keys().filter(|(from, to, _)| *from == node || *to == node);
            of_node.filter(|(from, to, _)| together(*from, *to)).count()
        };
        let cyclic = (0..self.nodes.len()).filter(|node| reach[*node].contains(node));
        cyclic.map(|node| (node, edges(node))).collect()
    }

    /// Orders in which every statement comes behind all that it depends on: all of them if
    /// there are no more than `most`, else that many at random. None of a graph with a cycle.
    pub fn orders(&self, most: usize, random: &mut Random) -> Vec<Vec<usize>> {
        let followers = self.followers();
        let mut before = vec![0usize; self.nodes.len()];
        followers.iter().flatten().for_each(|to| before[*to] += 1);
        let mut all = Vec::new();
        every_order(&followers, &mut before.clone(), &mut Vec::new(), most + 1, &mut all);
        if all.len() <= most {
            return all;
        }
        let mut orders: Vec<Vec<usize>> = Vec::new();
        // The same order may be drawn twice where there are few.
        for _ in 0..most * 4 {
            let order = random_order(&followers, before.clone(), random);
            if !orders.contains(&order) {
                orders.push(order);
            }
            if orders.len() == most {
                break;
            }
        }
        orders
    }
}

fn every_order(
    followers: &[BTreeSet<usize>],
    before: &mut Vec<usize>,
    chosen: &mut Vec<usize>,
    most: usize,
    all: &mut Vec<Vec<usize>>,
) {
    if all.len() >= most {
        return;
    }
    if chosen.len() == followers.len() {
        all.push(chosen.clone());
        return;
    }
    let free: Vec<usize> =
        (0..followers.len()).filter(|n| before[*n] == 0 && !chosen.contains(n)).collect();
    for next in free {
        chosen.push(next);
        followers[next].iter().for_each(|to| before[*to] -= 1);
        every_order(followers, before, chosen, most, all);
        followers[next].iter().for_each(|to| before[*to] += 1);
        chosen.pop();
    }
}

fn random_order(
    followers: &[BTreeSet<usize>],
    mut before: Vec<usize>,
    random: &mut Random,
) -> Vec<usize> {
    let mut order = Vec::new();
    let mut free: Vec<usize> = (0..followers.len()).filter(|n| before[*n] == 0).collect();
    while !free.is_empty() {
        let next = free.swap_remove(random.below(free.len()));
        order.push(next);
        for to in &followers[next] {
            before[*to] -= 1;
            if before[*to] == 0 {
                free.push(*to);
            }
        }
        free.sort_unstable();
    }
    order
}

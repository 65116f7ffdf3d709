//! The statement-dependency graph (TxCheck, definition 1): the statements of committed
//! transactions, and which must come before which so that each reads the versions that it read.

use isolde_model::graph;
use isolde_model::random::Random;
use std::collections::BTreeMap;

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
    /// A key that one statement frees or adds and the other takes or needs: unique keys and
    /// foreign keys are checked against the current rows, whatever the snapshot shows.
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

/// A statement as a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its step in the case.
    pub step: usize,
    /// As it is written, with its session: `s1.2  update t …`.
    pub label: String,
    pub sql: String,
}

/// Statements and their dependencies, by positions in `nodes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// From a statement to one that depends on it, with the row that makes it depend.
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

    /// The graph without kinds: at most one edge per pair of statements.
    fn plain(&self) -> graph::Graph {
        let mut plain = graph::Graph::new(self.nodes.len());
        let mut pairs: Vec<(usize, usize)> =
            self.edges.keys().map(|(from, to, _)| (*from, *to)).collect();
        // The edges of one pair are neighbours.
        pairs.dedup();
        pairs.into_iter().for_each(|(from, to)| plain.add_edge(from, to));
        plain
    }

    /// The statements on cycles, each with the number of its edges that are on cycles.
    pub fn nodes_on_cycles(&self) -> Vec<(usize, usize)> {
        let plain = self.plain();
        let mut component_of = vec![0; self.nodes.len()];
        for (number, component) in plain.components().into_iter().enumerate() {
            component.into_iter().for_each(|node| component_of[node] = number);
        }
        let edges = |node: usize| {
            let of_node = self.edges.keys().filter(|(from, to, _)| *from == node || *to == node);
            of_node.filter(|(from, to, _)| component_of[*from] == component_of[*to]).count()
        };
        plain.nodes_on_cycles().into_iter().map(|node| (node, edges(node))).collect()
    }

    /// Topological orders, in which every statement follows all statements that it depends on: all
    /// of them if there are at most `most`, else that many at random. None if there is a cycle.
    pub fn orders(&self, most: usize, random: &mut Random) -> Vec<Vec<usize>> {
        let plain = self.plain();
        let before = plain.in_degrees();
        let mut all = Vec::new();
        every_order(&plain, &mut before.clone(), &mut Vec::new(), most + 1, &mut all);
        if all.len() <= most {
            return all;
        }
        let mut orders: Vec<Vec<usize>> = Vec::new();
        // The same order may be drawn twice where there are few.
        for _ in 0..most * 4 {
            let order = random_order(&plain, before.clone(), random);
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
    graph: &graph::Graph,
    before: &mut Vec<usize>,
    chosen: &mut Vec<usize>,
    most: usize,
    all: &mut Vec<Vec<usize>>,
) {
    if all.len() >= most {
        return;
    }
    if chosen.len() == graph.len() {
        all.push(chosen.clone());
        return;
    }
    let free: Vec<usize> =
        (0..graph.len()).filter(|n| before[*n] == 0 && !chosen.contains(n)).collect();
    for next in free {
        chosen.push(next);
        graph.successors(next).iter().for_each(|to| before[*to] -= 1);
        every_order(graph, before, chosen, most, all);
        graph.successors(next).iter().for_each(|to| before[*to] += 1);
        chosen.pop();
    }
}

fn random_order(graph: &graph::Graph, mut before: Vec<usize>, random: &mut Random) -> Vec<usize> {
    let mut order = Vec::new();
    let mut free: Vec<usize> = (0..graph.len()).filter(|n| before[*n] == 0).collect();
    while !free.is_empty() {
        let next = free.swap_remove(random.below(free.len()));
        order.push(next);
        for to in graph.successors(next) {
            before[*to] -= 1;
            if before[*to] == 0 {
                free.push(*to);
            }
        }
        free.sort_unstable();
    }
    order
}

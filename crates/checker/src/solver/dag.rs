//! A graph that stays acyclic while edges are added and removed.
//!
//! Every node has a position in an order that all edges respect. An edge against the order
//! triggers a search between the two positions only, after Pearce and Kelly ("A Dynamic
//! Topological Sort Algorithm for Directed Acyclic Graphs", JEA 2007): either it finds the cycle
//! that the edge would close, or the nodes it visited are reordered. Edges are removed in the
//! reverse order of insertion, so the order stays valid.

use super::problem::Dependency;
use crate::digraph::{Successors, topological_sort};
use crate::types::NONE;

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub from: u32,
    pub to: u32,
    /// The dependency that it stands for; none between the begin and the commit of a transaction.
    pub dependency: Option<Dependency>,
    /// The literal that it depends on, or [`NONE`].
    pub literal: u32,
}

#[derive(Default)]
pub(super) struct Dag {
    pub edges: Vec<Edge>,
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// The position of each node in the topological order.
    pub position: Vec<u32>,
    /// By which edge, and in which search, each node was reached last.
    reached_by: Vec<u32>,
    reached_in: Vec<u32>,
    search: u32,
    /// The number of edges visited so far.
    pub steps: u64,
}

impl Dag {
    pub fn new(nodes: usize) -> Dag {
        Dag {
            edges: Vec::new(),
            out: vec![Vec::new(); nodes],
            into: vec![Vec::new(); nodes],
            position: (0..nodes as u32).collect(),
            reached_by: vec![NONE; nodes],
            reached_in: vec![0; nodes],
            search: 0,
            steps: 0,
        }
    }

    pub fn nodes(&self) -> usize {
        self.out.len()
    }

    pub fn out(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.out[node as usize].iter().map(|edge| self.edges[*edge as usize].to)
    }

    /// Adds an edge without maintaining the order; [`Dag::sort`] must follow.
    pub fn add(&mut self, edge: Edge) {
        let number = self.edges.len() as u32;
        self.out[edge.from as usize].push(number);
        self.into[edge.to as usize].push(number);
        self.edges.push(edge);
    }

    /// Sorts the nodes, or returns a shortest cycle.
    pub fn sort(&mut self) -> Result<(), Vec<Edge>> {
        let order = topological_sort(self).map_err(|left| self.shortest_cycle(&left))?;
        for (position, node) in order.into_iter().enumerate() {
            self.position[node as usize] = position as u32;
        }
        Ok(())
    }

    /// A shortest cycle through one of these nodes, of which at least one lies on a cycle.
    fn shortest_cycle(&mut self, through: &[u32]) -> Vec<Edge> {
        // A search from every node of a large component would take too long.
        const ENOUGH: usize = 50_000_000;
        let mut best: Option<Vec<Edge>> = None;
        let mut work = 0;
        for &node in through {
            if best.is_some() && work > ENOUGH {
                break;
            }
            work += self.edges.len();
            if let Some(cycle) = self.path(node, node)
                && best.as_ref().is_none_or(|best| cycle.len() < best.len())
            {
                let shortest_possible = cycle.len() <= 2;
                best = Some(cycle);
                if shortest_possible {
                    break;
                }
            }
        }
        best.expect("a node that could not be sorted lies on a cycle or after one")
    }

    /// A shortest path of at least one edge.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Vec<Edge>> {
        self.search_forward(from, to, u32::MAX).then(|| self.path_found(from, to))
    }

    /// Adds an edge, or returns a shortest path that makes it close a cycle.
    pub fn insert(&mut self, edge: Edge) -> Result<(), Vec<Edge>> {
        let (low, high) = (self.position[edge.to as usize], self.position[edge.from as usize]);
        if low < high {
            if self.search_forward(edge.to, edge.from, high) {
                return Err(self.path_found(edge.to, edge.from));
            }
            self.reorder(edge, low);
        }
        self.add(edge);
        Ok(())
    }

    /// Removes the latest edges until this many are left.
    pub fn shrink(&mut self, edges: usize) {
        while self.edges.len() > edges {
            let edge = self.edges.pop().expect("there are more edges");
            self.out[edge.from as usize].pop();
            self.into[edge.to as usize].pop();
        }
    }

    fn begin_search(&mut self, node: u32) -> Vec<u32> {
        self.search += 1;
        self.reached_in[node as usize] = self.search;
        vec![node]
    }

    /// Searches breadth first, not beyond a position. Reached nodes stay marked.
    fn search_forward(&mut self, from: u32, to: u32, limit: u32) -> bool {
        let mut reached = self.begin_search(from);
        let mut at = 0;
        while at < reached.len() {
            let node = reached[at];
            at += 1;
            self.steps += self.out[node as usize].len() as u64;
            for &number in &self.out[node as usize] {
                let next = self.edges[number as usize].to;
                if next == to {
                    self.reached_by[to as usize] = number;
                    return true;
                }
                if self.reached_in[next as usize] != self.search
                    && self.position[next as usize] <= limit
                {
                    self.reached_in[next as usize] = self.search;
                    self.reached_by[next as usize] = number;
                    reached.push(next);
                }
            }
        }
        false
    }

    fn path_found(&self, from: u32, to: u32) -> Vec<Edge> {
        let mut path = Vec::new();
        let mut node = to;
        loop {
            let edge = self.edges[self.reached_by[node as usize] as usize];
            path.push(edge);
            node = edge.from;
            if node == from {
                break;
            }
        }
        path.reverse();
        path
    }

    /// Moves the nodes that lead to the edge's start before those that its end leads to.
    fn reorder(&mut self, edge: Edge, low: u32) {
        let high = self.position[edge.from as usize];
        let mut after = self.begin_search(edge.to);
        let mut at = 0;
        while at < after.len() {
            self.steps += self.out[after[at] as usize].len() as u64;
            for number in &self.out[after[at] as usize] {
                let next = self.edges[*number as usize].to;
                if self.reached_in[next as usize] != self.search
                    && self.position[next as usize] < high
                {
                    self.reached_in[next as usize] = self.search;
                    after.push(next);
                }
            }
            at += 1;
        }
        let mut before = self.begin_search(edge.from);
        let mut at = 0;
        while at < before.len() {
            self.steps += self.into[before[at] as usize].len() as u64;
            for number in &self.into[before[at] as usize] {
                let next = self.edges[*number as usize].from;
                if self.reached_in[next as usize] != self.search
                    && self.position[next as usize] > low
                {
                    self.reached_in[next as usize] = self.search;
                    before.push(next);
                }
            }
            at += 1;
        }
        after.sort_unstable_by_key(|node| self.position[*node as usize]);
        before.sort_unstable_by_key(|node| self.position[*node as usize]);
        let mut positions: Vec<u32> =
            before.iter().chain(&after).map(|node| self.position[*node as usize]).collect();
        positions.sort_unstable();
        for (node, position) in before.iter().chain(&after).zip(positions) {
            self.position[*node as usize] = position;
        }
    }
}

impl Successors for Dag {
    fn len(&self) -> u32 {
        self.nodes() as u32
    }

    fn for_each_successor(&self, node: u32, visit: impl FnMut(u32)) {
        self.out(node).for_each(visit);
    }
}

//! A graph that stays acyclic while edges come and go.
//!
//! Nodes keep places in an order that every edge respects. An edge against the
//! order makes a search between the two places only, after Pearce and Kelly: either
//! it finds the cycle that the edge would close, or the nodes found trade places.
//! Edges leave in the reverse order of their coming, so the order stays right.

use super::problem::Order;
use super::versions::NONE;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub from: u32,
    pub to: u32,
    /// What it says of the two transactions; nothing between begin and commit of one.
    pub order: Option<Order>,
    /// The choice that it depends on, or [`NONE`].
    pub literal: u32,
}

#[derive(Default)]
pub(super) struct Dag {
    pub edges: Vec<Edge>,
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
    /// The place of each node.
    pub place: Vec<u32>,
    /// By which edge a search reached each node, and in which search.
    reached_by: Vec<u32>,
    reached_in: Vec<u32>,
    search: u32,
    /// Edges that were looked at.
    pub steps: u64,
}

impl Dag {
    pub fn new(nodes: usize) -> Dag {
        Dag {
            edges: Vec::new(),
            out: vec![Vec::new(); nodes],
            into: vec![Vec::new(); nodes],
            place: (0..nodes as u32).collect(),
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

    /// Adds an edge without a look at the order: [`Dag::sort`] comes after these.
    pub fn add(&mut self, edge: Edge) {
        let number = self.edges.len() as u32;
        self.out[edge.from as usize].push(number);
        self.into[edge.to as usize].push(number);
        self.edges.push(edge);
    }

    /// Gives each node its place, or returns a shortest cycle.
    pub fn sort(&mut self) -> Result<(), Vec<Edge>> {
        let mut missing: Vec<u32> = self.into.iter().map(|edges| edges.len() as u32).collect();
        let mut free: VecDeque<u32> =
            (0..self.nodes() as u32).filter(|node| missing[*node as usize] == 0).collect();
        let mut placed = 0;
        while let Some(node) = free.pop_front() {
            self.place[node as usize] = placed;
            placed += 1;
            for &edge in &self.out[node as usize] {
                let to = self.edges[edge as usize].to;
                missing[to as usize] -= 1;
                if missing[to as usize] == 0 {
                    free.push_back(to);
                }
            }
        }
        if placed as usize == self.nodes() {
            return Ok(());
        }
        let left: Vec<u32> =
            (0..self.nodes() as u32).filter(|node| missing[*node as usize] > 0).collect();
        Err(self.shortest_cycle(&left))
    }

    /// A shortest cycle through one of these nodes, of which one has to be on a cycle.
    fn shortest_cycle(&mut self, through: &[u32]) -> Vec<Edge> {
        // A search from every node of a large tangle would take too long.
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
        best.expect("a node that could not be placed lies on a cycle or behind one")
    }

    /// A shortest path of at least one edge.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Vec<Edge>> {
        self.search_forward(from, to, u32::MAX).then(|| self.path_found(from, to))
    }

    /// Adds an edge, or returns a shortest path back that makes it close a cycle.
    pub fn insert(&mut self, edge: Edge) -> Result<(), Vec<Edge>> {
        let (low, high) = (self.place[edge.to as usize], self.place[edge.from as usize]);
        if low < high {
            if self.search_forward(edge.to, edge.from, high) {
                return Err(self.path_found(edge.to, edge.from));
            }
            self.trade_places(edge, low);
        }
        self.add(edge);
        Ok(())
    }

    /// Takes back the latest edges until so many are left.
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

    /// Breadth first, not beyond a place. What was reached stays marked.
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
                    && self.place[next as usize] <= limit
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

    /// What leads to the edge's begin goes before what its end leads to.
    fn trade_places(&mut self, edge: Edge, low: u32) {
        let high = self.place[edge.from as usize];
        let mut after = self.begin_search(edge.to);
        let mut at = 0;
        while at < after.len() {
            self.steps += self.out[after[at] as usize].len() as u64;
            for number in &self.out[after[at] as usize] {
                let next = self.edges[*number as usize].to;
                if self.reached_in[next as usize] != self.search && self.place[next as usize] < high
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
                if self.reached_in[next as usize] != self.search && self.place[next as usize] > low
                {
                    self.reached_in[next as usize] = self.search;
                    before.push(next);
                }
            }
            at += 1;
        }
        after.sort_unstable_by_key(|node| self.place[*node as usize]);
        before.sort_unstable_by_key(|node| self.place[*node as usize]);
        let mut places: Vec<u32> =
            before.iter().chain(&after).map(|node| self.place[*node as usize]).collect();
        places.sort_unstable();
        for (node, place) in before.iter().chain(&after).zip(places) {
            self.place[*node as usize] = place;
        }
    }
}

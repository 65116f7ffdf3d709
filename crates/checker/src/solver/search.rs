//! A search for an order of runs that closes no cycle: conflict-driven clause learning with
//! acyclicity as its theory, as in MonoSAT (AAAI 2015), which Cobra and PolySI use.
//!
//! A variable is a pair of runs of one item; its two literals are the two orders, and a literal
//! that becomes true adds its edges to the graph. A cycle of edges is a clause: not all of their
//! literals are true. Learned clauses record what they were resolved from, so that a
//! contradiction can be presented as a proof.

use super::dag::{Dag, Edge};
use super::layout::Layout;
use super::problem::Budget;
use super::versions::Versions;
use crate::types::NONE;
use std::collections::BinaryHeap;

/// Two runs of an item, each given by its first and its last version.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub item: u32,
    pub runs: [[u32; 2]; 2],
}

/// The origin of a clause.
pub(super) enum Origin {
    /// These edges form a cycle.
    Cycle(Vec<Edge>),
    /// Resolved from a clause whose literals were all false, and for each literal that was resolved
    /// away (it was true) the clause that had implied it.
    Resolved { conflict: u32, implied: Vec<(u32, u32)> },
}

/// A disjunction of literals.
pub(super) struct Clause {
    pub literals: Vec<u32>,
    pub origin: Origin,
}

/// The result of a search.
pub(super) enum SearchResult {
    /// Every pair is ordered.
    Satisfiable,
    /// This clause is false under every choice.
    Unsatisfiable(u32),
    /// The budget ran out.
    OutOfBudget,
}

/// The state of the search.
pub(super) struct Search<'a> {
    versions: &'a Versions,
    layout: Layout,
    pub pairs: Vec<Pair>,
    pub dag: Dag,
    pub clauses: Vec<Clause>,
    /// For each pair the literal that is true, or [`NONE`].
    pub truth: Vec<u32>,
    /// For each pair the clause that implied it, or [`NONE`] for a choice.
    pub reason: Vec<u32>,
    level: Vec<u32>,
    trail: Vec<u32>,
    /// The position of each choice on the trail.
    choices: Vec<usize>,
    /// The number of literals on the trail that were propagated to the clauses.
    propagated: usize,
    /// For each literal on the trail whose edges were added, the number of edges before.
    edges_before: Vec<usize>,
    watches: Vec<Vec<u32>>,
    activity: Vec<f64>,
    activity_increment: f64,
    order: BinaryHeap<(u64, u32)>,
    seen: Vec<bool>,
}

impl<'a> Search<'a> {
    pub fn new(versions: &'a Versions, layout: Layout, dag: Dag, pairs: Vec<Pair>) -> Search<'a> {
        let count = pairs.len();
        Search {
            versions,
            layout,
            dag,
            clauses: Vec::new(),
            truth: vec![NONE; count],
            reason: vec![NONE; count],
            level: vec![0; count],
            trail: Vec::new(),
            choices: Vec::new(),
            propagated: 0,
            edges_before: Vec::new(),
            watches: vec![Vec::new(); 2 * count],
            activity: vec![0.0; count],
            activity_increment: 1.0,
            order: (0..count as u32).map(|pair| (0, pair)).collect(),
            seen: vec![false; count],
            pairs,
        }
    }

    /// The edges that a literal adds.
    pub fn edges_of(&self, literal: u32) -> Vec<Edge> {
        let pair = &self.pairs[literal as usize / 2];
        let [earlier, later] =
            if literal & 1 == 0 { pair.runs } else { [pair.runs[1], pair.runs[0]] };
        let mut edges = Vec::new();
        let push = |edge| edges.push(edge);
        self.layout.overwrites(self.versions, pair.item, earlier[1], later[0], literal, push);
        edges
    }

    /// Orders a pair for good, since the opposite closes this cycle.
    pub fn learn_unit(&mut self, literal: u32, cycle: Vec<Edge>) {
        let clause = self.add_cycle(cycle);
        self.imply(literal, clause);
    }

    pub fn is_true(&self, literal: u32) -> bool {
        self.truth[literal as usize / 2] == literal
    }

    fn is_false(&self, literal: u32) -> bool {
        self.truth[literal as usize / 2] == literal ^ 1
    }

    fn add_cycle(&mut self, cycle: Vec<Edge>) -> u32 {
        let mut literals: Vec<u32> =
            cycle.iter().filter(|e| e.literal != NONE).map(|e| e.literal ^ 1).collect();
        literals.sort_unstable();
        literals.dedup();
        self.clauses.push(Clause { literals, origin: Origin::Cycle(cycle) });
        self.clauses.len() as u32 - 1
    }

    fn imply(&mut self, literal: u32, reason: u32) {
        let pair = literal as usize / 2;
        self.truth[pair] = literal;
        self.reason[pair] = reason;
        self.level[pair] = self.choices.len() as u32;
        self.trail.push(literal);
    }

    /// Propagates the trail to the clauses and the graph. Returns a clause that became false.
    pub fn propagate(&mut self) -> Option<u32> {
        loop {
            while self.propagated < self.trail.len() {
                let literal = self.trail[self.propagated];
                self.propagated += 1;
                if let Some(conflict) = self.propagate_to_clauses(literal ^ 1) {
                    return Some(conflict);
                }
            }
            if self.edges_before.len() == self.trail.len() {
                return None;
            }
            let literal = self.trail[self.edges_before.len()];
            self.edges_before.push(self.dag.edges.len());
            for edge in self.edges_of(literal) {
                if let Err(mut cycle) = self.dag.insert(edge) {
                    cycle.push(edge);
                    return Some(self.add_cycle(cycle));
                }
            }
        }
    }

    fn propagate_to_clauses(&mut self, falsified: u32) -> Option<u32> {
        let mut watching = std::mem::take(&mut self.watches[falsified as usize]);
        let mut kept = 0;
        let mut conflict = None;
        let mut at = 0;
        while at < watching.len() {
            let number = watching[at];
            at += 1;
            let mut literals = std::mem::take(&mut self.clauses[number as usize].literals);
            if literals[0] == falsified {
                literals.swap(0, 1);
            }
            let other = if self.is_true(literals[0]) {
                None
            } else {
                (2..literals.len()).find(|position| !self.is_false(literals[*position]))
            };
            if let Some(position) = other {
                literals.swap(1, position);
                self.watches[literals[1] as usize].push(number);
            } else {
                watching[kept] = number;
                kept += 1;
                if self.is_false(literals[0]) {
                    conflict = Some(number);
                } else if !self.is_true(literals[0]) {
                    self.imply(literals[0], number);
                }
            }
            self.clauses[number as usize].literals = literals;
            if conflict.is_some() {
                break;
            }
        }
        while at < watching.len() {
            watching[kept] = watching[at];
            kept += 1;
            at += 1;
        }
        watching.truncate(kept);
        self.watches[falsified as usize] = watching;
        conflict
    }

    pub fn run(&mut self, budget: &Budget) -> SearchResult {
        let mut conflicts = 0;
        let mut restart_at = 100;
        loop {
            if let Some(conflict) = self.propagate() {
                if self.choices.is_empty() {
                    return SearchResult::Unsatisfiable(conflict);
                }
                conflicts += 1;
                let spent = conflicts > budget.conflicts || self.dag.steps > budget.steps;
                if spent || conflicts % 64 == 0 && budget.stopped() {
                    self.backtrack_to(0);
                    return SearchResult::OutOfBudget;
                }
                self.learn(conflict);
                if conflicts >= restart_at {
                    restart_at = conflicts + conflicts / 2;
                    self.backtrack_to(0);
                }
            } else if let Some(pair) = self.unordered() {
                self.choices.push(self.trail.len());
                let position = |run: usize| {
                    let first = self.pairs[pair as usize].runs[run][0];
                    let writer = self.versions.writer[first as usize];
                    self.dag.position[self.layout.commit(writer) as usize]
                };
                let literal = 2 * pair + u32::from(position(0) > position(1));
                self.imply(literal, NONE);
            } else {
                return SearchResult::Satisfiable;
            }
        }
    }

    fn unordered(&mut self) -> Option<u32> {
        while let Some((_, pair)) = self.order.pop() {
            if self.truth[pair as usize] == NONE {
                return Some(pair);
            }
        }
        None
    }

    fn backtrack_to(&mut self, level: usize) {
        let Some(&length) = self.choices.get(level) else { return };
        self.choices.truncate(level);
        for &literal in &self.trail[length..] {
            let pair = literal / 2;
            self.truth[pair as usize] = NONE;
            self.order.push((self.activity[pair as usize].to_bits(), pair));
        }
        self.trail.truncate(length);
        self.propagated = self.propagated.min(length);
        if self.edges_before.len() > length {
            self.dag.shrink(self.edges_before[length]);
            self.edges_before.truncate(length);
        }
    }

    /// Resolves a false clause until one literal of the latest level is left, backtracks to the
    /// level where that literal is implied, and implies it.
    fn learn(&mut self, conflict: u32) {
        let latest = self.choices.len() as u32;
        let mut learned = vec![NONE];
        let mut implied = Vec::new();
        let mut open = 0;
        let mut clause = conflict;
        let mut position = self.trail.len();
        loop {
            for at in 0..self.clauses[clause as usize].literals.len() {
                let literal = self.clauses[clause as usize].literals[at];
                let pair = literal as usize / 2;
                if self.is_true(literal) || self.seen[pair] || self.level[pair] == 0 {
                    continue;
                }
                self.seen[pair] = true;
                self.bump(pair);
                if self.level[pair] == latest {
                    open += 1;
                } else {
                    learned.push(literal);
                }
            }
            loop {
                position -= 1;
                if self.seen[self.trail[position] as usize / 2] {
                    break;
                }
            }
            let literal = self.trail[position];
            self.seen[literal as usize / 2] = false;
            open -= 1;
            if open == 0 {
                learned[0] = literal ^ 1;
                break;
            }
            clause = self.reason[literal as usize / 2];
            implied.push((literal, clause));
        }
        for literal in &learned {
            self.seen[*literal as usize / 2] = false;
        }
        self.activity_increment *= 1.05;
        let mut level = 0;
        for at in 1..learned.len() {
            let other = self.level[learned[at] as usize / 2];
            if other > level {
                level = other;
                learned.swap(1, at);
            }
        }
        self.backtrack_to(level as usize);
        let number = self.clauses.len() as u32;
        if learned.len() > 1 {
            self.watches[learned[0] as usize].push(number);
            self.watches[learned[1] as usize].push(number);
        }
        let follows = learned[0];
        let origin = Origin::Resolved { conflict, implied };
        self.clauses.push(Clause { literals: learned, origin });
        self.imply(follows, number);
    }

    fn bump(&mut self, pair: usize) {
        self.activity[pair] += self.activity_increment;
        if self.activity[pair] > 1e100 {
            self.activity.iter_mut().for_each(|activity| *activity *= 1e-100);
            self.activity_increment *= 1e-100;
        }
    }
}

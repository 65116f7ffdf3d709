//! Decides histories whose unordered pairs of versions fit into memory, exactly: certain edges,
//! then saturation pair by pair, then a search (`search`).
//!
//! The encoding is a polygraph (Papadimitriou 1979), as in Cobra (OSDI 2020) and PolySI (VLDB
//! 2023). Only the budget makes the answer unknown.

use super::dag::Dag;
use super::layout::Layout;
use super::problem::{Budget, Goal, Problem, Step};
use super::proof::Proof;
use super::search::{Origin, Pair, Search, SearchResult};
use super::versions::Versions;
use crate::types::{NONE, RequiredOrders};

/// Larger graphs get no reachability table.
const TABLE_NODES: usize = 12_000;

/// The outcome of a decision procedure.
pub(super) enum Outcome {
    /// The level holds: the nodes of the layout in an acyclic order.
    Holds(Vec<u32>),
    Violated(Vec<Step>),
    Unknown {
        open_pairs: usize,
        transactions: usize,
    },
}

/// Decides the problem, unless it has more than `most` unordered pairs of runs.
pub(super) fn decide(
    problem: &Problem,
    versions: &Versions,
    goal: Goal,
    required: RequiredOrders,
    budget: &Budget,
    most: usize,
) -> Outcome {
    let layout = Layout::new(problem, goal);
    let runs = |item| versions.open_runs(item).count();
    let open: usize =
        (0..problem.items).map(runs).map(|runs| runs * runs.saturating_sub(1) / 2).sum();
    let mut dag = layout.certain(problem, versions, required);
    let sorted = dag.sort();
    if sorted.is_ok() && open > most {
        return Outcome::Unknown { open_pairs: open, transactions: layout.txns as usize };
    }
    let pairs = if sorted.is_ok() { all_pairs(problem, versions) } else { Vec::new() };
    let mut search = Search::new(versions, layout, dag, pairs);
    if let Err(cycle) = sorted {
        search
            .clauses
            .push(super::search::Clause { literals: Vec::new(), origin: Origin::Cycle(cycle) });
        return Outcome::Violated(Proof::new(&search, layout).of(0));
    }
    let found = match saturate(&mut search, budget) {
        Some(conflict) => SearchResult::Unsatisfiable(conflict),
        None => search.run(budget),
    };
    match found {
        SearchResult::Unsatisfiable(clause) => {
            Outcome::Violated(Proof::new(&search, layout).of(clause))
        }
        SearchResult::Satisfiable => {
            let mut nodes: Vec<u32> = (0..layout.own_nodes()).collect();
            nodes.sort_unstable_by_key(|node| search.dag.position[*node as usize]);
            Outcome::Holds(nodes)
        }
        SearchResult::OutOfBudget => {
            let unordered = search.truth.iter().filter(|literal| **literal == NONE).count();
            Outcome::Unknown { open_pairs: unordered, transactions: layout.txns as usize }
        }
    }
}

fn all_pairs(problem: &Problem, versions: &Versions) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for item in 0..problem.items {
        let runs: Vec<[u32; 2]> =
            versions.open_runs(item).map(|first| [first, versions.run_end(first)]).collect();
        for (position, &one) in runs.iter().enumerate() {
            pairs.extend(
                runs[position + 1..].iter().map(|&other| Pair { item, runs: [one, other] }),
            );
        }
    }
    pairs
}

/// Saturates: orders every pair for which one order would close a cycle, until none is left.
fn saturate(search: &mut Search, budget: &Budget) -> Option<u32> {
    if search.dag.nodes() > TABLE_NODES {
        return search.propagate();
    }
    loop {
        let reach = Reach::new(&search.dag);
        let mut ordered = false;
        for pair in 0..search.pairs.len() {
            for literal in [2 * pair as u32, 2 * pair as u32 + 1] {
                if search.truth[pair] != NONE {
                    break;
                }
                let impossible =
                    search.edges_of(literal).into_iter().find(|e| reach.reaches(e.to, e.from));
                if let Some(edge) = impossible {
                    let mut cycle =
                        search.dag.path(edge.to, edge.from).expect("the table contains this path");
                    cycle.push(edge);
                    search.learn_unit(literal ^ 1, cycle);
                    ordered = true;
                    if let Some(conflict) = search.propagate() {
                        return Some(conflict);
                    }
                }
            }
        }
        search.dag.steps += (search.pairs.len() + reach.bits.len()) as u64;
        if !ordered || search.dag.steps > budget.steps || budget.stopped() {
            return None;
        }
    }
}

/// A reachability table with one bit per pair of nodes.
struct Reach {
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    fn new(dag: &Dag) -> Reach {
        let words = dag.nodes().div_ceil(64);
        let mut bits = vec![0u64; words * dag.nodes()];
        let mut nodes: Vec<u32> = (0..dag.nodes() as u32).collect();
        nodes.sort_unstable_by_key(|node| std::cmp::Reverse(dag.position[*node as usize]));
        for node in nodes {
            let row = node as usize * words;
            for next in dag.out(node) {
                let other = next as usize * words;
                for word in 0..words {
                    bits[row + word] |= bits[other + word];
                }
                bits[row + next as usize / 64] |= 1 << (next % 64);
            }
        }
        Reach { words, bits }
    }

    fn reaches(&self, from: u32, to: u32) -> bool {
        self.bits[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }
}

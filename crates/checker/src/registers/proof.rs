//! Tells a contradiction that the search found as a cycle, each step of it with
//! the reason why it is certain.
//!
//! A literal holds because a clause has no other way out. If that clause is a cycle,
//! the literal's opposite would close it. If it was learned, then the opposite is
//! assumed and what the clause was resolved from refutes it, which may go several levels
//! deep; past a limit the proof says only that a search has shown it.

use super::dag::Edge;
use super::layout::Layout;
use super::problem::{Because, Order, Step};
use super::search::{Origin, Search};
use super::versions::NONE;

/// Steps of a proof that anybody would still read, many times over.
const LIMIT: usize = 20_000;

/// What is true in a part of the proof, besides what is true without any choice.
struct Given<'a> {
    around: Option<&'a Given<'a>>,
    assumed: u32,
    /// Literals and the clauses that imply them.
    implied: &'a [(u32, u32)],
}

pub(super) struct Proof<'a> {
    search: &'a Search<'a>,
    layout: Layout,
    told: usize,
}

impl<'a> Proof<'a> {
    pub fn new(search: &'a Search<'a>, layout: Layout) -> Proof<'a> {
        Proof { search, layout, told: 0 }
    }

    /// The cycle behind a clause that is false without any choice.
    pub fn of(&mut self, clause: u32) -> Vec<Step> {
        let nothing = Given { around: None, assumed: NONE, implied: &[] };
        self.refute(clause, &nothing, NONE)
    }

    /// A cycle that shows a clause to be false. Where it has a step of the literal that is
    /// to be refuted, that step is left out, and what remains is a path.
    fn refute(&mut self, clause: u32, given: &Given, without: u32) -> Vec<Step> {
        match &self.search.clauses[clause as usize].origin {
            Origin::Resolved { conflict, implied } => {
                let given = Given { around: Some(given), assumed: NONE, implied };
                self.refute(*conflict, &given, without)
            }
            Origin::Cycle(edges) => {
                let edges = contract(edges, self.layout, without);
                self.told += edges.len();
                edges
                    .into_iter()
                    .map(|(from, to, order, literal)| {
                        let because = match literal {
                            NONE => Because::Observed,
                            _ => self.because(literal, given),
                        };
                        Step { from, to, order, because }
                    })
                    .collect()
            }
        }
    }

    fn because(&mut self, literal: u32, given: &Given) -> Because {
        if self.told > LIMIT {
            return Because::Search;
        }
        let mut layer = Some(given);
        while let Some(here) = layer {
            if here.assumed == literal {
                return Because::Assumed;
            }
            if let Some((_, clause)) = here.implied.iter().find(|(known, _)| *known == literal) {
                return self.opposite(literal, *clause, here);
            }
            layer = here.around;
        }
        let clause = self.search.reason[literal as usize / 2];
        let nothing = Given { around: None, assumed: NONE, implied: &[] };
        self.opposite(literal, clause, &nothing)
    }

    fn opposite(&mut self, literal: u32, clause: u32, given: &Given) -> Because {
        let assumed = literal ^ 1;
        let given = Given { around: Some(given), assumed, implied: &[] };
        Because::Opposite(self.refute(clause, &given, assumed))
    }
}

/// The steps of a cycle: without those inside of a transaction, without helper nodes, and
/// as a path if one of them is of the literal that is to be left out.
fn contract(cycle: &[Edge], layout: Layout, without: u32) -> Vec<(u32, u32, Order, u32)> {
    let left_out = |edge: &Edge| without != NONE && edge.literal == without;
    let begin = match cycle.iter().position(left_out) {
        Some(place) => place + 1,
        None => cycle.iter().position(|edge| layout.txn(edge.from).is_some()).unwrap_or(0),
    };
    let mut steps = Vec::new();
    let mut open = None;
    for place in 0..cycle.len() {
        let edge = &cycle[(begin + place) % cycle.len()];
        let Some(order) = edge.order else { continue };
        let from = layout.txn(edge.from).or(open);
        match (layout.txn(edge.to), from) {
            (Some(to), Some(from)) if !left_out(edge) => {
                steps.push((from, to, order, edge.literal));
                open = None;
            }
            (None, _) => open = from,
            _ => {}
        }
    }
    steps
}

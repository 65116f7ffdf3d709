//! Turns a contradiction that the search found into a cycle whose steps are justified.
//!
//! A literal is true because a clause leaves no alternative. If that clause is a cycle, the
//! opposite literal would close it. If the clause was learned, the opposite is assumed and the
//! clauses that it was resolved from refute it, which may nest several levels deep. Beyond a
//! limit the proof only says that a search has shown it. The proof is not checked here; the
//! tests validate it independently.

use super::dag::Edge;
use super::layout::Layout;
use super::problem::{Dependency, Justification, Step};
use super::search::{Origin, Search};
use crate::types::NONE;

/// The number of steps after which no more justifications are expanded.
const LIMIT: usize = 20_000;

/// The literals that hold in a part of the proof, besides those that hold without any choice.
struct Scope<'a> {
    around: Option<&'a Scope<'a>>,
    assumed: u32,
    /// Literals and the clauses that imply them.
    implied: &'a [(u32, u32)],
}

pub(super) struct Proof<'a> {
    search: &'a Search<'a>,
    layout: Layout,
    step_count: usize,
}

impl<'a> Proof<'a> {
    pub fn new(search: &'a Search<'a>, layout: Layout) -> Proof<'a> {
        Proof { search, layout, step_count: 0 }
    }

    /// The cycle behind a clause that is false without any choice.
    pub fn of(&mut self, clause: u32) -> Vec<Step> {
        let nothing = Scope { around: None, assumed: NONE, implied: &[] };
        self.refute(clause, &nothing, NONE)
    }

    /// A cycle that shows that a clause is false. If it contains the literal that is to be refuted,
    /// the edges of that literal are left out, and the rest is a path.
    fn refute(&mut self, clause: u32, scope: &Scope, without: u32) -> Vec<Step> {
        match &self.search.clauses[clause as usize].origin {
            Origin::Resolved { conflict, implied } => {
                let scope = Scope { around: Some(scope), assumed: NONE, implied };
                self.refute(*conflict, &scope, without)
            }
            Origin::Cycle(edges) => {
                let edges = contract(edges, self.layout, without);
                self.step_count += edges.len();
                edges
                    .into_iter()
                    .map(|(from, to, dependency, literal)| {
                        let justification = match literal {
                            NONE => Justification::Observed,
                            _ => self.justification(literal, scope),
                        };
                        Step { from, to, dependency, justification }
                    })
                    .collect()
            }
        }
    }

    fn justification(&mut self, literal: u32, scope: &Scope) -> Justification {
        if self.step_count > LIMIT {
            return Justification::Search;
        }
        let mut layer = Some(scope);
        while let Some(here) = layer {
            if here.assumed == literal {
                return Justification::Assumed;
            }
            if let Some((_, clause)) = here.implied.iter().find(|(known, _)| *known == literal) {
                return self.opposite(literal, *clause, here);
            }
            layer = here.around;
        }
        let clause = self.search.reason[literal as usize / 2];
        let nothing = Scope { around: None, assumed: NONE, implied: &[] };
        self.opposite(literal, clause, &nothing)
    }

    fn opposite(&mut self, literal: u32, clause: u32, scope: &Scope) -> Justification {
        let assumed = literal ^ 1;
        let scope = Scope { around: Some(scope), assumed, implied: &[] };
        Justification::Inferred(self.refute(clause, &scope, assumed))
    }
}

/// The steps of a cycle without edges inside of a transaction and without helper nodes; a path if
/// one of the edges belongs to the literal that is to be left out.
fn contract(cycle: &[Edge], layout: Layout, without: u32) -> Vec<(u32, u32, Dependency, u32)> {
    let left_out = |edge: &Edge| without != NONE && edge.literal == without;
    let begin = match cycle.iter().position(left_out) {
        Some(position) => position + 1,
        None => cycle.iter().position(|edge| layout.txn(edge.from).is_some()).unwrap_or(0),
    };
    let mut steps = Vec::new();
    let mut open = None;
    for position in 0..cycle.len() {
        let edge = &cycle[(begin + position) % cycle.len()];
        let Some(dependency) = edge.dependency else { continue };
        let from = layout.txn(edge.from).or(open);
        match (layout.txn(edge.to), from) {
            (Some(to), Some(from)) if !left_out(edge) => {
                steps.push((from, to, dependency, edge.literal));
                open = None;
            }
            (None, _) => open = from,
            _ => {}
        }
    }
    steps
}

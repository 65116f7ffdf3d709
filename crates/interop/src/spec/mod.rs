//! PostgreSQL's isolation test specifications: sessions made of named steps,
//! and the orders in which those steps run.
//!
//! [`parse`] reads the text form, which `docs/spec.md` describes;
//! [`Spec::interleavings`] yields the orders of a spec that names none.

mod format;
mod interleave;
mod lexer;
mod parse;
mod table;

pub use format::format;
pub use interleave::Interleavings;
pub use parse::parse;
pub use table::print_table;

use isolde_model::case::Line;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Each runs by itself, in this order, before every permutation.
    pub setups: Vec<Block>,
    pub teardown: Option<Block>,
    pub sessions: Vec<SpecSession>,
    /// Empty means every interleaving of the sessions.
    pub permutations: Vec<Permutation>,
}

/// SQL between braces: blanks on the first and the last line are dropped, line
/// breaks are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub sql: String,
    pub line: Line,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpecSession {
    pub name: String,
    pub setup: Option<Block>,
    pub steps: Vec<SpecStep>,
    pub teardown: Option<Block>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpecStep {
    pub name: String,
    pub sql: String,
    pub line: Line,
}

/// A step by where it stands: the session, and the step in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId {
    pub session: usize,
    pub step: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Permutation {
    pub steps: Vec<PermutationStep>,
    pub line: Line,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PermutationStep {
    pub id: StepId,
    pub blockers: Vec<Blocker>,
}

/// What keeps a step from being reported as complete, though it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// `(*)`: reported as waiting once, whether or not it does.
    Once,
    /// `(other)`: not before that step is complete.
    Step(StepId),
    /// `(other notices 2)`: not before that step's session has sent so many
    /// notices since this step was sent.
    Notices(StepId, u64),
}

impl Spec {
    pub fn step(&self, id: StepId) -> &SpecStep {
        &self.sessions[id.session].steps[id.step]
    }

    pub fn find_step(&self, name: &str) -> Option<StepId> {
        self.step_ids().find(|id| self.step(*id).name == name)
    }

    pub fn step_ids(&self) -> impl Iterator<Item = StepId> + '_ {
        self.sessions
            .iter()
            .enumerate()
            .flat_map(|(session, s)| (0..s.steps.len()).map(move |step| StepId { session, step }))
    }

    /// Steps that no permutation uses, sorted by name. They are allowed, and
    /// usually a mistake.
    pub fn unused_steps(&self) -> Vec<&str> {
        if self.permutations.is_empty() {
            return Vec::new();
        }
        let used =
            |id: &StepId| self.permutations.iter().any(|p| p.steps.iter().any(|s| s.id == *id));
        let mut names: Vec<&str> =
            self.step_ids().filter(|id| !used(id)).map(|id| self.step(id).name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Every order that keeps each session's own, the first session first.
    pub fn interleavings(&self) -> Interleavings<'_> {
        Interleavings::new(self)
    }
}

//! What the weak levels have in common: visibility, inferred edges, outcomes.

/// Which transactions are visible to a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visibility {
    /// Those that the reader has observed in an earlier read (monotonic atomic view).
    Monotonic,
    /// Those that the reader observes in any of its reads (read atomic).
    Atomic,
    /// Those that precede the reader by wr and session order (causal consistency).
    Causal,
}

/// An inferred ww edge: the version of `earlier` precedes that of `later`, which `reader`
/// observed although `earlier` was visible to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InferredEdge {
    pub earlier: u32,
    /// May be [`INITIAL`](crate::types::INITIAL); then the level is violated at once.
    pub later: u32,
    pub item: u32,
    pub reader: u32,
}

/// The outcome of a decision procedure.
#[derive(Debug)]
pub(crate) enum Outcome {
    Holds,
    /// The inferred edges of a cycle, or the one that contradicts the initial version; empty if
    /// the known edges alone have a cycle.
    Violated(Vec<InferredEdge>),
    /// There are too many sessions for vector clocks.
    TooManySessions,
}

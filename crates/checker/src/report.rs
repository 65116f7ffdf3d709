//! What is concluded from a history.

use crate::anomaly::Anomaly;
use crate::level::Level;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Holds,
    Violated,
    /// The search ended before an answer, or the history leaves it open.
    Unknown,
    /// The history says nothing about it: it has no times.
    NotApplicable,
    /// Nobody wanted to know, and nothing that was decided tells.
    NotAsked,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Holds => "holds",
            Verdict::Violated => "violated",
            Verdict::Unknown => "unknown",
            Verdict::NotApplicable => "not applicable",
            Verdict::NotAsked => "not asked",
        })
    }
}

/// What stayed open when a search was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    pub level: Level,
    /// Pairs of versions whose order was not found.
    pub pairs: usize,
    /// Transactions among which they are.
    pub transactions: usize,
}

/// A verdict for every level, and the anomalies that were found.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub(crate) verdicts: [Verdict; Level::ALL.len()],
    /// How many transactions the history has, and how many of them count as committed.
    pub transactions: usize,
    pub committed: usize,
    /// The worst first.
    pub anomalies: Vec<Anomaly>,
    pub open: Vec<Open>,
    /// Reads of values that several had written, so that they gave no edge: what holds
    /// without them is only unknown.
    pub ambiguous_reads: usize,
    /// Predicate reads that could not be placed among the versions of some item,
    /// so that they gave no edge.
    pub unplaced_predicate_reads: usize,
}

impl Report {
    pub fn verdict(&self, level: Level) -> Verdict {
        self.verdicts[level as usize]
    }

    /// The strongest level that holds: of those that no other that holds implies,
    /// the last in the order of [`Level::ALL`].
    pub fn strongest(&self) -> Option<Level> {
        Level::ALL.into_iter().rev().find(|level| self.verdict(*level) == Verdict::Holds)
    }

    /// The weakest level that is violated.
    pub fn weakest_violated(&self) -> Option<Level> {
        Level::ALL.into_iter().find(|level| self.verdict(*level) == Verdict::Violated)
    }
}

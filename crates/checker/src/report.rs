//! The result of a check: one verdict per level, and the anomalies found.

use crate::anomaly::Anomaly;
use crate::level::Level;
use std::fmt;

/// The verdict about one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The history satisfies the level.
    Holds,
    /// The history violates the level; the report has a witness if anomalies were requested.
    Violated,
    /// The search ran out of budget, or the history does not determine the answer.
    Unknown,
    /// The level requires real-time order, and the history has no times.
    NotApplicable,
    /// The level was not requested, and its verdict does not follow from those that were.
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

/// A search that ran out of budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InconclusiveSearch {
    /// The level that was searched.
    pub level: Level,
    /// The number of pairs of versions that were still unordered.
    pub pairs: usize,
    /// The number of transactions that wrote them.
    pub transactions: usize,
}

/// One verdict per level, and the anomalies found.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub(crate) verdicts: [Verdict; Level::ALL.len()],
    /// The number of transactions in the history.
    pub transactions: usize,
    /// The number of transactions that count as committed.
    pub committed: usize,
    /// The anomalies, worst first.
    pub anomalies: Vec<Anomaly>,
    /// The searches that ran out of budget.
    pub inconclusive: Vec<InconclusiveSearch>,
    /// The number of reads of values with several writers. They give no edges, so that a level
    /// that holds without them is only unknown.
    pub ambiguous_reads: usize,
    /// The number of predicate reads that observed an undetermined version of some item. They give
    /// no edges for it.
    pub unplaced_predicate_reads: usize,
}

impl Report {
    /// The verdict about a level.
    pub fn verdict(&self, level: Level) -> Verdict {
        self.verdicts[level as usize]
    }

    /// The strongest level that holds: the last one in the order of [`Level::ALL`].
    pub fn strongest(&self) -> Option<Level> {
        Level::ALL.into_iter().rev().find(|level| self.verdict(*level) == Verdict::Holds)
    }

    /// The weakest level that is violated: the first one in the order of [`Level::ALL`].
    pub fn weakest_violated(&self) -> Option<Level> {
        Level::ALL.into_iter().find(|level| self.verdict(*level) == Verdict::Violated)
    }
}

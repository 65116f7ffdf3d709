//! The verdict: the conclusion about one run.

use serde::{Deserialize, Serialize};

/// The conclusion about one run, the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// An observed result that no execution within the rules can give.
    Bug,
    /// Every result is right, but a statement waited, did not wait or was aborted
    /// where the rules say otherwise: a lead, not a proof.
    Locking,
    /// A part of the run is not modelled, so the rules do not decide.
    Undecided,
    /// An anomaly that the level allows: every result is within its rules, although
    /// no serial order of the committed transactions explains them.
    Documented,
    /// Some serial order of the committed transactions explains every result and
    /// the final rows.
    Consistent,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Bug => "bug",
            Verdict::Locking => "locking",
            Verdict::Undecided => "undecided",
            Verdict::Documented => "documented",
            Verdict::Consistent => "consistent",
        }
    }
}

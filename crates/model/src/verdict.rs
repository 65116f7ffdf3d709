//! The verdict: the conclusion about one run.

use serde::{Deserialize, Serialize};

/// The conclusion about one run, the most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// An observed result that no execution within the rules can give.
    Bug,
    /// A part of the run is not modelled, so the rules do not decide.
    Undecided,
    /// Every result is within the rules of the level, although the run is not
    /// serial in the order of the commits.
    Documented,
    /// Every result is within the rules, and as if the transactions had run
    /// one after another in the order of their commits.
    Consistent,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Bug => "bug",
            Verdict::Undecided => "undecided",
            Verdict::Documented => "documented",
            Verdict::Consistent => "consistent",
        }
    }
}

//! Triage: which findings are the same, and which bug they are.
//!
//! ```text
//!   case, history, account ──► Run ──► Deviation, pattern, shapes ──► Features
//!   labelled reports ──► Weights ──► similarity ──► the first K ──► tournament ──► the bug, or none
//!   findings ──► Deviation::key ──► groups
//! ```
//!
//! After *Pisco*: features of a report, weighted by their mutual information
//! with the bugs, rank the candidates, and a tournament of pairwise comparisons
//! decides. What went wrong is a feature like the others there; here it is the
//! first ([`Deviation`]), because the rules of the engine determine it, and it alone
//! decides whether two findings are one. The dependency pattern cannot: variants
//! of one bug need not reduce to one pattern (appendix F).

#![forbid(unsafe_code)]

mod deviation;
mod features;
mod group;
mod judge;
mod pattern;
mod rank;
mod rows;
mod run;
mod statement;
#[cfg(test)]
mod tests;
mod tournament;
mod weights;

pub use deviation::Deviation;
pub use features::Features;
pub use group::{Grouped, groups};
pub use judge::{compare, same};
pub use rank::{Ranked, rank};
pub use run::Subject;
pub use tournament::{Answer, Nearer, TournamentResult, decide};
pub use weights::{FeatureComparison, LabelledReport, Weights};

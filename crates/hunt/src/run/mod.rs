//! Plain data about one run: what it starts from, what the oracles concluded, how often a
//! violation was observed, and the run that a server did not survive.
//!
//! Everything else in this crate builds on these types, the error type included, so nothing
//! here depends on another module of the crate.

pub mod check_result;
pub mod failed_run;
pub mod fixture;
pub mod rate;

pub use check_result::{CheckResult, ModelCoverage, Violation};
pub use failed_run::FailedRun;
pub use fixture::Fixture;
pub use rate::Rate;

//! Reduces a failing case to a small one that fails in the same way.
//!
//! ```text
//!   Reducible ──graph──► Strategy ──► fewer operations ──► prove ──► simplify ──┐
//!                           │                               ▲                   │
//!                    trials (Channel)                       └─ until nothing changes
//! ```
//!
//! A [`Reducible`] is a plan in its parts, or a case of which only the texts are available. Its
//! operations form an [`OperationGraph`]. A [`Strategy`] removes many operations at a time. Then
//! each remaining one is removed on trial, which proves that none can be spared, and everything
//! else (rows, columns, expressions, the schedule, names) is simplified, until nothing changes.
//!
//! The search is an inquiry whose requests are smaller subjects; its driver decides whether one
//! fails. A request also lists the subjects that will be requested next as long as trials pass, so
//! that several can be tried in parallel without changing the result.

mod graph;
mod search;
mod strategy;
#[cfg(test)]
mod tests;
mod unparsed;

pub use graph::{OperationGraph, Owner};
pub use search::{Reducible, Reduction, TrialCounts, reduce};
pub use strategy::{Strategy, bound, minimize, prove};
pub use unparsed::UnparsedCase;

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It fails as the whole subject does.
    Fails,
    Passes,
    /// No time or trials are left.
    OutOfTime,
}

/// A request to try whether a subject still fails.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRequest<T> {
    pub subject: T,
    /// The subjects of the next requests, as long as trials pass.
    pub ahead: Vec<T>,
}

/// The search ends early because no time is left for trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutOfTime;

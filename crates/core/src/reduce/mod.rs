//! From a case that fails to a small one that fails in the same way.
//!
//! ```text
//!   Subject ──graph──► Strategy ──► fewer operations ──► prove ──► inside ──┐
//!                         │                               ▲                 │
//!                     trials (Desk)                       └── until nothing changes
//! ```
//!
//! A [`Subject`] is what is made smaller: a plan in its parts, or a case of which
//! only the texts are known. Its operations form a [`Graph`]; a [`Strategy`] takes
//! operations away, many at a time; then each one that is left is tried alone, which
//! proves that none of them can go, and what is inside of them and below them (rows,
//! columns, expressions, the schedule, names) is made plain, until nothing changes.
//!
//! Everything is an inquiry whose questions are smaller subjects: who drives it knows
//! what failing means. A question names the subjects that will be asked about next as
//! long as the answer is no, so that several can be tried at once without changing
//! what comes out.

mod graph;
mod rough;
mod search;
mod strategy;
#[cfg(test)]
mod tests;

pub use graph::{Graph, Place};
pub use rough::Rough;
pub use search::{Smallest, Spent, Subject, reduce};
pub use strategy::{Strategy, bound, minimal, prove};

/// What a trial came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// As the whole does.
    Fails,
    Passes,
    /// There is no time for more.
    OutOfTime,
}

/// Does this still fail?
#[derive(Clone, Debug, PartialEq)]
pub struct Question<T> {
    pub of: T,
    /// What is asked next if it does not, and after that.
    pub ahead: Vec<T>,
}

/// It was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut;

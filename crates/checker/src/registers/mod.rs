//! Whether some order of versions makes a history serializable, or snapshot
//! isolated, where the order is not known or not wholly known.

mod problem;

pub use problem::{Because, Decision, Goal, INITIAL, Keep, Order, Problem, Rows, Step};

//! The nouns of Isolde: what a case is, what a run of it looks like, and what
//! is concluded from it.
//!
//! One pipeline runs through everything: **case → schedule → history →
//! verdict**. This crate holds those nouns. It does no I/O, reads no clock and
//! starts no thread; the engines crate runs cases, the binary talks to people.

#![forbid(unsafe_code)]

pub mod breach;
pub mod case;
pub mod difference;
pub mod executed_transactions;
pub mod expectations;
pub mod graph;
pub mod history;
pub mod inquiry;
pub mod matrix;
pub mod parsed_case;
pub mod random;
pub mod recording;
pub mod trace;
pub mod transcript;
pub mod value;
pub mod verdict;

pub use case::Case;
pub use history::History;
pub use isolde_catalog::{Anomaly, Level, Profile, anomaly, profile};
pub use trace::Trace;
pub use value::Value;
pub use verdict::Verdict;

//! Which isolation levels does a history of transactions satisfy, and if one is
//! not, which cycle of dependencies shows it?
//!
//! ```
//! use isolde_checker::{History, Level, Verdict, check};
//!
//! // Both read x as it was in the beginning, and both wrote it.
//! let history: History = "T1: r(x,nil) w(x,1) | T2: r(x,nil) w(x,2)".parse()?;
//! let report = check(&history);
//! assert_eq!(report.verdict(Level::ReadCommitted), Verdict::Holds);
//! assert_eq!(report.verdict(Level::Serializable), Verdict::Violated);
//! # Ok::<(), isolde_checker::NotationError>(())
//! ```
//!
//! # The nouns, and which way data flows
//!
//! ```text
//!  Builder, notation ─► History ─► Joined ─► Graph ──► anomalies, witnesses ─► Report
//!                                    │                                           ▲
//!                                    └────► weak levels, registers::decide ──────┘
//! ```
//!
//! - A [`History`] is what clients saw: sessions, their transactions in order,
//!   and the reads and writes of each, in flat arrays. [`Builder`] makes one.
//! - *Joined* is the history with every read joined to the write whose version
//!   it saw, and each item's versions in their order as far as it is known.
//!   What needs no graph (aborted, intermediate and future reads) falls out.
//! - The *graph* has committed transactions as nodes and Adya's dependencies as
//!   edges. A level holds if no cycle of the kinds that it forbids exists.
//! - Where the order of versions is unknown, levels are decided by rules that
//!   need none (read committed, read atomic, causal) or by a search for an
//!   order that works (`registers`).
//! - A [`Report`] has a verdict for every level, each anomaly with a shortest
//!   witness, and explanations as data that can be written out as text.

mod anomaly;
mod builder;
mod candidate;
mod check;
mod contents;
mod explain;
mod graph;
mod history;
mod joined;
mod level;
mod names;
mod notation;
mod predicate;
#[doc(hidden)]
pub mod registers;
mod report;
mod weak;
mod witness;

pub use anomaly::{Anomaly, Certainty, Class, Edge, Kind, Witness};
pub use builder::Builder;
pub use check::{Options, check, check_with};
pub use contents::Label;
pub use history::{History, Item, Op, OpKind, Session, Status, Txn, Value, Version};
pub use level::{Level, UnknownLevel};
pub use notation::NotationError;
pub use report::{Open, Report, Verdict};

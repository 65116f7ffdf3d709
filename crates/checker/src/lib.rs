//! Decides which isolation levels a history of transactions satisfies, and proves every violation
//! with a cycle of dependencies.
//!
//! A *history* is what the clients of a database observed: sessions, their transactions, and which
//! versions each transaction read and wrote. The checker needs nothing else: no access to the
//! database, no clock (but it uses times where the history has them), no knowledge of the
//! implementation. It works for registers, where the order of versions is unknown, for lists,
//! where reads reveal it, and for predicates. It does no I/O and starts no threads.
//!
//! # Example
//!
//! Two transactions withdraw money from the same account. Both read the initial balance, and both
//! write a new one, so one withdrawal is lost:
//!
//! ```
//! use isolde_checker::{Builder, Class, Level, Status, Value, Verdict, check};
//!
//! let mut builder = Builder::new();
//! let account = builder.item("account");
//! for (name, new_balance) in [("T1", 90), ("T2", 80)] {
//!     let session = builder.session(name);
//!     builder.begin(session);
//!     builder.name_transaction(name);
//!     builder.read(account, Value::INITIAL);
//!     builder.write(account, Value(new_balance));
//!     builder.end(Status::Committed);
//! }
//! let history = builder.finish();
//!
//! let report = check(&history);
//! assert_eq!(report.verdict(Level::ReadCommitted), Verdict::Holds);
//! assert_eq!(report.verdict(Level::SnapshotIsolation), Verdict::Violated);
//! assert_eq!(report.weakest_violated(), Some(Level::CursorStability));
//!
//! let lost_update = report.anomalies.iter().find(|a| a.class == Class::LostUpdate).unwrap();
//! assert_eq!(
//!     lost_update.sentences(&history).join(",\n"),
//!     "T1 read the initial version of account, before T2 wrote account = 80, \
//!      so T1 comes before T2,\n\
//!      but T2 read the initial version of account, before T1 wrote account = 90, \
//!      so T2 comes before T1"
//! );
//! ```
//!
//! The same history in the compact notation of tests and documents:
//!
//! ```
//! use isolde_checker::{History, Level, Verdict, check};
//!
//! let history: History = "T1: r(x,nil) w(x,1) | T2: r(x,nil) w(x,2)".parse()?;
//! assert_eq!(check(&history).verdict(Level::Serializable), Verdict::Violated);
//! # Ok::<(), isolde_checker::NotationError>(())
//! ```
//!
//! Values identify versions, so every write to an item should write a different value. Reads of a
//! value with several writers are counted in [`Report::ambiguous_reads`] and otherwise ignored.
//!
//! # How it works
//!
//! ```text
//! Builder, notation ─► History ─► ResolvedHistory ─┬─► Graph ───► cycles ───┬─► Report
//!                                 (reads resolved  ├─► weak levels ─────────┤
//!                                  to writes)      └─► solver ──────────────┘
//! ```
//!
//! 1. `resolve` finds the write that each read observed, and the version orders that are known.
//!    Reads that are wrong by themselves (aborted, intermediate, future, thin-air) are found here.
//! 2. `graph` has committed transactions as nodes and Adya's dependencies as edges: read
//!    dependencies (wr), write dependencies (ww), anti-dependencies (rw), session order and
//!    real-time order. Where all version orders are known, a level holds if the graph has no cycle
//!    of the kinds that the level forbids.
//! 3. Where version orders are unknown, `weak` decides read atomic, monotonic atomic view and
//!    causal consistency in polynomial time, and `solver` searches for a version order that
//!    explains the history at snapshot isolation or serializability.
//! 4. `witness` finds a shortest cycle for every class of anomalies.
//!
//! Answers are exact or [`Verdict::Unknown`]: an order that the solver found is replayed by
//! independent code before a level *holds*, and a violation comes with a cycle whose inferred
//! edges carry their refutation ([`Certainty`]). The tests compare every level with its definition
//! by brute force.
//!
//! # Literature
//!
//! - A. Adya, *Weak Consistency: A Generalized Theory and Optimistic Implementations for
//!   Distributed Transactions*, MIT 1999: the levels PL-1 to PL-3 and the classes G0 to G2.
//! - K. Kingsbury and P. Alvaro, *Elle: Inferring Isolation Anomalies from Experimental
//!   Observations*, VLDB 2020: version orders from lists, names of cycles.
//! - R. Biswas and C. Enea, *On the Complexity of Checking Transactional Consistency*, OOPSLA 2019,
//!   and *AWDIT*, PLDI 2025: the weak levels without version orders.
//! - *Cobra*, OSDI 2020, *PolySI*, VLDB 2023, and *Viper*, EuroSys 2023: polygraphs and solvers for
//!   serializability and snapshot isolation.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod anomaly;
mod builder;
mod check;
mod digraph;
mod explain;
mod export;
mod graph;
mod history;
mod level;
mod names;
mod notation;
mod predicate;
mod report;
mod resolve;
#[doc(hidden)]
pub mod solver;
mod total_order;
mod types;
mod weak;
mod witness;

pub use anomaly::{Anomaly, Certainty, Class, Edge, EdgeKind, Witness};
pub use builder::Builder;
pub use check::{Options, check, check_with};
pub use export::Label;
pub use history::{History, Item, Op, OpKind, Session, Status, Txn, Value, Version};
pub use level::{Level, UnknownLevel};
pub use notation::NotationError;
pub use report::{InconclusiveSearch, Report, Verdict};

//! Oracles decide whether the result of a concurrent run is allowed.
//!
//! An oracle is an inquiry ([`isolde_model::inquiry`]) about a concurrent run. It requests further
//! runs of the same statements from the same rows, or statements on rows of its choice, as often
//! as it needs, and ends with a verdict. It does no I/O itself.
//!
//! ```text
//!   case ──run──► history ──► Oracle::inquire ◄──requests, responses──► engine
//!                                  └──► Judgement: consistent, violated, unknown; report
//! ```
//!
//! **An oracle is one folder.** To add one, write a folder with a constant of type
//! [`OracleDescription`] and add it to the table in `table.rs`; nothing else has to change. Its
//! name, texts, options, counters and causes are fields of the description. What it finds out
//! beyond its verdict travels through the hunt as an [`OracleReport`]: files of a finding, counts,
//! the cause, lines for the terminal and JSON. Only an option that users may set also needs a
//! command-line flag.
//!
//! | folder | oracles |
//! |---|---|
//! | `semantics` | semantics: the reference model |
//! | `write_specific_serializability` | tx-wss, stmt-wss, serial-reads: serial replays |
//! | `crash` | crash: server failures and internal errors |
//! | `isolation` | isolation: cycles of dependencies on instrumented tables |
//! | `topological` | topological: statements alone, in an order that their graph allows |
//! | `merged` | merged: two transactions joined into one |
//!
//! Oracles share the comparison of two runs (`compare`), serial replays (`replay`), the anomalies
//! that a level rules out (`promise`), and the instrumentation of tables ([`instrument`]) with the
//! runs on such tables ([`instrumented_run`]).

#![forbid(unsafe_code)]

mod compare;
mod crash;
mod description;
pub mod instrument;
pub mod instrumented_run;
pub mod isolation;
mod judgement;
mod merged;
mod options;
mod promise;
mod replay;
mod report;
mod run;
mod semantics;
mod table;
mod tallies;
mod tally;
pub mod topological;
mod write_specific_serializability;

pub use compare::differences;
pub use crash::broken;
pub use description::{JudgementFuture, OracleDescription};
pub use judgement::{Judgement, OracleVerdict};
pub use options::{OracleOption, OracleOptions};
pub use promise::{forbidden, forbidden_cause, is_ruled_out};
pub use replay::{Replay, SerialRun, serial_statements, serial_transactions, unseen_orders};
pub use report::OracleReport;
pub use run::{ConcurrentRun, unknown_serial};
pub use semantics::own_error_difference;
pub use table::{DEFAULT_ORACLES, ORACLES, Oracle, find, serial_runs};
pub use tallies::OracleTallies;
pub use tally::{Counter, CounterKey, CounterSet, OracleTally};

#[cfg(test)]
mod tests;

//! The main job: make cases, run them, judge them, find the cause, write
//! findings.
//!
//! ```text
//!   Generator ─► Plan ─► Executor ─► History ─► oracles ─► violation
//!                         ▲                              │
//!                         └── confirm, cause, reduce ◄───┘──► Folder ─► report
//! ```
//!
//! [`hunt::run`] owns the workers and the output folder; a [`hunter::Hunter`]
//! owns an engine with its tables ([`executor::Executor`]) and examines one case after
//! the other. Nothing here talks to people: they look at [`hunt::Watch`].

pub mod account;
pub mod again;
pub mod baseline;
pub mod cause;
pub mod check;
mod claim;
pub mod confirm;
pub mod crash;
pub mod error;
mod evaluated;
pub mod executor;
pub mod explain;
pub mod export;
pub mod fault_trial;
mod files;
pub mod finding;
pub mod folder;
pub mod hunt;
pub mod hunter;
pub mod isolation;
pub mod known;
pub mod merge;
pub mod reduce;
pub mod report;
pub mod resume;
#[doc(hidden)]
pub mod samples;
mod script;
pub mod stored;
pub mod summary;
pub mod tally;
pub mod topology;
pub mod triage;
pub mod workload;

pub use error::HuntError;

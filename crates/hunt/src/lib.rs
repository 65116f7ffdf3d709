//! The hunt: generates cases, runs and checks them, finds the cause of each violation, reduces
//! it and writes findings.
//!
//! ```text
//!   Generator ─► Plan ─► Executor ─► History ─► oracles ─► violation
//!                         ▲                              │
//!                         └── confirm, cause, reduce ◄───┘──► Folder ─► report
//! ```
//!
//! [`hunt::run`] owns the workers and the output folder; a [`hunter::Hunter`] owns an engine
//! with its tables ([`executor::Executor`]) and examines one case after the other. Nothing here
//! prints: [`hunt::HuntMonitor`] has the figures for a progress display.
//!
//! The modules below build on each other in this order: `run` (plain data) and `error`;
//! `execution` (runs and checks a case); `finding` (pure) and `output` (files); `isolation`
//! (rounds at full speed); `worker` (examines a case); [`hunt`], [`recheck`] and
//! [`fault_trial`] on top.

#![forbid(unsafe_code)]

pub mod error;
mod execution;
pub mod fault_trial;
pub mod finding;
pub mod hunt;
pub mod isolation;
mod layout;
mod output;
pub mod recheck;
mod run;
mod shard;
mod worker;
pub mod workload;

pub use error::HuntError;
pub use execution::{account, cause, check, confirm, executor};
pub use finding::{explain, export};
pub use output::{baseline, finding_folder, folder, merge, report, resume, summary, tally, triage};
pub use worker::{hunter, known, reduce};

// Unit tests share the samples of `isolde-testing` as a source file. A
// dependency on that crate would bring a second copy of this one's types.
#[cfg(test)]
extern crate self as isolde_hunt;
#[cfg(test)]
#[path = "../../testing/src/samples.rs"]
mod samples;

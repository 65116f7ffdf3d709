//! Runs cases on one engine and asks about them: the oracles, the cause of a violation, the
//! account of a run, and whether a violation can be repeated.
//!
//! ```text
//!   Executor ─► check (all oracles) ─► cause ─► confirm
//!      │
//!      └ evaluation_cache: answers that stay valid while the version tables stand
//! ```

pub mod account;
pub mod cause;
pub mod check;
pub mod confirm;
mod control;
mod evaluation_cache;
pub mod executor;

//! The catalogue of engines: everything that Isolde knows about an engine before
//! it connects to one, as data.
//!
//! ```text
//!   engines/postgres.rs ─┐
//!   engines/tidb.rs ─────┼─► EngineDescription ─► dialect, capabilities, profile,
//!   engines/… ───────────┘         ▲              rules, concurrency model
//!        a driver's JSON ──────────┘ (overrides)
//! ```
//!
//! An engine is one file in [`engines`] and one line of its table. The file states
//! the engine's dialect and features, what it offers for instrumentation, its
//! levels with their promises, its error codes, its rules with the pages of the
//! manual, and one [`ConcurrencyModel`] per level. A driver may start from one of
//! these descriptions and state its differences as JSON ([`overrides`]). Code that
//! talks to servers is in the `engines` crate.
//!
//! This crate does no I/O and depends on no other crate of the project.

#![forbid(unsafe_code)]

pub mod anomaly;
pub mod availability;
pub mod begin_form;
pub mod capabilities;
pub mod citation;
pub mod concurrency;
pub mod describe;
pub mod description;
pub mod dialect;
pub mod engines;
pub mod error_class;
pub mod feature;
pub mod level;
mod lookup;
pub mod overrides;
pub mod page;
pub mod profile;
pub mod rule;
pub mod selector;
pub mod target;
mod validity;

pub use anomaly::Anomaly;
pub use begin_form::BeginForm;
pub use capabilities::{CurrentReadScope, EngineCapabilities, Gather};
pub use citation::{Citation, Evidence};
pub use concurrency::*;
pub use describe::describe;
pub use description::EngineDescription;
pub use dialect::{Dialect, Family};
pub use error_class::{ErrorClass, ErrorEffect};
pub use feature::{Feature, Features};
pub use level::Level;
pub use lookup::concurrency_model;
pub use profile::Profile;
pub use rule::{Rule, RuleSet, RuleText};
pub use selector::Selector;
pub use target::{Follows, TargetInfo};

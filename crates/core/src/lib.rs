//! The pure half of Isolde: what a case is, what a run of it looks like, and
//! what may be concluded from it.
//!
//! One pipeline runs through everything: **case → schedule → history →
//! verdict**. This crate holds those nouns and the functions between them. It
//! does no I/O, reads no clock and starts no thread; the engines crate runs
//! cases, the binary talks to people.

pub mod anomaly;
pub mod case;
pub mod cause;
pub mod generate;
pub mod history;
pub mod inquiry;
pub mod instrument;
pub mod judge;
pub mod level;
pub mod matrix;
pub mod oracle;
pub mod order;
pub mod profile;
pub mod random;
pub mod recording;
pub mod reduce;
pub mod script;
pub mod semantics;
pub mod spec;
pub mod sql;
pub mod trace;
pub mod transcript;
pub mod triage;
pub mod value;

pub use anomaly::Anomaly;
pub use case::Case;
pub use history::History;
pub use level::Level;
pub use profile::Profile;
pub use trace::Trace;
pub use value::Value;

//! One worker of a hunt: what it does with a case number.
//!
//! ```text
//!   hunter ─┬► case  ─► reduce ─► known ─► Evidence   a scheduled case
//!           ├► crash                                  a case that the server did not survive
//!           └► round                                  sessions at full speed
//! ```
//!
//! [`hunter`] has the entry points. `case`, `crash` and `round` add the steps of each kind to
//! the hunter.

mod case;
mod crash;
mod evidence;
pub mod hunter;
pub mod known;
pub mod reduce;
mod round;
mod round_report;

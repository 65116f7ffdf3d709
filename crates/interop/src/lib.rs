//! Other notations for cases: PostgreSQL's isolation specs, MySQL's test
//! scripts, SQL and Python scripts, bug reports.
//!
//! [`spec`] reads and writes isolation specs; [`script`] turns cases into the
//! notations that engines' own clients and test runners understand, and reads
//! those of other tools.

#![forbid(unsafe_code)]

pub mod script;
pub mod spec;

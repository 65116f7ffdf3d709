//! PostgreSQL, and CockroachDB, which uses its protocol.
//!
//! `wire` is the connection; it is Isolde's own because a full client hides the
//! transaction status. `engine` implements the traits of an engine, `waits`
//! reads lock waits.
//! `private_server` starts servers, `admin` logs in to the user's. `spec_link`
//! and `spec_database` run PostgreSQL's isolation specs.

mod admin;
pub mod cockroach;
mod engine;
mod flavour;
mod open;
mod private_server;
mod spec_database;
mod spec_link;
mod spec_message;
mod waits;
mod wire;

pub use admin::{admin, cockroach_admin};
pub use open::{open_cockroach_url, open_private, open_url};
#[doc(hidden)]
pub use wire::fuzz;

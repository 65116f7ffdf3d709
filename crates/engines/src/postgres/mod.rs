//! PostgreSQL, and CockroachDB, which speaks its protocol.
//!
//! `wire` is the connection: ours, because a full client hides where the
//! transaction stands. `engine` is a server as the runner sees it, `waits` asks
//! it who waits for whom, and `profile` says what the levels promise.
//! `private_server` starts servers of our own, `door` leads into the user's.

pub mod cockroach;
mod door;
mod engine;
mod open;
mod place;
mod private_server;
mod profile;
mod spec_place;
mod waits;
pub(crate) mod wire;

pub use door::{cockroach_door, door};
pub use open::{open_private, open_url};

//! Starts servers, finds out whose they are, and cleans up behind them.
//!
//! `private` starts a server of our own, in a directory of `scratch` and as a
//! `process` that does not outlive Isolde; `container` does the same with the
//! commands that `via` builds. On a user's server Isolde works in a database
//! whose name says who made it (`owner`), so that `leftovers` can remove those
//! of the dead. None of this knows a database: how each kind of server is set
//! up is said in its engine's own room.

pub mod container;
pub mod leftovers;
pub mod owner;
mod private;
mod process;
pub mod scratch;
pub mod via;

pub use private::{PrivateServer, Recipe, free_port};
pub(crate) use process::{
    die_with_us, exit_status, program, spawn_guarded, tail, write_for_server,
};

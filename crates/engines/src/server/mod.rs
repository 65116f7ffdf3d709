//! Starts and stops database servers, and removes what they leave behind.
//!
//! `private` starts a server of Isolde's own, in a `scratch` directory and as a
//! `process` that does not outlive Isolde; `container` does the same with the
//! command lines that `via` builds. On a user's server Isolde works in a
//! database whose name identifies its `owner`, so that the databases of dead
//! owners can be found and dropped (`abandoned`). Nothing here is specific to
//! one database: each engine's module knows how its servers are set up.

pub mod abandoned;
pub mod container;
pub mod owner;
mod private;
mod process;
pub mod scratch;
pub mod via;

pub use private::{PrivateServer, Recipe, free_port};
pub(crate) use process::{
    exit_status, kill_with_parent, program, spawn_guarded, tail, write_for_server,
};

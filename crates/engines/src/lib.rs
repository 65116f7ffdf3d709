//! Everything of Isolde that talks to a database: engines, sessions, the
//! runner, private servers and where they come from.

pub mod connect;
pub mod driver;
pub mod engine;
pub mod fault;
pub mod fetch;
pub mod free_run;
pub mod mysql;
mod names;
pub mod postgres;
pub mod runner;
#[doc(hidden)]
pub mod scripted;
pub mod server;
pub mod spec;
pub mod sqlite;
pub mod target;

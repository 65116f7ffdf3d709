//! Everything of Isolde that talks to a database: engines, sessions, the
//! runner, private servers, and fetching them.

#![deny(unsafe_code)]

pub mod built_in;
pub mod connect;
pub mod driver;
pub mod engine;
pub mod fault;
pub mod fetch;
pub mod free_run;
pub mod mysql;
mod named_engine;
mod names;
pub mod postgres;
pub mod runner;
pub mod secret;
pub mod server;
pub mod spec;
pub mod sqlite;
pub mod target;

//! Everything of Isolde that talks to a database.

pub mod engine;
pub mod fetch;
pub mod install;
pub mod via;

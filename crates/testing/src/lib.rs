//! Test support for the crates of Isolde. It is a dev-dependency: nothing in
//! here is part of the product.
//!
//! | module | contents |
//! |---|---|
//! | [`servers`] | the one place that decides which engines and tools a test may skip |
//! | [`cases`] | building cases, running them, reading histories |
//! | [`fuzz`] | the fuzz targets, one per parser and wire decoder |
//! | [`planted`] | engines with a planted fault |
//! | [`scripted`] | an engine whose answers and failures a test scripts |
//! | [`samples`] | findings and output folders made from recorded runs |
//! | [`program`], [`terminal`], [`user_server`], [`processes`] | running the `isolde` program |
//! | [`tools`] | isolationtester, mysqltest and Python |
//!
//! Unit tests inside a crate that this crate depends on must not use it: they
//! would see two copies of their own types. They belong in the `tests` folder
//! of their crate.

#![deny(unsafe_code)]

pub mod cases;
pub mod fuzz;
pub mod planted;
pub mod processes;
pub mod program;
pub mod samples;
pub mod scripted;
pub mod servers;
#[allow(unsafe_code)] // `openpty` and `setsid` have no safe interface here.
pub mod terminal;
pub mod tools;
pub mod user_server;

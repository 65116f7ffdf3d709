//! A database behind a driver: any program that speaks the protocol of
//! `docs/driver-protocol.md` on its stdin and stdout.
//!
//! The driver runs in a process of its own, so an engine that panics, aborts
//! or hangs there is an outcome of the test (an error of class lost, like a
//! server that crashed) and not the end of Isolde.
//!
//! `command` is what the user wrote, `process` the running program, `message`
//! its lines as types, `engine` what the runner gets. `shipped` are the drivers
//! inside the binary. `check` (with `lab` and `conflict`) tells whether a driver
//! keeps the protocol, and `end` how one ended.

pub mod check;
pub mod command;
mod conflict;
mod end;
mod engine;
mod lab;
mod message;
mod process;
pub mod shipped;

pub use command::DriverCommand;
pub use engine::{DriverEngine, HELLO_LIMIT, greet};

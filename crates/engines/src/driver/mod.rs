//! A database behind a driver: any program that implements the protocol of
//! `docs/driver-protocol.md` on its stdin and stdout.
//!
//! The driver runs in a separate process, so an engine that panics, aborts or
//! hangs there is an outcome of the test (an error of class lost, like a server
//! that crashed) and not the end of Isolde.
//!
//! `command` is the command line, `process` the running program, `message` its
//! lines as types, `engine` the engine on top, and `exit` describes how a
//! process ended. `shipped` holds the drivers inside the binary. `check` (with
//! `harness` and `conflict`) tests whether a driver follows the protocol.

pub mod check;
pub mod command;
mod conflict;
mod engine;
mod exit;
mod harness;
mod message;
mod process;
pub mod shipped;

pub use command::DriverCommand;
pub use engine::{DriverEngine, HELLO_LIMIT, start_driver};
#[doc(hidden)]
pub use message::{Message, read_line};

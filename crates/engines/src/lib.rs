//! Everything of Isolde that talks to a database.

pub mod driver;
pub mod driver_check;
pub mod driver_command;
pub mod driver_conflict;
pub mod driver_end;
pub mod driver_lab;
pub mod driver_message;
pub mod driver_process;
pub mod driver_programs;
pub mod engine;
pub mod install;

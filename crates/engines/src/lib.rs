//! Everything of Isolde that talks to a database: engines, sessions, the
//! runner, private servers and where they come from.

pub mod client_command;
pub mod cockroach;
pub mod container;
pub mod dolt;
pub mod driver;
pub mod driver_check;
pub mod driver_command;
mod driver_conflict;
mod driver_end;
mod driver_lab;
pub mod driver_message;
pub mod driver_process;
pub mod driver_programs;
pub mod engine;
pub mod fault;
pub mod fetch;
#[cfg(test)]
mod hostile_peer;
mod innodb;
pub mod install;
pub mod interactive;
pub mod leftovers;
pub mod mysql;
mod mysql_servers;
mod mysql_wire;
mod names;
pub mod owner;
pub mod password;
mod pg_wire;
mod poll;
pub mod postgres;
pub mod programs;
pub mod runner;
pub mod scratch;
#[doc(hidden)]
pub mod scripted;
pub mod secret;
pub mod server;
pub mod spec;
pub mod sqlite;
mod stream;
pub mod target;
pub mod tidb;
pub mod tls;
pub mod url;
mod url_parameters;
pub mod via;

//! Everything of Isolde that talks to a database: engines, sessions, the
//! runner, private servers and where they come from.

pub mod engine;
pub mod fetch;
pub mod install;
pub mod fetch;
pub mod via;
pub mod driver;
pub mod driver_check;
pub mod driver_command;
mod driver_lab;
pub mod driver_message;
pub mod driver_process;
pub mod driver_programs;
pub mod runner;
pub mod scratch;
pub mod sqlite;
pub mod target;
pub mod url;
pub mod postgres;
pub mod cockroach;
pub mod mysql;
pub mod tidb;
pub mod dolt;
pub mod programs;
pub mod container;
mod innodb;
mod mysql_servers;
mod mysql_wire;
mod names;
mod pg_wire;
mod poll;
pub mod server;

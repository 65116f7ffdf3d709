//! MySQL, MariaDB and the servers that speak their protocol.
//!
//! One engine serves them all. What differs between them is a `Flavour`: the
//! profile, what is sent on a new session, and which view tells who waits.
//! `flavour` asks the server for it, so that `mysql://` on a MariaDB is right
//! too; `tidb` and `dolt` bring their own. `wire` is the connection, `views`
//! asks who waits (`innodb`, `hidden` and `tidb_waits` read the answers), and
//! `private_server` starts servers of our own.

pub mod dolt;
mod door;
mod engine;
mod errors;
mod flavour;
mod hidden;
mod innodb;
mod open;
mod place;
mod private_server;
mod profile;
pub mod tidb;
mod tidb_waits;
mod views;
mod wire;

pub use door::{door, tidb_door};
pub use open::{open_mariadb, open_mysql, open_url};

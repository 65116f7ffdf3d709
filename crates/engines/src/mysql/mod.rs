//! MySQL, MariaDB and the servers that use their protocol.
//!
//! One engine serves them all. A `Flavour` states what differs between them:
//! the profile, the statements sent on a new session, and the view with the
//! lock waits. `flavour` asks the server for it, so that `mysql://` also works
//! for MariaDB; `tidb` and `dolt` define their own. `wire` is the connection,
//! `views` queries lock waits (`innodb`, `hidden` and `tidb_waits` interpret
//! the results), `private_server` starts servers, and `admin` logs in to the
//! user's.

mod admin;
pub mod dolt;
mod engine;
mod flavour;
mod hidden;
mod innodb;
mod open;
mod private_server;
pub mod tidb;
mod tidb_waits;
mod views;
mod wire;

pub use admin::{admin, tidb_admin};
pub use open::{open_mariadb, open_mysql, open_url};
#[doc(hidden)]
pub use wire::fuzz;

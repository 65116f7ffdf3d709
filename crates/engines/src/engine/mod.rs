//! What the runner needs of a database: [`Engine`] and [`Session`].
//!
//! ```text
//!   Engine ──open()──────────▶ Session        one connection, one statement in flight
//!     ├── control(), batch()                  the control connection
//!     ├── server_control() ──▶ ServerControl  restart, exit status, log, kill
//!     ├── version_tables() ──▶ VersionTables  a separate store to evaluate statements in
//!     └── spec_connections() ▶ SpecConnections  libpq-like connections for PostgreSQL's specs
//! ```
//!
//! Sending and receiving are separate calls, so that one thread can keep many
//! sessions going: [`Session::start`] sends, [`Session::reply`] checks whether
//! the answer has arrived. An engine opens sessions, owns the control
//! connection that reports lock waits, and works in a database of its own, so
//! that nothing else on the server is ever touched.
//!
//! The traits below the line are optional: an engine returns `None` where it
//! has no such thing. Callers use the methods of `dyn Engine` in `parts`, which
//! define the fallback once. This module depends on no engine.

mod error;
mod parts;
mod session;
mod spec_link;

pub use error::{EngineError, EngineResult};
pub use parts::{ServerControl, SpecConnections, VersionTables};
pub use session::{
    ANSWER_LIMIT, Outcome, Reply, Session, SessionId, TxStatus, WORK_LIMIT, query_text, run_to_end,
    run_while_alive,
};
pub use spec_link::{Notification, SpecAnswer, SpecFailure, SpecLinks};

use crate::secret::Secret;
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile};
use std::path::PathBuf;
use std::time::Duration;

/// The lock-wait state of one session, as the control connection reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitState {
    /// Idle, or executing.
    Free,
    /// Blocked by a lock; the lock holders are listed where the view names them.
    Waiting(Vec<SessionId>),
}

/// How a client program logs in to Isolde's database on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<Secret>,
    pub database: String,
    /// Isolde has started the server and generated the password, so the
    /// password may be shown to the user. Any other password is never shown.
    pub private: bool,
}

/// Where a client program finds Isolde's database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    Server(ClientInfo),
    File(PathBuf),
}

/// A database under test.
pub trait Engine: Send {
    fn info(&self) -> &TargetInfo;
    fn profile(&self) -> &Profile;

    fn open(&mut self) -> EngineResult<Box<dyn Session>>;

    /// The statements that set a session's level for all its later transactions.
    fn level_sql(&self, level: Level) -> Vec<String>;

    /// The statements that begin one transaction at the given level.
    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String>;

    /// The lock-wait state of each of these sessions now, in the same order.
    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>>;

    /// The longest time for which a cycle of lock waits persists before the
    /// engine breaks it, where that is known. InnoDB lists transactions ahead
    /// in the lock queue as holders, so not every cycle that its view shows is
    /// a deadlock.
    fn breaks_deadlocks_within(&self) -> Option<Duration> {
        None
    }

    /// Cancels the statement that the session is executing.
    fn cancel(&mut self, session: SessionId) -> EngineResult<()>;

    /// False where cancelling a statement ends the whole server.
    fn can_cancel(&self) -> bool {
        true
    }

    /// Runs one statement on the control connection, inside Isolde's database.
    fn control(&mut self, sql: &str) -> EngineResult<Outcome>;

    /// Runs several statements on the control connection, in one round trip
    /// where the protocol allows it. The first error ends the batch.
    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        for sql in statements {
            if let Outcome::Error(error) = self.control(sql)? {
                return Ok(Outcome::Error(error));
            }
        }
        Ok(Outcome::Done)
    }

    /// Removes everything that a case has created in Isolde's database.
    fn clear(&mut self) -> EngineResult<()>;

    /// The tables in Isolde's database, sorted by name.
    fn tables(&mut self) -> EngineResult<Vec<String>>;

    /// Where a client program finds Isolde's database, if it can be reached
    /// from outside.
    fn client_address(&self) -> Option<ClientAddress> {
        None
    }

    /// Control over the server process; none for an engine without a server.
    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        None
    }

    /// A separate store for version tables; none where they share the database.
    fn version_tables(&mut self) -> Option<&mut dyn VersionTables> {
        None
    }

    /// Connections for PostgreSQL's isolation specs; none for engines whose
    /// specs run through [`Session`].
    fn spec_connections(&mut self) -> Option<&mut dyn SpecConnections> {
        None
    }
}

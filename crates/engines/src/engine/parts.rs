//! What only some engines offer, each as a small trait that [`Engine`] hands
//! out through an optional accessor, and [`Engine`]'s convenience methods,
//! which define what the absence of a part means.
//!
//! [`Engine`]: super::Engine

use super::error::{EngineError, EngineResult};
use super::session::Outcome;
use super::spec_link::SpecLinks;
use super::{ClientAddress, ClientInfo, Engine};
use std::path::PathBuf;
use std::time::Duration;

/// Control over the server process behind an engine.
pub trait ServerControl {
    /// Restores a server that crashed or hangs. A private server is stopped
    /// and started again, empty; to a user's server only a new control
    /// connection is opened.
    fn revive(&mut self) -> EngineResult<()>;

    /// How the process of a private server ended, if it ends within
    /// `patience`: connections break a moment before the process has ended.
    fn exit_status(&mut self, _patience: Duration) -> Option<String> {
        None
    }

    /// The server belongs to the user, so that Isolde cannot restart it.
    fn is_users(&self) -> bool {
        false
    }

    /// The end of the server's log, if Isolde has access to it.
    fn log_tail(&self) -> Option<String> {
        None
    }

    /// Kills the server at once, as a crash would: for tests, and for the
    /// planted fault that crashes it.
    fn kill(&mut self) -> EngineResult<()> {
        Err(EngineError::Refused("this target has no server of its own to kill".into()))
    }
}

/// A separate store for the tables in which statements are evaluated on
/// reconstructed row versions, where an engine has one. Other engines keep
/// these tables in the database under test.
pub trait VersionTables {
    /// Creates the tables in an empty store, in place of earlier ones.
    fn create(&mut self, statements: &[String]) -> EngineResult<Outcome>;

    /// Runs one statement on these tables.
    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome>;
}

/// Connections that show exactly what PostgreSQL's own test client shows: raw
/// text, notices and notifications.
pub trait SpecConnections {
    /// Opens the control connection and one connection per session name, for
    /// the test `test`. `interrupted` is polled while a result is awaited;
    /// true gives the connection up.
    fn open_links(
        &mut self,
        test: &str,
        sessions: &[String],
        interrupted: fn() -> bool,
    ) -> EngineResult<Box<dyn SpecLinks>>;
}

impl dyn Engine + '_ {
    /// Restores the server after a failure; an engine without a server needs
    /// nothing.
    pub fn revive(&mut self) -> EngineResult<()> {
        self.server_control().map_or(Ok(()), |server| server.revive())
    }

    /// How the server's process ended, if it is Isolde's own and has ended.
    pub fn exit_status(&mut self, patience: Duration) -> Option<String> {
        self.server_control().and_then(|server| server.exit_status(patience))
    }

    /// Whether the server belongs to the user.
    pub fn is_users(&mut self) -> bool {
        self.server_control().is_some_and(|server| server.is_users())
    }

    /// The end of the server's log, if Isolde has access to it.
    pub fn log_tail(&mut self) -> Option<String> {
        self.server_control().and_then(|server| server.log_tail())
    }

    /// Kills the server at once, as a crash would.
    pub fn kill_server(&mut self) -> EngineResult<()> {
        match self.server_control() {
            Some(server) => server.kill(),
            None => Err(EngineError::Refused("this target has no server to kill".into())),
        }
    }

    /// Whether version tables live in a store of their own, apart from the
    /// tables of the case.
    pub fn has_separate_version_tables(&mut self) -> bool {
        self.version_tables().is_some()
    }

    /// Creates the tables in which statements are evaluated, replacing earlier
    /// ones. Where they share the database with the case, [`Engine::clear`]
    /// removes them too.
    pub fn create_version_tables(&mut self, create: &[String]) -> EngineResult<Outcome> {
        match self.version_tables() {
            Some(tables) => tables.create(create),
            None => self.batch(create),
        }
    }

    /// Runs one statement on the version tables.
    pub fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        match self.version_tables() {
            Some(tables) => tables.evaluate(sql),
            None => self.control(sql),
        }
    }

    /// How a client program logs in to the server, if there is one.
    pub fn client(&self) -> Option<ClientInfo> {
        match self.client_address() {
            Some(ClientAddress::Server(info)) => Some(info),
            _ => None,
        }
    }

    /// The file that holds the database, for engines without a server.
    pub fn database_file(&self) -> Option<PathBuf> {
        match self.client_address() {
            Some(ClientAddress::File(path)) => Some(path),
            _ => None,
        }
    }
}

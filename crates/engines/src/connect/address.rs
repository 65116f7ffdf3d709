//! Where a server is and how to log in there, for both wire protocols.

use crate::connect::tls::Tls;
use crate::engine::{ClientInfo, EngineResult, Outcome, Session, run_while_alive};
use crate::secret::Secret;
use isolde_model::Profile;
use std::sync::Arc;

/// The address of a server and the account to log in with.
#[derive(Clone)]
pub struct ServerAddress {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<Secret>,
    /// None for an unencrypted connection.
    pub tls: Option<Tls>,
}

/// One login: the address, and what the session starts with.
pub struct Login<'a> {
    pub address: &'a ServerAddress,
    pub database: Option<&'a str>,
    /// Settings that the session has from its start, so that RESET keeps them.
    /// Only PostgreSQL's protocol has room for them.
    pub settings: &'a [(String, String)],
}

impl Login<'_> {
    pub fn password(&self) -> &[u8] {
        self.address.password.as_ref().map_or("", Secret::reveal).as_bytes()
    }
}

/// A session over a server's wire protocol.
pub trait WireSession: Session + Sized {
    fn log_in(login: &Login<'_>, profile: Arc<Profile>) -> EngineResult<Self>;

    /// Closes the connection, so that a late answer cannot be taken for the
    /// answer to a later statement.
    fn hang_up(&mut self);
}

impl ServerAddress {
    /// An account on a private server, which listens on loopback only.
    pub fn loopback(port: u16, user: &str, password: Option<&Secret>) -> ServerAddress {
        ServerAddress {
            host: "127.0.0.1".into(),
            port,
            user: user.into(),
            password: password.cloned(),
            tls: None,
        }
    }

    pub fn connect<S: WireSession>(
        &self,
        database: Option<&str>,
        profile: &Arc<Profile>,
    ) -> EngineResult<S> {
        self.connect_with(database, profile, &[])
    }

    pub fn connect_with<S: WireSession>(
        &self,
        database: Option<&str>,
        profile: &Arc<Profile>,
        settings: &[(String, String)],
    ) -> EngineResult<S> {
        S::log_in(&Login { address: self, database, settings }, Arc::clone(profile))
    }

    /// Runs one statement on a control connection to this server.
    pub fn run_control<S: WireSession>(
        &self,
        control: &mut S,
        sql: &str,
        database: &str,
        profile: &Arc<Profile>,
    ) -> EngineResult<Outcome> {
        let outcome = run_while_alive(control, sql, || self.connect(Some(database), profile));
        if outcome.is_err() {
            control.hang_up();
        }
        outcome
    }

    /// How a client program logs in to a database at this address.
    pub fn client_info(&self, database: &str, private: bool) -> ClientInfo {
        ClientInfo {
            host: self.host.clone(),
            port: self.port,
            user: self.user.clone(),
            password: self.password.clone(),
            database: database.into(),
            private,
        }
    }
}

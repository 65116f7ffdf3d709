//! Where a server is, which of the two it is, and how one logs in there.

use super::wire::{Login, PgSession};
use crate::connect::secret::Secret;
use crate::connect::tls::Tls;
use crate::engine::*;
use isolde_core::{Profile, Value};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    Postgres,
    Cockroach,
}

/// How to reach the server, without anything borrowed.
#[derive(Clone)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<Secret>,
    /// None is in clear.
    pub tls: Option<Tls>,
}

impl Place {
    pub fn connect(&self, database: &str, profile: &Arc<Profile>) -> EngineResult<PgSession> {
        self.connect_with(database, profile, &[])
    }

    pub fn connect_with(
        &self,
        database: &str,
        profile: &Arc<Profile>,
        settings: &[(String, String)],
    ) -> EngineResult<PgSession> {
        let login = Login {
            host: &self.host,
            port: self.port,
            user: &self.user,
            password: self.password.as_ref().map(Secret::reveal),
            database,
            settings,
            tls: self.tls.as_ref(),
        };
        PgSession::connect(&login, Arc::clone(profile))
    }
}

pub fn ask_text(session: &mut PgSession, sql: &str) -> EngineResult<String> {
    match run_to_end(session, sql, ANSWER_LIMIT)? {
        Outcome::Rows { rows, .. } => match rows.first().and_then(|r| r.first()) {
            Some(Value::Text(text)) => Ok(text.clone()),
            other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
        },
        other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
    }
}

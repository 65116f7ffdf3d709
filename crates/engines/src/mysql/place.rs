//! Where a server of the family is, and how one logs in there.

use super::wire::{Login, MySqlSession};
use crate::connect::password;
use crate::connect::secret::Secret;
use crate::connect::tls::Tls;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use isolde_core::{Profile, Value};
use std::sync::Arc;

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
    pub fn connect(
        &self,
        database: Option<&str>,
        profile: &Arc<Profile>,
    ) -> EngineResult<MySqlSession> {
        let login = Login {
            host: &self.host,
            port: self.port,
            user: &self.user,
            password: self.password.as_ref().map(Secret::reveal),
            database,
            tls: self.tls.as_ref(),
        };
        MySqlSession::connect(&login, Arc::clone(profile))
    }

    pub fn from_url(url: &ServerUrl, port: u16) -> EngineResult<Place> {
        Ok(Place {
            host: url.host.clone(),
            port: url.port.unwrap_or(port),
            user: url.user.clone().unwrap_or_else(|| "root".into()),
            password: url.secret().or_else(|| password::for_mysql().password),
            tls: Tls::new(&url.tls, None)?,
        })
    }
}

pub fn text_of(session: &mut MySqlSession, sql: &str) -> EngineResult<String> {
    match run_to_end(session, sql, ANSWER_LIMIT)? {
        Outcome::Rows { rows, .. } => match rows.first().and_then(|r| r.first()) {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(Value::Int(i)) => Ok(i.to_string()),
            other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
        },
        other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
    }
}

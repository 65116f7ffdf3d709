//! Logging in to a user's server, and listing and dropping the databases that
//! Isolde has made there.

use super::wire::MySqlSession;
use crate::connect::address::ServerAddress;
use crate::connect::password;
use crate::connect::tls::Tls;
use crate::connect::url::ServerUrl;
use crate::engine::{EngineError, EngineResult, Outcome, WORK_LIMIT, query_text, run_to_end};
use crate::server::abandoned::AdminConnection;
use isolde_catalog::engines;
use isolde_model::Value;
use std::sync::Arc;

struct AdminSession(MySqlSession);

impl AdminSession {
    fn names(&mut self, sql: &str) -> EngineResult<Vec<String>> {
        match run_to_end(&mut self.0, sql, WORK_LIMIT)? {
            Outcome::Rows { rows, .. } => Ok(rows
                .iter()
                .filter_map(|row| match row.first() {
                    Some(Value::Text(name)) => Some(name.clone()),
                    Some(Value::Int(number)) => Some(number.to_string()),
                    _ => None,
                })
                .collect()),
            other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
        }
    }
}

impl AdminConnection for AdminSession {
    fn databases(&mut self) -> EngineResult<Vec<String>> {
        self.names("show databases like 'isolde%'")
    }

    fn drop_database(&mut self, name: &str) -> EngineResult<()> {
        // A statement of a dead client may still run, and lock its tables.
        let sessions = format!("select id from information_schema.processlist where db = '{name}'");
        let me = query_text(&mut self.0, "select connection_id()")?;
        for session in self.names(&sessions).unwrap_or_default() {
            if session != me {
                run_to_end(&mut self.0, &format!("kill {session}"), WORK_LIMIT)?;
            }
        }
        run_to_end(&mut self.0, "set session lock_wait_timeout = 20", WORK_LIMIT)?;
        match run_to_end(&mut self.0, &format!("drop database {name}"), WORK_LIMIT)? {
            Outcome::Error(error) => Err(EngineError::Refused(error.to_string())),
            _ => Ok(()),
        }
    }
}

/// The address that a URL names, with the family's defaults.
pub(super) fn address(url: &ServerUrl, port: u16) -> EngineResult<ServerAddress> {
    Ok(ServerAddress {
        host: url.host.clone(),
        port: url.port.unwrap_or(port),
        user: url.user.clone().unwrap_or_else(|| "root".into()),
        password: url.secret().or_else(|| password::for_mysql().password),
        tls: Tls::new(&url.tls, None)?,
    })
}

fn open(url: &ServerUrl, port: u16) -> EngineResult<Box<dyn AdminConnection>> {
    let address = address(url, port)?;
    let session =
        address.connect(url.database.as_deref(), &Arc::new(engines::profile("mysql", "")))?;
    Ok(Box::new(AdminSession(session)))
}

pub fn admin(url: &ServerUrl) -> EngineResult<Box<dyn AdminConnection>> {
    open(url, 3306)
}

pub fn tidb_admin(url: &ServerUrl) -> EngineResult<Box<dyn AdminConnection>> {
    open(url, 4000)
}

//! The way into a user's server, to the databases that Isolde has made there.

use super::place::{Place, text_of};
use super::profile::mysql_profile;
use super::wire::MySqlSession;
use crate::connect::url::ServerUrl;
use crate::engine::{EngineError, EngineResult, Outcome, WORK_LIMIT, run_to_end};
use crate::server::leftovers::Door;
use isolde_core::Value;
use std::sync::Arc;

struct Entrance(MySqlSession);

impl Entrance {
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

impl Door for Entrance {
    fn databases(&mut self) -> EngineResult<Vec<String>> {
        self.names("show databases like 'isolde%'")
    }

    fn drop_database(&mut self, name: &str) -> EngineResult<()> {
        // What a dead client has sent may still run, and hold its tables.
        let sessions = format!("select id from information_schema.processlist where db = '{name}'");
        let me = text_of(&mut self.0, "select connection_id()")?;
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

fn open(url: &ServerUrl, port: u16) -> EngineResult<Box<dyn Door>> {
    let place = Place::from_url(url, port)?;
    let session = place.connect(url.database.as_deref(), &Arc::new(mysql_profile()))?;
    Ok(Box::new(Entrance(session)))
}

pub fn door(url: &ServerUrl) -> EngineResult<Box<dyn Door>> {
    open(url, 3306)
}

pub fn tidb_door(url: &ServerUrl) -> EngineResult<Box<dyn Door>> {
    open(url, 4000)
}

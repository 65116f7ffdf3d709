//! The way into a user's server: who logs in where, and the databases that
//! Isolde has made there.

use super::cockroach;
use super::place::{Flavour, Place, ask_text};
use super::profile::profile;
use super::wire::PgSession;
use crate::connect::password;
use crate::connect::tls::Tls;
use crate::connect::url::ServerUrl;
use crate::engine::{EngineError, EngineResult, Outcome, WORK_LIMIT, run_to_end};
use crate::server::leftovers::Door;
use isolde_core::history::ErrorClass;
use isolde_core::{Profile, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Entrance {
    pub place: Place,
    pub profile: Arc<Profile>,
    /// The database that is logged in to.
    pub database: String,
    pub session: PgSession,
}

impl Entrance {
    pub fn open(url: &ServerUrl, flavour: Flavour) -> EngineResult<Entrance> {
        let (profile, port, user, database) = match flavour {
            Flavour::Postgres => (profile(), 5432, "postgres", "postgres"),
            Flavour::Cockroach => (cockroach::profile(), 26257, "root", "defaultdb"),
        };
        let profile = Arc::new(profile);
        let database = url.database.clone().unwrap_or_else(|| database.into());
        let port = url.port.unwrap_or(port);
        let user = url.user.clone().unwrap_or_else(|| user.into());
        let asked = password::Place { host: &url.host, port, database: &database, user: &user };
        let found = url.secret().map_or_else(|| password::for_postgres(&asked), Into::into);
        let place = Place {
            host: url.host.clone(),
            port,
            user,
            password: found.password.clone(),
            tls: Tls::new(&url.tls, usual_authorities())?,
        };
        let session = place.connect(&database, &profile).map_err(|e| found.remark_on(e))?;
        Ok(Entrance { place, profile, database, session })
    }

    fn tell(&mut self, sql: &str) -> EngineResult<()> {
        match run_to_end(&mut self.session, sql, WORK_LIMIT)? {
            Outcome::Error(error) if error.class == ErrorClass::Lost => {
                Err(EngineError::Lost(error.message))
            }
            Outcome::Error(error) => Err(EngineError::Refused(error.to_string())),
            _ => Ok(()),
        }
    }

    /// Transactions that were prepared in a database keep it from going.
    fn forget_prepared(&mut self, name: &str) -> EngineResult<()> {
        let count =
            format!("select count(*)::text from pg_prepared_xacts where database = '{name}'");
        if ask_text(&mut self.session, &count)? == "0" {
            return Ok(());
        }
        let mut inside = self.place.connect(name, &self.profile)?;
        let next = "select 'rollback prepared ' || quote_literal(gid) from pg_prepared_xacts \
                    where database = current_database()";
        while let Ok(rollback) = ask_text(&mut inside, next) {
            if let Outcome::Error(error) = run_to_end(&mut inside, &rollback, WORK_LIMIT)? {
                return Err(EngineError::Refused(error.to_string()));
            }
        }
        Ok(())
    }
}

/// The file that PostgreSQL's own clients take the authorities from.
fn usual_authorities() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".postgresql/root.crt"))
}

impl Door for Entrance {
    fn databases(&mut self) -> EngineResult<Vec<String>> {
        let sql = "select datname::text from pg_database where datname like 'isolde%' order by 1";
        match run_to_end(&mut self.session, sql, WORK_LIMIT)? {
            Outcome::Rows { rows, .. } => Ok(rows
                .iter()
                .filter_map(|row| match row.first() {
                    Some(Value::Text(name)) => Some(name.clone()),
                    _ => None,
                })
                .collect()),
            other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
        }
    }

    fn drop_database(&mut self, name: &str) -> EngineResult<()> {
        // CockroachDB has neither of these, and needs none.
        let _ = self.forget_prepared(name);
        let others = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
        );
        let since = Instant::now();
        loop {
            let _ = self.tell(&others);
            match self.tell(&format!("drop database {name}")) {
                // Those who were told to go take a moment.
                Err(EngineError::Refused(_)) if since.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE)
                }
                done => return done,
            }
        }
    }
}

pub fn door(url: &ServerUrl) -> EngineResult<Box<dyn Door>> {
    Ok(Box::new(Entrance::open(url, Flavour::Postgres)?))
}

pub fn cockroach_door(url: &ServerUrl) -> EngineResult<Box<dyn Door>> {
    Ok(Box::new(Entrance::open(url, Flavour::Cockroach)?))
}

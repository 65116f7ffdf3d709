//! Logging in to a user's server, and listing and dropping the databases that
//! Isolde has made there.

use super::flavour::Flavour;
use super::wire::PgSession;
use crate::connect::address::ServerAddress;
use crate::connect::password;
use crate::connect::tls::Tls;
use crate::connect::url::ServerUrl;
use crate::engine::{EngineError, EngineResult, Outcome, WORK_LIMIT, query_text, run_to_end};
use crate::server::abandoned::AdminConnection;
use isolde_catalog::engines;
use isolde_model::history::ErrorClass;
use isolde_model::{Profile, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct AdminSession {
    pub address: ServerAddress,
    pub profile: Arc<Profile>,
    /// The database that the session is connected to.
    pub database: String,
    pub session: PgSession,
}

impl AdminSession {
    pub fn open(url: &ServerUrl, flavour: Flavour) -> EngineResult<AdminSession> {
        let (profile, port, user, database) = match flavour {
            Flavour::Postgres => (engines::profile("postgres", ""), 5432, "postgres", "postgres"),
            Flavour::Cockroach => (engines::profile("cockroach", ""), 26257, "root", "defaultdb"),
        };
        let profile = Arc::new(profile);
        let database = url.database.clone().unwrap_or_else(|| database.into());
        let port = url.port.unwrap_or(port);
        let user = url.user.clone().unwrap_or_else(|| user.into());
        let asked = password::PgpassKey { host: &url.host, port, database: &database, user: &user };
        let found = url.secret().map_or_else(|| password::for_postgres(&asked), Into::into);
        let address = ServerAddress {
            host: url.host.clone(),
            port,
            user,
            password: found.password.clone(),
            tls: Tls::new(&url.tls, usual_authorities())?,
        };
        let session = address.connect(Some(&database), &profile).map_err(|e| found.remark_on(e))?;
        Ok(AdminSession { address, profile, database, session })
    }

    fn execute(&mut self, sql: &str) -> EngineResult<()> {
        match run_to_end(&mut self.session, sql, WORK_LIMIT)? {
            Outcome::Error(error) if error.class == ErrorClass::Lost => {
                Err(EngineError::Lost(error.message))
            }
            Outcome::Error(error) => Err(EngineError::Refused(error.to_string())),
            _ => Ok(()),
        }
    }

    /// Rolls back prepared transactions, which keep a database from being
    /// dropped.
    fn forget_prepared(&mut self, name: &str) -> EngineResult<()> {
        let count =
            format!("select count(*)::text from pg_prepared_xacts where database = '{name}'");
        if query_text(&mut self.session, &count)? == "0" {
            return Ok(());
        }
        let mut inside: PgSession = self.address.connect(Some(name), &self.profile)?;
        let next = "select 'rollback prepared ' || quote_literal(gid) from pg_prepared_xacts \
                    where database = current_database()";
        while let Ok(rollback) = query_text(&mut inside, next) {
            if let Outcome::Error(error) = run_to_end(&mut inside, &rollback, WORK_LIMIT)? {
                return Err(EngineError::Refused(error.to_string()));
            }
        }
        Ok(())
    }
}

/// The default file of authorities of PostgreSQL's own clients.
fn usual_authorities() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".postgresql/root.crt"))
}

impl AdminConnection for AdminSession {
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
        // CockroachDB supports neither of these, and needs none.
        let _ = self.forget_prepared(name);
        let others = format!(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"
        );
        let since = Instant::now();
        loop {
            let _ = self.execute(&others);
            match self.execute(&format!("drop database {name}")) {
                // Terminated sessions take a moment to end.
                Err(EngineError::Refused(_)) if since.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE)
                }
                done => return done,
            }
        }
    }
}

pub fn admin(url: &ServerUrl) -> EngineResult<Box<dyn AdminConnection>> {
    Ok(Box::new(AdminSession::open(url, Flavour::Postgres)?))
}

pub fn cockroach_admin(url: &ServerUrl) -> EngineResult<Box<dyn AdminConnection>> {
    Ok(Box::new(AdminSession::open(url, Flavour::Cockroach)?))
}

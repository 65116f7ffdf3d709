//! The database that a spec runs in: empty for each spec, on a server
//! configured as PostgreSQL's own test driver expects it.

use super::engine::Postgres;
use super::spec_link::{PgLinks, session_settings};
use super::wire::PgSession;
use crate::engine::{
    ANSWER_LIMIT, Engine, EngineError, EngineResult, Outcome, SpecConnections, SpecLinks,
    query_text, run_to_end,
};
use std::time::{Duration, Instant};

/// Some of PostgreSQL's own specs name the database that they run in.
const SPEC_DATABASE: &str = "isolation_regression";
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

impl SpecConnections for Postgres {
    fn open_links(
        &mut self,
        test: &str,
        sessions: &[String],
        interrupted: fn() -> bool,
    ) -> EngineResult<Box<dyn SpecLinks>> {
        if self.private.is_some() {
            self.turn_on_autovacuum()?;
        }
        let database = self.fresh_spec_database()?;
        let settings = session_settings(test, self.private.is_some());
        let connect = || self.address.connect_with(Some(&database), &self.profile, &settings);
        Ok(Box::new(PgLinks::open(sessions, interrupted, connect)?))
    }
}

impl Postgres {
    /// From PostgreSQL 18 on, index plans differ without autovacuum.
    fn turn_on_autovacuum(&mut self) -> EngineResult<()> {
        let since = Instant::now();
        while query_text(&mut self.control, "show autovacuum")? != "on" {
            if since.elapsed() > PATIENCE {
                return Err(EngineError::Refused("autovacuum does not start".into()));
            }
            self.control("alter system set autovacuum = on")?;
            self.control("select pg_reload_conf()")?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Creates the database for specs. If a user's server has one of that name
    /// already, specs run in Isolde's own database, emptied.
    fn fresh_spec_database(&mut self) -> EngineResult<String> {
        self.drop_spec_database()?;
        match self.control(&format!("create database {SPEC_DATABASE}"))? {
            Outcome::Error(error) if self.private.is_some() => Err(EngineError::Refused(format!(
                "cannot create the database {SPEC_DATABASE}: {error}"
            ))),
            Outcome::Error(_) => {
                // Dropping the public schema has removed its default
                // privileges.
                let rights = if self.major >= 15 { "usage" } else { "all" };
                self.control(&format!("grant {rights} on schema public to public"))?;
                Ok(self.database.clone())
            }
            _ => {
                self.made_spec_database = true;
                Ok(SPEC_DATABASE.into())
            }
        }
    }

    pub(super) fn drop_spec_database(&mut self) -> EngineResult<()> {
        if !self.made_spec_database {
            return Ok(());
        }
        let force = if self.major >= 13 { " with (force)" } else { "" };
        let drop = format!("drop database if exists {SPEC_DATABASE}{force}");
        let since = Instant::now();
        while let Outcome::Error(error) = self.control(&drop)? {
            // An abandoned spec may have left a prepared transaction.
            if let Ok(mut admin) =
                self.address.connect::<PgSession>(Some(SPEC_DATABASE), &self.profile)
            {
                let left = "select 'rollback prepared ' || quote_literal(gid) \
                            from pg_prepared_xacts where database = current_database()";
                while let Ok(rollback) = query_text(&mut admin, left) {
                    if let Outcome::Error(_) = run_to_end(&mut admin, &rollback, ANSWER_LIMIT)? {
                        break;
                    }
                }
            }
            if since.elapsed() > PATIENCE {
                return Err(EngineError::Refused(format!("{drop}: {error}")));
            }
            // Sessions of the previous spec may still be disconnecting.
            std::thread::sleep(PAUSE);
        }
        self.made_spec_database = false;
        Ok(())
    }
}

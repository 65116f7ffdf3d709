//! Where specs run on PostgreSQL: an empty database for each, on a server
//! that behaves as PostgreSQL's own test driver would find it.

use super::engine::Postgres;
use super::place::ask_text;
use crate::engine::{ANSWER_LIMIT, Engine, EngineError, EngineResult, Outcome, run_to_end};
use crate::spec::{PgLinks, session_settings};
use std::time::{Duration, Instant};

/// Some of PostgreSQL's own specs name the database that they run in.
const SPEC_DATABASE: &str = "isolation_regression";
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

impl Postgres {
    pub(super) fn open_spec_links(
        &mut self,
        test: &str,
        sessions: &[String],
    ) -> EngineResult<PgLinks> {
        if self.private.is_some() {
            self.turn_on_autovacuum()?;
        }
        let database = self.fresh_spec_database()?;
        let settings = session_settings(test, self.private.is_some());
        PgLinks::open(sessions, || self.place.connect_with(&database, &self.profile, &settings))
    }

    /// From PostgreSQL 18 on, indexes are planned differently without it.
    fn turn_on_autovacuum(&mut self) -> EngineResult<()> {
        let since = Instant::now();
        while ask_text(&mut self.control, "show autovacuum")? != "on" {
            if since.elapsed() > PATIENCE {
                return Err(EngineError::Refused("autovacuum does not start".into()));
            }
            self.control("alter system set autovacuum = on")?;
            self.control("select pg_reload_conf()")?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// On a user's server somebody else may own a database of that name: then
    /// specs run in the one that Isolde made for itself, emptied.
    fn fresh_spec_database(&mut self) -> EngineResult<String> {
        self.drop_spec_database()?;
        match self.control(&format!("create database {SPEC_DATABASE}"))? {
            Outcome::Error(error) if self.private.is_some() => Err(EngineError::Refused(format!(
                "cannot create the database {SPEC_DATABASE}: {error}"
            ))),
            Outcome::Error(_) => {
                // Dropping the public schema took away what everybody may do.
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
            // A spec that was given up may have left a prepared transaction.
            if let Ok(mut door) = self.place.connect(SPEC_DATABASE, &self.profile) {
                let left = "select 'rollback prepared ' || quote_literal(gid) \
                            from pg_prepared_xacts where database = current_database()";
                while let Ok(rollback) = ask_text(&mut door, left) {
                    if let Outcome::Error(_) = run_to_end(&mut door, &rollback, ANSWER_LIMIT)? {
                        break;
                    }
                }
            }
            if since.elapsed() > PATIENCE {
                return Err(EngineError::Refused(format!("{drop}: {error}")));
            }
            // Sessions of the spec before this one may still be leaving.
            std::thread::sleep(PAUSE);
        }
        self.made_spec_database = false;
        Ok(())
    }
}

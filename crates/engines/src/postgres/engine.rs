//! A server as the runner sees it: sessions, the control connection, and the
//! database that Isolde works in.

use super::door::Entrance;
use super::place::{Flavour, Place, ask_text};
use super::private_server;
use super::wire::PgSession;
use crate::engine::*;
use crate::fetch::install::{self, Install};
use crate::server::PrivateServer;
use crate::server::leftovers::Door;
use crate::spec::PgLinks;
use isolde_core::history::TargetInfo;
use isolde_core::{Level, Profile, Value};
use std::sync::Arc;
use std::time::Duration;

pub struct Postgres {
    pub(super) info: TargetInfo,
    pub(super) profile: Arc<Profile>,
    pub(super) flavour: Flavour,
    pub(super) place: Place,
    pub(super) database: String,
    /// Where to log in to make and drop the database; none for private servers.
    pub(super) entrance: Option<String>,
    pub(super) control: PgSession,
    pub(super) major: u32,
    pub(super) opened: Vec<SessionId>,
    /// CockroachDB's own names for the sessions.
    pub(super) names: Vec<(SessionId, String)>,
    pub(super) private: Option<Private>,
    /// Whether the database for specs is there, and ours.
    pub(super) made_spec_database: bool,
}

pub(super) struct Private {
    pub(super) server: PrivateServer,
    pub(super) install: Install,
    pub(super) cache: install::Cache,
}

impl Postgres {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn new(
        target: &str,
        profile: Arc<Profile>,
        flavour: Flavour,
        place: Place,
        database: String,
        entrance: Option<String>,
        mut control: PgSession,
        private: Option<Private>,
    ) -> EngineResult<Postgres> {
        let full = ask_text(&mut control, "select version()")?;
        let version = full
            .split_whitespace()
            .find(|w| w.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()))
            .unwrap_or("unknown")
            .trim_start_matches('v')
            .to_string();
        let major = version.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0);
        let engine = if flavour == Flavour::Postgres { "postgres" } else { "cockroach" };
        let mut info = TargetInfo {
            target: target.into(),
            engine: engine.into(),
            version,
            settings: Default::default(),
            follows: None,
        };
        info.settings.insert("version".into(), full);
        for name in ["deadlock_timeout", "fsync", "synchronous_commit", "autovacuum"] {
            if let Ok(value) = ask_text(&mut control, &format!("show {name}")) {
                info.settings.insert(name.into(), value);
            }
        }
        Ok(Postgres {
            info,
            profile,
            flavour,
            place,
            database,
            entrance,
            control,
            major,
            opened: Vec::new(),
            names: Vec::new(),
            private,
            made_spec_database: false,
        })
    }

    /// On a user's server: ask for the same signals, if the role may.
    fn prepare(&self, session: &mut PgSession) -> EngineResult<()> {
        if self.private.is_some() {
            session.tells_waits = true;
            return Ok(());
        }
        if self.flavour == Flavour::Cockroach {
            return Ok(());
        }
        let wishes = [
            "set deadlock_timeout = '1ms'",
            "set log_lock_waits = on",
            "set client_min_messages = log",
        ];
        let mut granted = true;
        for wish in wishes {
            granted &= !matches!(run_to_end(session, wish, ANSWER_LIMIT)?, Outcome::Error(_));
        }
        // The signal is read by its English words.
        let messages = run_to_end(session, "set lc_messages = 'C'", ANSWER_LIMIT)?;
        session.tells_waits = granted && !matches!(messages, Outcome::Error(_));
        Ok(())
    }

    /// Transactions prepared for two-phase commit keep their locks for ever.
    fn forget_prepared(&mut self) -> EngineResult<()> {
        let sql = "select gid::text from pg_prepared_xacts where database = current_database()";
        let Outcome::Rows { rows, .. } = self.control(sql)? else { return Ok(()) };
        for row in rows {
            if let Some(Value::Text(gid)) = row.first() {
                self.control(&format!("rollback prepared '{}'", gid.replace('\'', "''")))?;
            }
        }
        Ok(())
    }
}

impl Engine for Postgres {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        let mut session = self.place.connect(&self.database, &self.profile)?;
        self.prepare(&mut session)?;
        if self.flavour == Flavour::Cockroach {
            self.names.push((session.id(), ask_text(&mut session, "show session_id")?));
        }
        self.opened.push(session.id());
        Ok(Box::new(session))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        vec![format!("set session characteristics as transaction isolation level {level}")]
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        // On a line of its own: the BEGIN may end in a comment.
        let mark = if begin.contains("--") { "\n" } else { " " };
        vec![format!("{begin}{mark}isolation level {}", level.name().to_lowercase())]
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        self.wait_states(sessions)
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        let sql = match self.names.iter().find(|(id, _)| *id == session) {
            Some((_, name)) => format!("cancel session '{name}'"),
            None => format!("select pg_cancel_backend({session})"),
        };
        self.control(&sql).map(|_| ())
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        let again = || self.place.connect(&self.database, &self.profile);
        let outcome = run_while_alive(&mut self.control, sql, again);
        if outcome.is_err() {
            // Its late answer must not be taken for that to the next one.
            self.control.hang_up();
        }
        outcome
    }

    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        self.control(&statements.join(";\n"))
    }

    fn clear(&mut self) -> EngineResult<()> {
        if self.flavour == Flavour::Postgres {
            self.forget_prepared()?;
        }
        let schemas = "select nspname from pg_namespace where nspname not like 'pg\\_%' \
                       and nspname not in ('information_schema', 'crdb_internal')";
        let Outcome::Rows { rows, .. } = self.control(schemas)? else { return Ok(()) };
        let mut batch = String::new();
        for row in &rows {
            if let Some(Value::Text(name)) = row.first() {
                batch.push_str(&format!("drop schema \"{}\" cascade;", name.replace('"', "\"\"")));
            }
        }
        batch.push_str("create schema public");
        match self.control(&batch)? {
            Outcome::Error(error) => Err(EngineError::Refused(format!("{batch}: {error}"))),
            _ => Ok(()),
        }
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        let names = "select quote_ident(relname)::text from pg_class \
                     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') \
                     and not relispartition order by relname";
        let Outcome::Rows { rows, .. } = self.control(names)? else { return Ok(Vec::new()) };
        let name = |row: &Vec<Value>| match row.first() {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => None,
        };
        Ok(rows.iter().filter_map(name).collect())
    }

    fn revive(&mut self) -> EngineResult<()> {
        let Some(private) = &mut self.private else {
            self.control = self.place.connect(&self.database, &self.profile)?;
            return Ok(());
        };
        private.server.stop();
        let started = private_server::start(&private.install, &private.cache, &self.profile)?;
        self.place = started.place;
        private.server = started.server;
        self.control = started.control;
        self.made_spec_database = false;
        self.opened.clear();
        Ok(())
    }

    fn client(&self) -> Option<ClientInfo> {
        Some(ClientInfo {
            host: self.place.host.clone(),
            port: self.place.port,
            user: self.place.user.clone(),
            password: self.place.password.clone(),
            database: self.database.clone(),
            private: self.private.is_some(),
        })
    }

    fn spec_links(&mut self, test: &str, sessions: &[String]) -> EngineResult<Option<PgLinks>> {
        if self.flavour == Flavour::Cockroach {
            return Ok(None);
        }
        self.open_spec_links(test, sessions).map(Some)
    }

    fn log_tail(&self) -> Option<String> {
        self.private.as_ref().map(|p| p.server.log_tail())
    }

    fn server_ended(&mut self, patience: Duration) -> Option<String> {
        self.private.as_mut().and_then(|p| p.server.ended(patience))
    }

    fn is_users(&self) -> bool {
        self.private.is_none()
    }

    fn kill_server(&mut self) -> EngineResult<()> {
        match &mut self.private {
            Some(private) => {
                private.server.kill();
                Ok(())
            }
            None => Err(EngineError::Refused("this server is the user's".into())),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(entrance) = self.entrance.clone() else { return };
        let _ = self.drop_spec_database();
        if let Ok(session) = self.place.connect(&entrance, &self.profile) {
            let (place, profile) = (self.place.clone(), Arc::clone(&self.profile));
            let mut door = Entrance { place, profile, database: entrance, session };
            let _ = door.drop_database(&self.database);
        }
    }
}

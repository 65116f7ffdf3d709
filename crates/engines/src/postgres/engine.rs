//! A PostgreSQL server as an engine: sessions, the control connection, and
//! Isolde's database.

use super::admin::AdminSession;
use super::flavour::Flavour;
use super::private_server;
use super::wire::PgSession;
use crate::connect::address::ServerAddress;
use crate::engine::*;
use crate::fetch::install::{self, Install};
use crate::server::PrivateServer;
use crate::server::abandoned::AdminConnection;
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile, Value};
use std::sync::Arc;
use std::time::Duration;

pub struct Postgres {
    pub(super) info: TargetInfo,
    pub(super) profile: Arc<Profile>,
    pub(super) flavour: Flavour,
    pub(super) address: ServerAddress,
    pub(super) database: String,
    /// The database to log in to for creating and dropping Isolde's own; none
    /// for private servers.
    pub(super) admin_database: Option<String>,
    pub(super) control: PgSession,
    pub(super) major: u32,
    pub(super) opened: Vec<SessionId>,
    /// CockroachDB's own names for the sessions.
    pub(super) names: Vec<(SessionId, String)>,
    pub(super) private: Option<Private>,
    /// Whether Isolde has created the database for specs.
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
        address: ServerAddress,
        database: String,
        admin_database: Option<String>,
        mut control: PgSession,
        private: Option<Private>,
    ) -> EngineResult<Postgres> {
        let full = query_text(&mut control, "select version()")?;
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
            if let Ok(value) = query_text(&mut control, &format!("show {name}")) {
                info.settings.insert(name.into(), value);
            }
        }
        Ok(Postgres {
            info,
            profile,
            flavour,
            address,
            database,
            admin_database,
            control,
            major,
            opened: Vec::new(),
            names: Vec::new(),
            private,
            made_spec_database: false,
        })
    }

    /// Turns on the lock-wait signals that a private server sends, as far as
    /// the role on a user's server is allowed to.
    fn prepare(&self, session: &mut PgSession) -> EngineResult<()> {
        if self.private.is_some() {
            session.reports_waits = true;
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
        // The signal is recognised by its English text.
        let messages = run_to_end(session, "set lc_messages = 'C'", ANSWER_LIMIT)?;
        session.reports_waits = granted && !matches!(messages, Outcome::Error(_));
        Ok(())
    }

    /// Rolls back prepared transactions, which keep their locks for ever.
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
        let mut session: PgSession = self.address.connect(Some(&self.database), &self.profile)?;
        self.prepare(&mut session)?;
        if self.flavour == Flavour::Cockroach {
            self.names.push((session.id(), query_text(&mut session, "show session_id")?));
        }
        self.opened.push(session.id());
        Ok(Box::new(session))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        vec![format!("set session characteristics as transaction isolation level {level}")]
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        // On a new line: the BEGIN may end in a comment.
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
        self.address.run_control(&mut self.control, sql, &self.database, &self.profile)
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
        if self.flavour == Flavour::Postgres {
            // As in a new database: a case may take another role.
            batch.push_str("; grant usage on schema public to public");
        }
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

    fn client_address(&self) -> Option<ClientAddress> {
        let private = self.private.is_some();
        Some(ClientAddress::Server(self.address.client_info(&self.database, private)))
    }

    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        Some(self)
    }

    fn spec_connections(&mut self) -> Option<&mut dyn SpecConnections> {
        match self.flavour {
            Flavour::Postgres => Some(self),
            Flavour::Cockroach => None,
        }
    }
}

impl ServerControl for Postgres {
    fn revive(&mut self) -> EngineResult<()> {
        let Some(private) = &mut self.private else {
            self.control = self.address.connect(Some(&self.database), &self.profile)?;
            return Ok(());
        };
        private.server.stop();
        let started = private_server::start(&private.install, &private.cache, &self.profile)?;
        self.address = started.address;
        private.server = started.server;
        self.control = started.control;
        self.made_spec_database = false;
        self.opened.clear();
        Ok(())
    }

    fn log_tail(&self) -> Option<String> {
        self.private.as_ref().map(|p| p.server.log_tail())
    }

    fn exit_status(&mut self, patience: Duration) -> Option<String> {
        self.private.as_mut().and_then(|p| p.server.ended(patience))
    }

    fn is_users(&self) -> bool {
        self.private.is_none()
    }

    fn kill(&mut self) -> EngineResult<()> {
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
        let Some(admin_database) = self.admin_database.clone() else { return };
        let _ = self.drop_spec_database();
        if let Ok(session) = self.address.connect(Some(&admin_database), &self.profile) {
            let (address, profile) = (self.address.clone(), Arc::clone(&self.profile));
            let mut admin = AdminSession { address, profile, database: admin_database, session };
            let _ = admin.drop_database(&self.database);
        }
    }
}

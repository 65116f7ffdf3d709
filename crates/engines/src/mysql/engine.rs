//! A server of the family as the runner sees it: sessions, the control
//! connection, and the database that Isolde works in.

use super::flavour::{Flavour, View, short_version};
use super::place::{Place, text_of};
use super::private_server::Started;
use super::wire::MySqlSession;
use super::{hidden, innodb, tidb_waits};
use crate::engine::*;
use crate::names::quote_if_needed;
use crate::server::PrivateServer;
use isolde_core::history::TargetInfo;
use isolde_core::value::Row;
use isolde_core::{Level, Profile, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Starts the private server once more.
pub type Restart = Box<dyn Fn() -> EngineResult<Started> + Send>;

pub struct MySqlEngine {
    pub(super) info: TargetInfo,
    pub(super) profile: Arc<Profile>,
    pub(super) flavour: Flavour,
    pub(super) place: Place,
    pub(super) database: String,
    pub(super) control: MySqlSession,
    /// performance_schema's thread of each connection.
    pub(super) threads: HashMap<u64, SessionId>,
    /// How often the views were asked.
    pub(super) looks: usize,
    pub(super) tidb_commits: tidb_waits::Commits,
    pub(super) tidb_known: tidb_waits::Known,
    pub(super) hidden: hidden::Hidden,
    pub(super) private: Option<(PrivateServer, Restart)>,
}

impl MySqlEngine {
    pub(super) fn new(
        target: &str,
        flavour: Flavour,
        place: Place,
        database: String,
        mut control: MySqlSession,
        private: Option<(PrivateServer, Restart)>,
    ) -> EngineResult<MySqlEngine> {
        run_to_end(&mut control, &format!("use {database}"), ANSWER_LIMIT)?;
        let full = text_of(&mut control, flavour.version_sql)?;
        let mut info = TargetInfo {
            target: target.into(),
            engine: flavour.engine.clone(),
            version: short_version(&full),
            settings: Default::default(),
            follows: None,
        };
        info.settings.insert("version".into(), full);
        for name in ["innodb_snapshot_isolation", "innodb_flush_log_at_trx_commit", "sql_mode"] {
            if let Ok(value) = text_of(&mut control, &format!("select @@{name}")) {
                info.settings.insert(name.into(), value);
            }
        }
        let profile = Arc::new(flavour.profile.clone());
        let threads = HashMap::new();
        Ok(MySqlEngine {
            info,
            profile,
            flavour,
            place,
            database,
            control,
            threads,
            looks: 0,
            tidb_commits: tidb_waits::Commits::default(),
            tidb_known: tidb_waits::Known::default(),
            hidden: hidden::Hidden::default(),
            private,
        })
    }

    pub(super) fn rows(&mut self, sql: &str) -> EngineResult<Vec<Row>> {
        match self.control(sql)? {
            Outcome::Rows { rows, .. } => Ok(rows),
            Outcome::Error(error) => Err(EngineError::Refused(format!("{sql}: {error}"))),
            _ => Ok(Vec::new()),
        }
    }

    /// What outlives the tables: routines, events, and on a private server
    /// transactions prepared by XA, which keep their locks for ever.
    fn leftovers(&mut self) -> EngineResult<Vec<String>> {
        if matches!(self.flavour.view, View::TidbTrx | View::Nothing) {
            return Ok(Vec::new());
        }
        let texts = |rows: Vec<Row>, column: usize| -> Vec<String> {
            let text = |row: &Row| match row.get(column) {
                Some(Value::Text(text)) => Some(text.clone()),
                _ => None,
            };
            rows.iter().filter_map(text).collect()
        };
        let mut found = Vec::new();
        if self.private.is_some() {
            let prepared = texts(self.rows("xa recover")?, 3);
            found.extend(
                prepared.iter().map(|id| format!("xa rollback '{}'", id.replace('\'', "''"))),
            );
        }
        let routines = "select concat('drop ', routine_type, ' `', routine_name, '`') \
                        from information_schema.routines where routine_schema = database() union all \
                        select concat('drop event `', event_name, '`') \
                        from information_schema.events where event_schema = database()";
        found.extend(texts(self.rows(routines)?, 0));
        Ok(found)
    }
}

impl MySqlEngine {
    /// Drops all that there is; false when there was nothing.
    fn drop_all(&mut self) -> EngineResult<bool> {
        let mut drops = self.leftovers()?;
        let rows = self.rows("show full tables")?;
        let mut tables: Vec<String> = Vec::new();
        for row in &rows {
            let (Some(Value::Text(name)), Some(Value::Text(kind))) = (row.first(), row.get(1))
            else {
                continue;
            };
            let name = format!("`{}`", name.replace('`', "``"));
            match kind.as_str() {
                "VIEW" => drops.push(format!("drop view if exists {name}")),
                "SEQUENCE" => drops.push(format!("drop sequence if exists {name}")),
                _ => tables.push(name),
            }
        }
        if !tables.is_empty() {
            // One statement: each is a change of the schema of its own.
            drops.push(format!("drop table if exists {}", tables.join(", ")));
        }
        if drops.is_empty() {
            return Ok(false);
        }
        let batch =
            format!("set foreign_key_checks = 0; {}; set foreign_key_checks = 1", drops.join("; "));
        match self.control(&batch)? {
            Outcome::Error(error) => Err(EngineError::Refused(format!("{batch}: {error}"))),
            _ => Ok(true),
        }
    }
}

impl Engine for MySqlEngine {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        let mut session = self.place.connect(Some(&self.database), &self.profile)?;
        for sql in self.flavour.greeting.clone() {
            if let Outcome::Error(error) = run_to_end(&mut session, &sql, ANSWER_LIMIT)? {
                return Err(EngineError::Refused(format!("{sql}: {error}")));
            }
        }
        if self.flavour.view == View::TidbTrx {
            // The handshake has room for half of TiDB's number only.
            let id = text_of(&mut session, "select connection_id()")?;
            session.id = id.parse().unwrap_or(session.id);
        }
        if self.flavour.view == View::DataLockWaits {
            let id = session.id();
            let thread = self.rows(&format!(
                "select thread_id from performance_schema.threads where processlist_id = {id}"
            ))?;
            let thread = thread.first().and_then(|r| r.first()).and_then(innodb::number);
            let thread = thread.ok_or_else(|| {
                EngineError::Refused(
                    "performance_schema is off; Isolde needs it to see waits".into(),
                )
            })?;
            self.threads.insert(thread, id);
        }
        Ok(Box::new(session))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        vec![format!("set session transaction isolation level {level}")]
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        vec![format!("set transaction isolation level {level}"), begin.into()]
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        self.wait_states(sessions)
    }

    fn breaks_deadlocks_within(&self) -> Option<Duration> {
        // It looks for one whenever a wait begins; this leaves it some time.
        (self.flavour.view == View::DataLockWaits).then_some(Duration::from_millis(300))
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        self.control(&format!("kill query {session}")).map(|_| ())
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        let again = || self.place.connect(Some(&self.database), &self.profile);
        let mut outcome = run_while_alive(&mut self.control, sql, again);
        if let Ok(Outcome::Error(_)) = outcome {
            // On Dolt the next statement would see the snapshot of this one.
            let ended = run_while_alive(&mut self.control, "rollback", again);
            outcome = ended.and(outcome);
        }
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
        // Dolt has been seen to leave one of several tables.
        for _ in 0..3 {
            if !self.drop_all()? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        let rows = self.rows("show full tables")?;
        let mut names: Vec<String> = rows
            .iter()
            .filter_map(|row| match (row.first(), row.get(1)) {
                (Some(Value::Text(name)), Some(Value::Text(kind))) if kind == "BASE TABLE" => {
                    Some(quote_if_needed(name, '`'))
                }
                _ => None,
            })
            .collect();
        names.sort();
        Ok(names)
    }

    fn revive(&mut self) -> EngineResult<()> {
        let Some((server, restart)) = &mut self.private else {
            self.control = self.place.connect(Some(&self.database), &self.profile)?;
            return Ok(());
        };
        server.stop();
        let started = restart()?;
        *server = started.server;
        self.place = started.place;
        self.control = started.control;
        self.threads.clear();
        let sql = format!("use {}", self.database);
        run_to_end(&mut self.control, &sql, ANSWER_LIMIT).map(|_| ())
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

    fn log_tail(&self) -> Option<String> {
        self.private.as_ref().map(|(server, _)| server.log_tail())
    }

    fn server_ended(&mut self, patience: Duration) -> Option<String> {
        self.private.as_mut().and_then(|(server, _)| server.ended(patience))
    }

    fn is_users(&self) -> bool {
        self.private.is_none()
    }

    fn kill_server(&mut self) -> EngineResult<()> {
        match &mut self.private {
            Some((server, _)) => {
                server.kill();
                Ok(())
            }
            None => Err(EngineError::Refused("this server is the user's".into())),
        }
    }
}

impl Drop for MySqlEngine {
    fn drop(&mut self) {
        if self.private.is_none() {
            let drop = format!("drop database {}", self.database);
            // The control connection may be what broke.
            if self.control(&drop).is_err()
                && let Ok(mut fresh) = self.place.connect(None, &self.profile)
            {
                let _ = run_to_end(&mut fresh, &drop, ANSWER_LIMIT);
            }
        }
    }
}

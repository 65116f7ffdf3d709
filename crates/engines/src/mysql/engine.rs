//! A server of MySQL's family as an engine: sessions, the control connection,
//! and Isolde's database.

use super::flavour::{Flavour, View, short_version};
use super::private_server::RunningServer;
use super::wire::MySqlSession;
use super::{hidden, innodb, tidb_waits};
use crate::connect::address::ServerAddress;
use crate::engine::*;
use crate::names::quote_if_needed;
use crate::server::PrivateServer;
use isolde_model::history::TargetInfo;
use isolde_model::value::Row;
use isolde_model::{Level, Profile, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Starts the private server once more.
pub type Restart = Box<dyn Fn() -> EngineResult<RunningServer> + Send>;

pub struct MySqlEngine {
    pub(super) info: TargetInfo,
    pub(super) profile: Arc<Profile>,
    pub(super) flavour: Flavour,
    pub(super) address: ServerAddress,
    pub(super) database: String,
    pub(super) control: MySqlSession,
    /// performance_schema's thread of each connection.
    pub(super) threads: HashMap<u64, SessionId>,
    /// How often the views were polled.
    pub(super) looks: usize,
    pub(super) tidb_commits: tidb_waits::Commits,
    pub(super) tidb_known: tidb_waits::Known,
    pub(super) hidden: hidden::HiddenWaits,
    pub(super) private: Option<(PrivateServer, Restart)>,
}

impl MySqlEngine {
    pub(super) fn new(
        target: &str,
        flavour: Flavour,
        address: ServerAddress,
        database: String,
        mut control: MySqlSession,
        private: Option<(PrivateServer, Restart)>,
    ) -> EngineResult<MySqlEngine> {
        run_to_end(&mut control, &format!("use {database}"), ANSWER_LIMIT)?;
        let full = query_text(&mut control, flavour.version_sql)?;
        let mut info = TargetInfo {
            target: target.into(),
            engine: flavour.engine.clone(),
            version: short_version(&full),
            settings: Default::default(),
            follows: None,
        };
        info.settings.insert("version".into(), full);
        for name in ["innodb_snapshot_isolation", "innodb_flush_log_at_trx_commit", "sql_mode"] {
            if let Ok(value) = query_text(&mut control, &format!("select @@{name}")) {
                info.settings.insert(name.into(), value);
            }
        }
        let profile = Arc::new(flavour.profile.clone());
        let threads = HashMap::new();
        Ok(MySqlEngine {
            info,
            profile,
            flavour,
            address,
            database,
            control,
            threads,
            looks: 0,
            tidb_commits: tidb_waits::Commits::default(),
            tidb_known: tidb_waits::Known::default(),
            hidden: hidden::HiddenWaits::default(),
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

    /// Statements that drop what dropping tables does not: routines, events,
    /// and on a private server transactions prepared by XA, which keep their
    /// locks for ever.
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
    /// Drops everything in the database; false when it was empty.
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
            // One statement: each would be a schema change of its own.
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
        let mut session: MySqlSession =
            self.address.connect(Some(&self.database), &self.profile)?;
        for sql in self.flavour.greeting.clone() {
            if let Outcome::Error(error) = run_to_end(&mut session, &sql, ANSWER_LIMIT)? {
                return Err(EngineError::Refused(format!("{sql}: {error}")));
            }
        }
        if self.flavour.view == View::TidbTrx {
            // The handshake has room for only half of TiDB's connection id.
            let id = query_text(&mut session, "select connection_id()")?;
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
        // InnoDB looks for a deadlock whenever a wait begins; this leaves it
        // some time.
        (self.flavour.view == View::DataLockWaits).then_some(Duration::from_millis(300))
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        self.control(&format!("kill query {session}")).map(|_| ())
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        let (database, profile) = (&self.database, &self.profile);
        let mut run =
            |sql: &str| self.address.run_control(&mut self.control, sql, database, profile);
        let outcome = run(sql);
        if let Ok(Outcome::Error(_)) = outcome {
            // On Dolt the next statement would otherwise read from the snapshot
            // of this one.
            return run("rollback").and(outcome);
        }
        outcome
    }

    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        self.control(&statements.join(";\n"))
    }

    fn clear(&mut self) -> EngineResult<()> {
        // Dolt sometimes leaves one of several tables.
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

    fn client_address(&self) -> Option<ClientAddress> {
        let private = self.private.is_some();
        Some(ClientAddress::Server(self.address.client_info(&self.database, private)))
    }

    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        Some(self)
    }
}

impl ServerControl for MySqlEngine {
    fn revive(&mut self) -> EngineResult<()> {
        let Some((server, restart)) = &mut self.private else {
            self.control = self.address.connect(Some(&self.database), &self.profile)?;
            return Ok(());
        };
        server.stop();
        let started = restart()?;
        *server = started.server;
        self.address = started.address;
        self.control = started.control;
        self.threads.clear();
        let sql = format!("use {}", self.database);
        run_to_end(&mut self.control, &sql, ANSWER_LIMIT).map(|_| ())
    }

    fn log_tail(&self) -> Option<String> {
        self.private.as_ref().map(|(server, _)| server.log_tail())
    }

    fn exit_status(&mut self, patience: Duration) -> Option<String> {
        self.private.as_mut().and_then(|(server, _)| server.ended(patience))
    }

    fn is_users(&self) -> bool {
        self.private.is_none()
    }

    fn kill(&mut self) -> EngineResult<()> {
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
            // The control connection may be the one that broke.
            if self.control(&drop).is_err()
                && let Ok(mut fresh) = self.address.connect::<MySqlSession>(None, &self.profile)
            {
                let _ = run_to_end(&mut fresh, &drop, ANSWER_LIMIT);
            }
        }
    }
}

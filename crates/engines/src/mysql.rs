//! MySQL, MariaDB and the servers that speak their protocol.

mod door;
mod errors;
mod hidden;
mod tidb;
mod views;

pub use door::{door, tidb_door};

pub use errors::common_errors;

use crate::engine::*;
use crate::innodb;
use crate::mysql_servers::{self, Started};
use crate::mysql_wire::{Login, MySqlSession};
use crate::owner::Owner;
use crate::password;
use crate::secret::Secret;
use crate::server::PrivateServer;
use crate::target::{Named, Options, Target};
use crate::tls::Tls;
use crate::url::ServerUrl;
use isolde_core::history::{ErrorEffect, TargetInfo};
use isolde_core::profile::{Ddl, Profile, Waiting, promise};
use isolde_core::value::Row;
use isolde_core::{Anomaly, Level, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub const VERSION_SQL: &str = "select version()";

fn innodb_profile(documentation: &str, snapshot: bool) -> Profile {
    use Anomaly::*;
    let repeatable: &[Anomaly] =
        if snapshot { &[G2Item, G2] } else { &[Pmp, P4, GSingle, G2Item, G2] };
    let by = if snapshot { "snapshot isolation" } else { "snapshot for reads, current for writes" };
    Profile {
        levels: vec![
            promise(
                Level::ReadUncommitted,
                "dirty reads",
                &[G1a, G1b, G1c, Otv, Pmp, P4, GSingle, G2Item, G2],
            ),
            promise(
                Level::ReadCommitted,
                "a snapshot a statement",
                &[Pmp, P4, GSingle, G2Item, G2],
            ),
            promise(Level::RepeatableRead, by, repeatable),
            promise(Level::Serializable, "two-phase locking", &[]),
        ],
        default_level: Level::RepeatableRead,
        begin: "begin".into(),
        waiting: Waiting::Probe,
        ddl: Ddl::CommitsImplicitly,
        errors: common_errors(),
        other_errors: ErrorEffect::Statement,
        documentation: documentation.into(),
        untested: false,
        commit_ordered: vec![Level::Serializable],
        serial_writes: vec![Level::RepeatableRead, Level::Serializable],
        behaviours: innodb::behaviours(snapshot),
    }
}

pub fn mysql_profile() -> Profile {
    innodb_profile(
        "https://dev.mysql.com/doc/refman/en/innodb-transaction-isolation-levels.html",
        false,
    )
}

pub fn mariadb_profile(snapshot: bool) -> Profile {
    innodb_profile("https://mariadb.com/kb/en/set-transaction/", snapshot)
}

/// Which view tells who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    DataLockWaits,
    InnodbStatus,
    /// The same, of versions that leave out transactions which only read.
    OldInnodbStatus,
    TidbTrx,
    Nothing,
}

#[derive(Clone)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<Secret>,
    /// None is in clear.
    pub tls: Option<Tls>,
}

impl Place {
    pub fn connect(
        &self,
        database: Option<&str>,
        profile: &Arc<Profile>,
    ) -> EngineResult<MySqlSession> {
        let login = Login {
            host: &self.host,
            port: self.port,
            user: &self.user,
            password: self.password.as_ref().map(Secret::reveal),
            database,
            tls: self.tls.as_ref(),
        };
        MySqlSession::connect(&login, Arc::clone(profile))
    }

    pub fn from_url(url: &ServerUrl, port: u16) -> EngineResult<Place> {
        Ok(Place {
            host: url.host.clone(),
            port: url.port.unwrap_or(port),
            user: url.user.clone().unwrap_or_else(|| "root".into()),
            password: url.secret().or_else(|| password::for_mysql().password),
            tls: Tls::new(&url.tls, None)?,
        })
    }
}

/// What differs between the servers of the family.
#[derive(Clone)]
pub struct Flavour {
    /// The engine's name with its mode.
    pub engine: String,
    pub profile: Profile,
    pub view: View,
    /// Sent once on every new session.
    pub greeting: Vec<String>,
    /// Asks for the version; not every server tells its own by `version()`.
    pub version_sql: &'static str,
}

type Restart = Box<dyn Fn() -> EngineResult<Started> + Send>;

pub struct MySqlEngine {
    info: TargetInfo,
    profile: Arc<Profile>,
    flavour: Flavour,
    place: Place,
    database: String,
    control: MySqlSession,
    /// performance_schema's thread of each connection.
    threads: HashMap<u64, SessionId>,
    /// How often the views were asked.
    looks: usize,
    tidb_commits: tidb::Commits,
    tidb_known: tidb::Known,
    hidden: hidden::Hidden,
    private: Option<(PrivateServer, Restart)>,
}

pub fn open_mariadb(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    open_named("mariadb", named, options)
}

pub fn open_mysql(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    open_named("mysql", named, options)
}

fn open_named(engine: &str, named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
    let install = crate::install::find(engine, named.version.as_deref(), &options.cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let mine = named.clone();
    let cache = options.cache.clone();
    let restart: Restart = Box::new(move || mysql_servers::start(&install, &cache, &mine));
    MySqlEngine::private(&target, named, restart, innodb_flavour)
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    MySqlEngine::on_server(url, target, 3306, innodb_flavour)
}

/// Told by the server itself, so that `mysql://` on a MariaDB is right too.
fn innodb_flavour(control: &mut MySqlSession, mode: Option<&str>) -> EngineResult<Flavour> {
    let version = text_of(control, "select version()")?;
    let maria = version.to_ascii_lowercase().contains("mariadb")
        || control.server_version.to_ascii_lowercase().contains("mariadb");
    if maria {
        let setting = text_of(control, "select @@innodb_snapshot_isolation").unwrap_or_default();
        let profile = mariadb_profile(setting == "1");
        let engine = mode.map_or("mariadb".to_string(), |m| format!("mariadb+{m}"));
        let numbers = version_numbers(&version);
        let view = if numbers < (10, 5) { View::OldInnodbStatus } else { View::InnodbStatus };
        return Ok(Flavour {
            engine,
            profile,
            view,
            greeting: patience(),
            version_sql: VERSION_SQL,
        });
    }
    let modern = version_numbers(&version) >= (8, 0);
    let view = if modern { View::DataLockWaits } else { View::OldInnodbStatus };
    Ok(Flavour {
        engine: "mysql".into(),
        profile: mysql_profile(),
        view,
        greeting: patience(),
        version_sql: VERSION_SQL,
    })
}

/// Only real deadlock detection should end a wait.
fn patience() -> Vec<String> {
    vec!["set session innodb_lock_wait_timeout = 3600".into()]
}

pub fn text_of(session: &mut MySqlSession, sql: &str) -> EngineResult<String> {
    match run_to_end(session, sql, ANSWER_LIMIT)? {
        Outcome::Rows { rows, .. } => match rows.first().and_then(|r| r.first()) {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(Value::Int(i)) => Ok(i.to_string()),
            other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
        },
        other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
    }
}

type FlavourOf = fn(&mut MySqlSession, Option<&str>) -> EngineResult<Flavour>;

impl MySqlEngine {
    pub fn private(
        target: &str,
        named: &Named,
        restart: Restart,
        flavour: FlavourOf,
    ) -> EngineResult<Box<dyn Engine>> {
        let Started { server, place, mut control } = restart()?;
        let flavour = flavour(&mut control, named.mode.as_deref())?;
        let private = Some((server, restart));
        let made = MySqlEngine::new(target, flavour, place, "isolde".into(), control, private)?;
        Ok(Box::new(made))
    }

    pub fn on_server(
        url: &ServerUrl,
        target: &str,
        port: u16,
        flavour: FlavourOf,
    ) -> EngineResult<Box<dyn Engine>> {
        let place = Place::from_url(url, port)?;
        let mut control = place.connect(url.database.as_deref(), &Arc::new(mysql_profile()))?;
        let flavour = flavour(&mut control, None)?;
        let database = Owner::this_process().fresh_database_name();
        let create = format!("create database {database}");
        if let Outcome::Error(error) = run_to_end(&mut control, &create, WORK_LIMIT)? {
            return Err(EngineError::Refused(format!(
                "Isolde works in a database of its own and may not create one here: {error}"
            )));
        }
        let made =
            MySqlEngine::new(target, flavour, place.clone(), database.clone(), control, None);
        match made {
            Ok(engine) => Ok(Box::new(engine)),
            Err(error) => {
                let mut door = place.connect(None, &Arc::new(mysql_profile()))?;
                run_to_end(&mut door, &format!("drop database {database}"), WORK_LIMIT)?;
                Err(error)
            }
        }
    }

    fn new(
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
            tidb_commits: tidb::Commits::default(),
            tidb_known: tidb::Known::default(),
            hidden: hidden::Hidden::default(),
            private,
        })
    }

    fn rows(&mut self, sql: &str) -> EngineResult<Vec<Row>> {
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

fn version_numbers(version: &str) -> (u32, u32) {
    let short = short_version(version);
    let mut parts = short.split('.').map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn short_version(full: &str) -> String {
    // TiDB: 8.0.11-TiDB-v8.5.1; MariaDB: 5.5.5-10.11.19-MariaDB or 10.11.19-MariaDB.
    if let Some((_, tidb)) = full.split_once("TiDB-v") {
        // A build from source has a date behind its number: not that release.
        return tidb.split('-').take(2).collect::<Vec<_>>().join("-");
    }
    let maria = full.strip_prefix("5.5.5-").unwrap_or(full);
    maria.split(['-', '+']).next().unwrap_or(maria).to_string()
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
        let waits = match self.flavour.view {
            View::DataLockWaits => self.data_lock_waits()?,
            View::InnodbStatus | View::OldInnodbStatus => self.innodb_status()?,
            View::TidbTrx => match self.tidb_waits()? {
                rows if rows.is_empty() && self.looks % 4 == 3 => {
                    // A change of the schema passes through the view even when
                    // nobody is in its way.
                    let first = self.tidb_ddl_waits()?;
                    if !first.is_empty() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    let still = self.tidb_ddl_waits()?;
                    first.into_iter().filter(|wait| still.contains(wait)).collect()
                }
                rows => rows,
            },
            View::Nothing => Vec::new(),
        };
        let waiters: Vec<SessionId> = waits.iter().map(|(waiter, _)| *waiter).collect();
        self.hidden.follow(sessions, &waiters);
        let mut states: Vec<WaitState> = sessions
            .iter()
            .map(|s| match waits.iter().find(|(waiter, _)| waiter == s) {
                Some((_, holders)) => WaitState::Waiting(holders.clone()),
                None => WaitState::Free,
            })
            .collect();
        let rest: Vec<SessionId> = sessions
            .iter()
            .zip(&states)
            .filter(|(_, state)| **state == WaitState::Free)
            .map(|(s, _)| *s)
            .collect();
        // Waits above InnoDB are rare; asking about them every time would make
        // all others be seen later. "Free" only means: ask again.
        self.looks += 1;
        let innodb = !matches!(self.flavour.view, View::TidbTrx | View::Nothing);
        if innodb && !rest.is_empty() && self.looks.is_multiple_of(4) {
            let mut above = self.upper_locks(&rest)?;
            if above.is_empty() && self.flavour.view == View::OldInnodbStatus {
                above = self.hidden_waits(&rest, waits.len())?;
            }
            for (session, state) in sessions.iter().zip(&mut states) {
                if above.contains(session) {
                    *state = WaitState::Waiting(Vec::new());
                }
            }
        }
        Ok(states)
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
            return Ok(());
        }
        let batch =
            format!("set foreign_key_checks = 0; {}; set foreign_key_checks = 1", drops.join("; "));
        match self.control(&batch)? {
            Outcome::Error(error) => Err(EngineError::Refused(format!("{batch}: {error}"))),
            _ => Ok(()),
        }
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        let rows = self.rows("show full tables")?;
        let mut names: Vec<String> = rows
            .iter()
            .filter_map(|row| match (row.first(), row.get(1)) {
                (Some(Value::Text(name)), Some(Value::Text(kind))) if kind == "BASE TABLE" => {
                    Some(crate::names::quote_if_needed(name, '`'))
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

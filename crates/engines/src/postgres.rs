//! PostgreSQL, and what speaks its protocol.

mod door;
mod private_server;
mod spec_place;

use crate::cockroach;
use crate::engine::*;
use crate::install::{self, Install};
use crate::leftovers::Door;
use crate::owner::Owner;
use crate::pg_wire::{Login, PgSession};
use crate::secret::Secret;
use crate::server::PrivateServer;
use crate::spec::PgLinks;
use crate::target::{Named, Options, Target};
use crate::tls::Tls;
use crate::url::ServerUrl;
use door::Entrance;
pub use door::{cockroach_door, door};
use isolde_core::history::{ErrorClass, ErrorEffect, TargetInfo};
use isolde_core::profile::{
    Behaviour, Counterfactual, Ddl, Profile, Waiting, behaviour, promise, rule,
};
use isolde_core::{Anomaly, Level, Value};
use private_server::Started;
use std::sync::Arc;
use std::time::Duration;

pub fn profile() -> Profile {
    use Anomaly::*;
    let weak = [Pmp, P4, GSingle, G2Item, G2];
    let poisoned = ErrorEffect::Poisoned;
    Profile {
        levels: vec![
            promise(Level::ReadUncommitted, "the same as READ COMMITTED", &weak),
            promise(Level::ReadCommitted, "a snapshot a statement", &weak),
            promise(Level::RepeatableRead, "snapshot isolation", &[G2Item, G2]),
            promise(Level::Serializable, "serializable snapshot isolation", &[]),
        ],
        default_level: Level::ReadCommitted,
        begin: "begin".into(),
        waiting: Waiting::Probe,
        ddl: Ddl::Transactional,
        errors: vec![
            rule("40001", ErrorClass::Serialization, poisoned),
            rule("40P01", ErrorClass::Deadlock, poisoned),
            rule("55P03", ErrorClass::LockTimeout, poisoned),
            rule("25P02", ErrorClass::Poisoned, poisoned),
            rule("25006", ErrorClass::ReadOnly, poisoned),
            rule("57014", ErrorClass::Cancelled, poisoned),
            // Shutdown, crash of another backend, connection failures.
            rule("57P", ErrorClass::Lost, ErrorEffect::Lost),
            rule("08", ErrorClass::Lost, ErrorEffect::Lost),
            rule("23", ErrorClass::Constraint, poisoned),
            rule("XX", ErrorClass::Internal, poisoned),
            rule("42", ErrorClass::Rejected, poisoned),
            rule("0A", ErrorClass::Rejected, poisoned),
            rule("22", ErrorClass::Other, poisoned),
        ],
        other_errors: poisoned,
        documentation: "https://www.postgresql.org/docs/current/transaction-iso.html".into(),
        untested: false,
        commit_ordered: Vec::new(),
        serial_writes: vec![Level::Serializable],
        behaviours: behaviours(),
    }
}

fn behaviours() -> Vec<Behaviour> {
    const ISO: &str = "https://www.postgresql.org/docs/current/transaction-iso.html";
    let link = |part: &str| format!("{ISO}#{part}");
    let weak = [Level::ReadUncommitted, Level::ReadCommitted];
    let all =
        [Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    vec![
        behaviour(
            "serial order is not commit order",
            &all,
            Counterfactual::AnotherOrder,
            "the outcome is that of a serial order; none of the levels promises that it is the \
             order of the commits",
            &link("XACT-SERIALIZABLE"),
        ),
        behaviour(
            "re-check of updated rows",
            &weak,
            Counterfactual::LockingRead,
            "a write that waited for a row looks at its new version, but at no other row again, \
             so rows that came to match meanwhile are passed by",
            &link("XACT-READ-COMMITTED"),
        ),
        behaviour(
            "no predicate locks",
            &[Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead],
            Counterfactual::Level(Level::Serializable),
            "a write does not see what others have written and not committed, and does not keep \
             rows from appearing, changing or going behind it: write skew and phantoms are \
             possible below SERIALIZABLE",
            ISO,
        ),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    Postgres,
    Cockroach,
}

/// How to reach the server, without anything borrowed.
#[derive(Clone)]
struct Place {
    host: String,
    port: u16,
    user: String,
    password: Option<Secret>,
    /// None is in clear.
    tls: Option<Tls>,
}

impl Place {
    fn connect(&self, database: &str, profile: &Arc<Profile>) -> EngineResult<PgSession> {
        self.connect_with(database, profile, &[])
    }

    fn connect_with(
        &self,
        database: &str,
        profile: &Arc<Profile>,
        settings: &[(String, String)],
    ) -> EngineResult<PgSession> {
        let login = Login {
            host: &self.host,
            port: self.port,
            user: &self.user,
            password: self.password.as_ref().map(Secret::reveal),
            database,
            settings,
            tls: self.tls.as_ref(),
        };
        PgSession::connect(&login, Arc::clone(profile))
    }
}

pub struct Postgres {
    info: TargetInfo,
    profile: Arc<Profile>,
    flavour: Flavour,
    place: Place,
    database: String,
    /// Where to log in to make and drop the database; none for private servers.
    entrance: Option<String>,
    control: PgSession,
    major: u32,
    opened: Vec<SessionId>,
    /// CockroachDB's own names for the sessions.
    names: Vec<(SessionId, String)>,
    private: Option<Private>,
    /// Whether the database for specs is there, and ours.
    made_spec_database: bool,
}

struct Private {
    server: PrivateServer,
    install: Install,
    cache: install::Cache,
}

pub fn open_private(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
    let install = install::find("postgres", named.version.as_deref(), &options.cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let profile = Arc::new(profile());
    let Started { server, place, control } =
        private_server::start(&install, &options.cache, &profile)?;
    let private = Private { server, install, cache: options.cache.clone() };
    let made = Postgres::new(
        &target,
        profile,
        Flavour::Postgres,
        place,
        "isolde".into(),
        None,
        control,
        Some(private),
    )?;
    Ok(Box::new(made))
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    open_on_server(url, target, Flavour::Postgres)
}

pub fn open_on_server(
    url: &ServerUrl,
    target: &str,
    flavour: Flavour,
) -> EngineResult<Box<dyn Engine>> {
    let Entrance { place, profile, database: entrance, session: mut door } =
        Entrance::open(url, flavour)?;
    let database = Owner::this_process().fresh_database_name();
    let create = format!("create database {database}");
    if let Outcome::Error(error) = run_to_end(&mut door, &create, WORK_LIMIT)? {
        return Err(EngineError::Refused(format!(
            "Isolde works in a database of its own and may not create one here: {error}"
        )));
    }
    let made = place.connect(&database, &profile).and_then(|control| {
        let (profile, place, name) = (Arc::clone(&profile), place.clone(), database.clone());
        Postgres::new(target, profile, flavour, place, name, Some(entrance), control, None)
    });
    match made {
        Ok(engine) => Ok(Box::new(engine)),
        Err(error) => {
            run_to_end(&mut door, &format!("drop database {database}"), WORK_LIMIT)?;
            Err(error)
        }
    }
}

impl Postgres {
    #[allow(clippy::too_many_arguments)]
    fn new(
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

    fn probe_sql(&self, sessions: &[SessionId]) -> String {
        let list: Vec<String> = sessions.iter().map(SessionId::to_string).collect();
        let safe = if self.major >= 10 { " || pg_safe_snapshot_blocking_pids(p)" } else { "" };
        format!(
            "select p, b from unnest(array[{}]::int[]) p, unnest(pg_blocking_pids(p){safe}) b",
            list.join(",")
        )
    }
}

fn ask_text(session: &mut PgSession, sql: &str) -> EngineResult<String> {
    match run_to_end(session, sql, ANSWER_LIMIT)? {
        Outcome::Rows { rows, .. } => match rows.first().and_then(|r| r.first()) {
            Some(Value::Text(text)) => Ok(text.clone()),
            other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
        },
        other => Err(EngineError::Refused(format!("{sql} answered {other:?}"))),
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
        if self.flavour == Flavour::Cockroach {
            let sql = cockroach::probe_sql();
            let outcome = self.control(&sql)?;
            return Ok(cockroach::waits(&outcome, sessions, &self.names));
        }
        let sql = self.probe_sql(sessions);
        let rows = match self.control(&sql)? {
            Outcome::Rows { rows, .. } => rows,
            other => return Err(EngineError::Refused(format!("the lock view answered {other:?}"))),
        };
        let number = |v: Option<&Value>| match v {
            Some(Value::Int(i)) => u64::try_from(*i).ok(),
            _ => None,
        };
        let holders = |session: &SessionId| -> Vec<SessionId> {
            rows.iter()
                .filter(|r| number(r.first()) == Some(*session))
                .filter_map(|r| number(r.get(1)))
                // 0 is a prepared transaction. A stranger (autovacuum, another
                // user) will let go by itself: not a wait of the case.
                .filter(|holder| *holder == 0 || self.opened.contains(holder))
                .collect()
        };
        Ok(sessions
            .iter()
            .map(|s| match holders(s) {
                on if on.is_empty() => WaitState::Free,
                on => WaitState::Waiting(on),
            })
            .collect())
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

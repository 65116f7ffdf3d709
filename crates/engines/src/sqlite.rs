//! SQLite, in process. Its three modes differ in what a reader sees of a
//! writer: `sqlite` (rollback journal), `sqlite+wal`, and
//! `sqlite+shared-cache`, the only one with READ UNCOMMITTED.
//!
//! SQLite never waits here (no busy timeout): it answers BUSY at once, and the
//! runner tries again when another session has got on. There is no deadlock
//! error; the runner picks the last one to wait.

use crate::engine::*;
use crate::scratch::Scratch;
use isolde_core::history::{DbError, ErrorClass, ErrorEffect, TargetInfo};
use isolde_core::profile::{Ddl, Profile, Waiting, promise, rule};
use isolde_core::{Anomaly, Level, Value};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, ffi};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A statement that computes longer than this is interrupted.
const LONGEST_STATEMENT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    RollbackJournal,
    Wal,
    SharedCache,
}

impl Mode {
    pub const ALL: [(&'static str, Mode); 3] =
        [("", Mode::RollbackJournal), ("wal", Mode::Wal), ("shared-cache", Mode::SharedCache)];
}

pub fn profile(mode: Mode) -> Profile {
    let mut levels = vec![promise(Level::Serializable, "one writer at a time", &[])];
    if mode == Mode::SharedCache {
        let allows = [
            Anomaly::G1a,
            Anomaly::G1b,
            Anomaly::G1c,
            Anomaly::Otv,
            Anomaly::Pmp,
            Anomaly::P4,
            Anomaly::GSingle,
            Anomaly::G2Item,
            Anomaly::G2,
        ];
        let dirty = promise(Level::ReadUncommitted, "PRAGMA read_uncommitted, one writer", &allows);
        levels.insert(0, dirty);
    }
    let gone = ErrorEffect::RolledBack;
    Profile {
        levels,
        default_level: Level::Serializable,
        begin: "begin".into(),
        waiting: Waiting::Retry,
        ddl: Ddl::Transactional,
        errors: vec![
            // The snapshot is too old to write on; only a new transaction helps.
            rule("SQLITE_BUSY_SNAPSHOT", ErrorClass::Serialization, gone),
            rule("SQLITE_BUSY", ErrorClass::Busy, ErrorEffect::Statement),
            rule("SQLITE_LOCKED", ErrorClass::Busy, ErrorEffect::Statement),
            rule("SQLITE_CONSTRAINT", ErrorClass::Constraint, ErrorEffect::Statement),
            rule("SQLITE_INTERRUPT", ErrorClass::Cancelled, ErrorEffect::Statement),
            rule("SQLITE_READONLY", ErrorClass::ReadOnly, ErrorEffect::Statement),
            rule("SQLITE_CORRUPT", ErrorClass::Internal, ErrorEffect::Statement),
            rule("SQLITE_ERROR", ErrorClass::Rejected, ErrorEffect::Statement),
        ],
        other_errors: ErrorEffect::Statement,
        documentation: "https://sqlite.org/isolation.html".into(),
        untested: false,
        // A reader of the write-ahead log keeps its snapshot while a writer
        // commits, so it may come before one that ended earlier.
        commit_ordered: if mode == Mode::Wal { vec![] } else { vec![Level::Serializable] },
        // There is one writer at a time at every level.
        serial_writes: vec![Level::ReadUncommitted, Level::Serializable],
        behaviours: Vec::new(),
    }
}

pub struct Sqlite {
    info: TargetInfo,
    profile: Profile,
    mode: Mode,
    file: PathBuf,
    control: SqliteSession,
    next_id: SessionId,
    /// Keeps the private directory alive; none when the user named the file.
    _dir: Option<Scratch>,
    remove_at_end: bool,
}

impl Sqlite {
    /// A private database in a temporary directory.
    pub fn private(mode: Mode, target: &str) -> EngineResult<Sqlite> {
        let dir = crate::scratch::scratch_dir("sqlite")
            .map_err(|e| EngineError::Unreachable(format!("no temporary directory: {e}")))?;
        let file = dir.path().join("isolde.db");
        Sqlite::open_file(mode, target, file, Some(dir))
    }

    /// A file that the user named; it must not exist yet and goes at the end.
    pub fn at(path: &Path, target: &str) -> EngineResult<Sqlite> {
        if let Some(found) = all_files(path).into_iter().find(|f| f.exists()) {
            return Err(EngineError::Refused(format!(
                "{} exists; Isolde works only in a database that it creates itself: name a new file",
                found.display()
            )));
        }
        Sqlite::open_file(Mode::RollbackJournal, target, path.to_path_buf(), None)
    }

    fn open_file(
        mode: Mode,
        target: &str,
        file: PathBuf,
        dir: Option<Scratch>,
    ) -> EngineResult<Sqlite> {
        let profile = profile(mode);
        let control = SqliteSession::open(&file, mode, 0, &profile)?;
        let suffix = Mode::ALL.iter().find(|(_, m)| *m == mode).map_or("", |(name, _)| name);
        let engine = if suffix.is_empty() { "sqlite".into() } else { format!("sqlite+{suffix}") };
        let journal = if mode == Mode::Wal { "wal" } else { "delete" };
        let settings = [("journal_mode", journal), ("synchronous", "off"), ("busy_timeout", "0")];
        let info = TargetInfo {
            target: target.into(),
            engine,
            version: rusqlite::version().into(),
            settings: settings.map(|(k, v)| (k.into(), v.into())).into(),
        };
        let remove_at_end = dir.is_none();
        let next_id = 1;
        Ok(Sqlite { info, profile, mode, file, control, next_id, _dir: dir, remove_at_end })
    }
}

/// The database and what SQLite keeps beside it.
fn all_files(database: &Path) -> Vec<PathBuf> {
    ["", "-wal", "-shm", "-journal"]
        .iter()
        .map(|suffix| {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        })
        .collect()
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if self.remove_at_end {
            for file in all_files(&self.file) {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

impl Engine for Sqlite {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        let id = self.next_id;
        self.next_id += 1;
        Ok(Box::new(SqliteSession::open(&self.file, self.mode, id, &self.profile)?))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        if self.mode != Mode::SharedCache {
            return Vec::new();
        }
        vec![format!("pragma read_uncommitted = {}", u8::from(level == Level::ReadUncommitted))]
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        let mut statements = self.level_sql(level);
        statements.push(begin.into());
        statements
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        Ok(vec![WaitState::Free; sessions.len()])
    }

    fn cancel(&mut self, _: SessionId) -> EngineResult<()> {
        Ok(())
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        run_to_end(&mut self.control, sql, LONGEST_STATEMENT)
    }

    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        // One transaction: a commit is what costs.
        self.control("begin")?;
        for sql in statements {
            if let Outcome::Error(error) = self.control(sql)? {
                self.control("rollback")?;
                return Ok(Outcome::Error(error));
            }
        }
        self.control("commit")
    }

    fn clear(&mut self) -> EngineResult<()> {
        // A case may have changed what is kept in the file.
        let journal = if self.mode == Mode::Wal { "wal" } else { "delete" };
        if let Outcome::Rows { rows, .. } = self.control("pragma journal_mode")?
            && rows.first().and_then(|r| r.first()) != Some(&Value::Text(journal.into()))
        {
            let sql = format!("pragma journal_mode = {journal}");
            if let Outcome::Error(error) = self.control(&sql)? {
                return Err(EngineError::Refused(format!("{sql}: {error}")));
            }
        }
        let objects = "select type, name from sqlite_master where name not like 'sqlite_%' \
                       and type in ('table', 'view', 'trigger') order by type = 'table'";
        let Outcome::Rows { rows, .. } = self.control(objects)? else { return Ok(()) };
        if rows.is_empty() {
            return Ok(());
        }
        self.control("pragma foreign_keys = off")?;
        for row in rows {
            if let [Value::Text(kind), Value::Text(name)] = row.as_slice() {
                let drop = format!("drop {kind} if exists \"{}\"", name.replace('"', "\"\""));
                if let Outcome::Error(error) = self.control(&drop)? {
                    return Err(EngineError::Refused(format!("{drop}: {error}")));
                }
            }
        }
        self.control("pragma foreign_keys = on")?;
        Ok(())
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        let names = "select name from sqlite_master where type = 'table' \
                     and name not like 'sqlite_%' order by name";
        let Outcome::Rows { rows, .. } = self.control(names)? else { return Ok(Vec::new()) };
        Ok(rows
            .iter()
            .filter_map(|r| match r.first() {
                Some(Value::Text(name)) => Some(crate::names::quote_if_needed(name, '"')),
                _ => None,
            })
            .collect())
    }

    fn revive(&mut self) -> EngineResult<()> {
        Ok(())
    }

    fn database_file(&self) -> Option<&Path> {
        Some(&self.file)
    }
}

pub struct SqliteSession {
    connection: Connection,
    id: SessionId,
    profile: Profile,
    reply: Option<Reply>,
    clock: Arc<Deadline>,
}

/// Lets SQLite's progress handler end a statement that never would.
struct Deadline {
    since: Instant,
    started_ms: AtomicU64,
    running: AtomicBool,
}

impl Deadline {
    fn passed(&self) -> bool {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let limit = u64::try_from(LONGEST_STATEMENT.as_millis()).unwrap_or(u64::MAX);
        self.running.load(Ordering::Relaxed)
            && now.saturating_sub(self.started_ms.load(Ordering::Relaxed)) > limit
    }

    fn start(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.started_ms.store(now, Ordering::Relaxed);
        self.running.store(true, Ordering::Relaxed);
    }
}

impl SqliteSession {
    fn open(file: &Path, mode: Mode, id: SessionId, profile: &Profile) -> EngineResult<Self> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if mode == Mode::SharedCache {
            flags |= OpenFlags::SQLITE_OPEN_SHARED_CACHE;
        }
        let failed = |e: rusqlite::Error| {
            EngineError::Unreachable(format!("cannot open {}: {e}", file.display()))
        };
        let mut connection = Connection::open_with_flags(file, flags).map_err(failed)?;
        connection.busy_timeout(Duration::ZERO).map_err(failed)?;
        let journal = if mode == Mode::Wal { "wal" } else { "delete" };
        // The control connection sets the journal; for the others it is set.
        if id == 0 {
            connection.pragma_update(None, "journal_mode", journal).map_err(failed)?;
        }
        connection.pragma_update(None, "synchronous", "off").map_err(failed)?;
        connection.pragma_update(None, "foreign_keys", "on").map_err(failed)?;
        let clock = Arc::new(Deadline {
            since: Instant::now(),
            started_ms: AtomicU64::new(0),
            running: AtomicBool::new(false),
        });
        let watched = Arc::clone(&clock);
        connection.progress_handler(100_000, Some(move || watched.passed())).map_err(failed)?;
        Ok(SqliteSession { connection, id, profile: profile.clone(), reply: None, clock })
    }

    fn execute(&self, sql: &str) -> Result<Outcome, rusqlite::Error> {
        let mut statement = self.connection.prepare(sql)?;
        let mut found = Vec::new();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            // Counted here and not before: another session may have changed the
            // table, which SQLite finds out at the first row.
            let columns = row.as_ref().column_count();
            let cells = (0..columns).map(|i| row.get_ref(i).map(cell));
            found.push(cells.collect::<Result<Vec<_>, _>>()?);
        }
        drop(rows);
        let columns: Vec<String> = statement.column_names().map(String::from).collect();
        if !columns.is_empty() {
            return Ok(Outcome::Rows { columns, rows: found });
        }
        match isolde_core::sql::kind(sql) {
            isolde_core::sql::Kind::Write => Ok(Outcome::Affected(self.connection.changes())),
            _ => Ok(Outcome::Done),
        }
    }

    fn error(&self, error: &rusqlite::Error) -> DbError {
        let (code, message) = match error {
            rusqlite::Error::SqliteFailure(inner, text) => {
                let text = text.clone().unwrap_or_else(|| inner.to_string());
                (code_name(inner.extended_code), text)
            }
            rusqlite::Error::SqlInputError { error: inner, msg, .. } => {
                (code_name(inner.extended_code), msg.clone())
            }
            other => ("SQLITE_ERROR".to_string(), other.to_string()),
        };
        let primary: String = code.splitn(3, '_').take(2).collect::<Vec<_>>().join("_");
        let (class, effect) = match self.profile.classify(&code, None) {
            (ErrorClass::Other, _) => self.profile.classify(&primary, None),
            known => known,
        };
        DbError { code, sqlstate: None, message, class, effect }
    }
}

impl Session for SqliteSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn start(&mut self, sql: &str) {
        self.clock.start();
        let outcome = self.execute(sql).unwrap_or_else(|e| Outcome::Error(self.error(&e)));
        self.clock.running.store(false, Ordering::Relaxed);
        let open = !self.connection.is_autocommit();
        let status = if open { TxStatus::Open } else { TxStatus::Idle };
        self.reply = Some(Reply::new(outcome, Some(status)));
    }

    fn reply(&mut self, _: Duration) -> Option<Reply> {
        self.reply.take()
    }

    /// SQLite prepares statements by the schema that it remembers, and some
    /// of its errors then speak of tables that are gone. A read of the schema
    /// makes it look again; that nothing may be read now is no harm.
    fn forget_tables(&mut self) {
        let _ = self.execute("select 1 from sqlite_master limit 1");
    }
}

fn cell(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(i) => Value::Int(i),
        ValueRef::Real(x) => Value::Float(x),
        ValueRef::Text(t) => Value::Text(String::from_utf8_lossy(t).into_owned()),
        ValueRef::Blob(b) => Value::Bytes(b.to_vec()),
    }
}

/// SQLite's own name for a result code, as far as transactions care.
fn code_name(extended: i32) -> String {
    let name = match extended {
        ffi::SQLITE_BUSY_SNAPSHOT => "SQLITE_BUSY_SNAPSHOT",
        ffi::SQLITE_BUSY_RECOVERY => "SQLITE_BUSY_RECOVERY",
        ffi::SQLITE_LOCKED_SHAREDCACHE => "SQLITE_LOCKED_SHAREDCACHE",
        ffi::SQLITE_CONSTRAINT_UNIQUE => "SQLITE_CONSTRAINT_UNIQUE",
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY => "SQLITE_CONSTRAINT_PRIMARYKEY",
        ffi::SQLITE_CONSTRAINT_NOTNULL => "SQLITE_CONSTRAINT_NOTNULL",
        ffi::SQLITE_CONSTRAINT_CHECK => "SQLITE_CONSTRAINT_CHECK",
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => "SQLITE_CONSTRAINT_FOREIGNKEY",
        other => match other & 0xff {
            ffi::SQLITE_ERROR => "SQLITE_ERROR",
            ffi::SQLITE_INTERNAL => "SQLITE_INTERNAL",
            ffi::SQLITE_BUSY => "SQLITE_BUSY",
            ffi::SQLITE_LOCKED => "SQLITE_LOCKED",
            ffi::SQLITE_READONLY => "SQLITE_READONLY",
            ffi::SQLITE_INTERRUPT => "SQLITE_INTERRUPT",
            ffi::SQLITE_IOERR => "SQLITE_IOERR",
            ffi::SQLITE_CORRUPT => "SQLITE_CORRUPT",
            ffi::SQLITE_FULL => "SQLITE_FULL",
            ffi::SQLITE_SCHEMA => "SQLITE_SCHEMA",
            ffi::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
            ffi::SQLITE_MISMATCH => "SQLITE_MISMATCH",
            ffi::SQLITE_MISUSE => "SQLITE_MISUSE",
            _ => return format!("SQLITE_{extended}"),
        },
    };
    name.into()
}

/// The version that is built in.
pub fn version() -> &'static str {
    rusqlite::version()
}

//! One connection: runs statements to their end and classifies errors.

use super::Mode;
use crate::engine::*;
use isolde_model::history::{DbError, ErrorClass};
use isolde_model::{Profile, Value};
use isolde_sql as sql;
use isolde_sql::Kind;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, ffi};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A statement that executes longer than this is interrupted.
pub const LONGEST_STATEMENT: Duration = Duration::from_secs(30);

pub struct SqliteSession {
    connection: Connection,
    id: SessionId,
    profile: Profile,
    reply: Option<Reply>,
    clock: Arc<Deadline>,
}

/// A deadline that SQLite's progress handler checks.
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
    pub fn open(file: &Path, mode: Mode, id: SessionId, profile: &Profile) -> EngineResult<Self> {
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
        // The control connection sets the journal mode for the whole file.
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
            // table, which SQLite notices at the first row.
            let columns = row.as_ref().column_count();
            let cells = (0..columns).map(|i| row.get_ref(i).map(cell));
            found.push(cells.collect::<Result<Vec<_>, _>>()?);
        }
        drop(rows);
        let columns: Vec<String> = statement.column_names().map(String::from).collect();
        if !columns.is_empty() {
            return Ok(Outcome::Rows { columns, rows: found });
        }
        match sql::kind(sql) {
            Kind::Write => Ok(Outcome::Affected(self.connection.changes())),
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
        let (class, effect) = match self.profile.classify(&code, None, &message) {
            (ErrorClass::Other, _) => self.profile.classify(&primary, None, &message),
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

    /// SQLite prepares statements by its cached schema, and some of its errors
    /// then mention tables that no longer exist. Reading the schema refreshes
    /// the cache; an error of this read is harmless.
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

/// SQLite's own name for a result code, for the codes that matter here.
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

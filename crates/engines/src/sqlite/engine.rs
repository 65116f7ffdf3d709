//! A SQLite database file as an engine.

use super::Mode;
use super::session::{LONGEST_STATEMENT, SqliteSession};
use crate::engine::*;
use crate::names::quote_if_needed;
use crate::server::scratch::{Scratch, scratch_dir};
use isolde_catalog::engines;
use isolde_model::history::TargetInfo;
use isolde_model::{Level, Profile, Value};
use std::path::{Path, PathBuf};

pub struct Sqlite {
    info: TargetInfo,
    profile: Profile,
    mode: Mode,
    file: PathBuf,
    control: SqliteSession,
    /// Where statements are evaluated: apart from the file, which is under
    /// test.
    memory: Option<SqliteSession>,
    next_id: SessionId,
    /// Keeps the private directory alive; none when the user named the file.
    _dir: Option<Scratch>,
    remove_at_end: bool,
}

impl Sqlite {
    /// A private database in a temporary directory.
    pub fn private(mode: Mode, target: &str) -> EngineResult<Sqlite> {
        let dir = scratch_dir("sqlite")
            .map_err(|e| EngineError::Unreachable(format!("no temporary directory: {e}")))?;
        let file = dir.path().join("isolde.db");
        Sqlite::open_file(mode, target, file, Some(dir))
    }

    /// A file that the user named. It must not exist yet, and is removed at the
    /// end.
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
        let profile = engines::profile("sqlite", mode.name());
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
            follows: None,
        };
        let remove_at_end = dir.is_none();
        let next_id = 1;
        let memory = None;
        Ok(Sqlite { info, profile, mode, file, control, memory, next_id, _dir: dir, remove_at_end })
    }
}

/// The database file and the files that SQLite keeps next to it.
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
        // One transaction: commits are what is expensive.
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
        // A case may have changed a setting that is stored in the file.
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
                Some(Value::Text(name)) => Some(quote_if_needed(name, '"')),
                _ => None,
            })
            .collect())
    }

    fn client_address(&self) -> Option<ClientAddress> {
        Some(ClientAddress::File(self.file.clone()))
    }

    fn version_tables(&mut self) -> Option<&mut dyn VersionTables> {
        Some(self)
    }
}

impl VersionTables for Sqlite {
    fn create(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        let path = Path::new(":memory:");
        self.memory = Some(SqliteSession::open(path, Mode::RollbackJournal, 0, &self.profile)?);
        for sql in statements {
            if let Outcome::Error(error) = self.evaluate(sql)? {
                return Ok(Outcome::Error(error));
            }
        }
        Ok(Outcome::Done)
    }

    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        match &mut self.memory {
            Some(memory) => run_to_end(memory, sql, LONGEST_STATEMENT),
            None => self.control(sql),
        }
    }
}

//! What the runner needs of a database: [`Engine`] and [`Session`].
//!
//! A session is one connection for its whole life, with at most one statement
//! in flight. Sending and receiving are apart, so that one thread can keep
//! many sessions going: [`Session::start`] sends, [`Session::reply`] looks
//! whether the answer has come. An engine opens sessions, owns the control
//! connection that tells who waits, and knows what its database is called, so
//! that nothing outside of it is ever touched.

use crate::connect::secret::Secret;
use crate::spec::PgLinks;
use isolde_core::history::{DbError, ErrorClass, ErrorEffect, Fall, TargetInfo};
use isolde_core::profile::Ddl;
use isolde_core::sql::Kind;
use isolde_core::value::Row;
use isolde_core::{Level, Profile};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

/// The server's own name for a session: a process, thread or connection id.
pub type SessionId = u64;

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Rows { columns: Vec<String>, rows: Vec<Row> },
    Affected(u64),
    Done,
    Error(DbError),
}

/// Where a session stands after a statement, as the server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxStatus {
    Idle,
    Open,
    /// Open, but only a rollback is accepted.
    Failed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub outcome: Outcome,
    /// None where the protocol does not say; the runner then infers it.
    pub tx: Option<TxStatus>,
    /// The engine reports that this COMMIT was a rollback.
    pub commit_rolled_back: bool,
}

impl Reply {
    pub fn new(outcome: Outcome, tx: Option<TxStatus>) -> Reply {
        Reply { outcome, tx, commit_rolled_back: false }
    }

    pub fn error(&self) -> Option<&DbError> {
        match &self.outcome {
            Outcome::Error(error) => Some(error),
            _ => None,
        }
    }

    /// Where the session stands afterwards: the server's word, or what follows
    /// from the reply where the protocol does not say.
    pub fn status_after(&self, kind: Kind, before: TxStatus, ddl: Ddl) -> TxStatus {
        if let Some(status) = self.tx {
            return status;
        }
        match (self.error().map(|e| e.effect), kind) {
            (Some(ErrorEffect::RolledBack | ErrorEffect::Lost), _) => TxStatus::Idle,
            (Some(ErrorEffect::Poisoned), _) if before == TxStatus::Open => TxStatus::Failed,
            (Some(_), _) => before,
            (None, Kind::Begin) => TxStatus::Open,
            (None, Kind::Commit | Kind::Rollback) => TxStatus::Idle,
            (None, Kind::RollbackTo) if before == TxStatus::Failed => TxStatus::Open,
            (None, Kind::Ddl) if ddl == Ddl::CommitsImplicitly => TxStatus::Idle,
            _ => before,
        }
    }
}

pub trait Session: Send {
    fn id(&self) -> SessionId;

    /// Sends one statement. A connection that turns out to be dead answers
    /// through [`Session::reply`], with an error of class lost.
    fn start(&mut self, sql: &str);

    /// The answer to the statement in flight, if it comes within `patience`.
    fn reply(&mut self, patience: Duration) -> Option<Reply>;

    /// What becomes readable when more of an answer has arrived, where there is
    /// such a thing: whoever has many sessions can wait for all at once.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// False when an idle session has been closed from the other side.
    fn is_alive(&self) -> bool {
        true
    }

    /// Called on an idle session before it is used for another case, whose
    /// tables may bear the names of the last one's.
    fn forget_tables(&mut self) {}

    /// A signal of the session itself that it waits for a lock and that the
    /// server has looked for a deadlock: none where there is no such signal.
    fn confirms_wait(&self) -> Option<bool> {
        None
    }
}

/// What the control connection says of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitState {
    /// Idle, or working.
    Free,
    /// Waits for a lock, for these sessions where the view names them.
    Waiting(Vec<SessionId>),
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The target cannot be reached or did not start.
    #[error("{0}")]
    Unreachable(String),
    /// The server went away while it was in use.
    #[error("the server is gone: {0}")]
    Lost(String),
    /// The server is there and does not answer.
    #[error("the server hangs: {0}")]
    Hangs(String),
    /// The target refuses something that Isolde needs.
    #[error("{0}")]
    Refused(String),
}

impl EngineError {
    /// What became of the server, if this is about its end.
    pub fn fall(&self) -> Option<Fall> {
        match self {
            EngineError::Lost(_) => Some(Fall::Died),
            EngineError::Hangs(_) => Some(Fall::Hangs),
            EngineError::Unreachable(_) | EngineError::Refused(_) => None,
        }
    }

    /// The reason alone.
    pub fn why(&self) -> &str {
        match self {
            EngineError::Unreachable(why)
            | EngineError::Lost(why)
            | EngineError::Hangs(why)
            | EngineError::Refused(why) => why,
        }
    }
}

pub type EngineResult<T> = Result<T, EngineError>;

/// Where a client of the user's own can log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<Secret>,
    pub database: String,
    /// Isolde has started the server and made the password up: whoever asked
    /// for the server may see it. Any other password is never shown.
    pub private: bool,
}

pub trait Engine: Send {
    fn info(&self) -> &TargetInfo;
    fn profile(&self) -> &Profile;

    fn open(&mut self) -> EngineResult<Box<dyn Session>>;

    /// What sets the level of a session for all its later transactions.
    fn level_sql(&self, level: Level) -> Vec<String>;

    /// What begins a transaction at a level of its own.
    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String>;

    /// Who of these sessions waits right now; answers in the same order.
    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>>;

    /// How long a circle of waits lasts at most before the engine breaks it,
    /// where that is known. InnoDB names whoever stands ahead in a queue as a
    /// holder, so not every circle that its view shows is a deadlock.
    fn breaks_deadlocks_within(&self) -> Option<Duration> {
        None
    }

    /// Ends the statement that the session is executing.
    fn cancel(&mut self, session: SessionId) -> EngineResult<()>;

    /// False where a cancel takes the whole server with it.
    fn can_cancel(&self) -> bool {
        true
    }

    /// One statement on the control connection, inside Isolde's database.
    fn control(&mut self, sql: &str) -> EngineResult<Outcome>;

    /// Several statements on the control connection, in one round trip where
    /// the protocol has that. The first that fails ends them.
    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        for sql in statements {
            if let Outcome::Error(error) = self.control(sql)? {
                return Ok(Outcome::Error(error));
            }
        }
        Ok(Outcome::Done)
    }

    /// Makes the tables in which statements are evaluated, in the place of
    /// those that were there; [`Engine::clear`] may take them away.
    fn make_version_tables(&mut self, create: &[String]) -> EngineResult<Outcome> {
        self.batch(create)
    }

    /// Whether those tables stand alone, where the tables of cases are not.
    fn evaluates_apart(&self) -> bool {
        false
    }

    /// One statement on those tables.
    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        self.control(sql)
    }

    /// Empties Isolde's database of everything that a case has made.
    fn clear(&mut self) -> EngineResult<()>;

    /// The tables in Isolde's database, sorted by name.
    fn tables(&mut self) -> EngineResult<Vec<String>>;

    /// Brings a server that died or hangs back: a private one is ended and
    /// started anew, empty; of a user's only the connection is made again.
    fn revive(&mut self) -> EngineResult<()>;

    /// How the process of the server ended, if it is ours and does so within
    /// `patience`: connections break a moment before their server has ended.
    fn server_ended(&mut self, _patience: Duration) -> Option<String> {
        None
    }

    /// The server is the user's, who alone can bring it back.
    fn is_users(&self) -> bool {
        false
    }

    /// How to reach Isolde's database with a client; none without a server.
    fn client(&self) -> Option<ClientInfo> {
        None
    }

    /// The file that holds the database, for engines without a server.
    fn database_file(&self) -> Option<&Path> {
        None
    }

    /// Connections that show what PostgreSQL's own test client sees: raw text,
    /// notices and notifications. The control connection comes first, then one
    /// for each name. None for engines that are reached through [`Session`].
    fn spec_links(&mut self, _test: &str, _sessions: &[String]) -> EngineResult<Option<PgLinks>> {
        Ok(None)
    }

    /// The end of the server's log, if Isolde has it.
    fn log_tail(&self) -> Option<String> {
        None
    }

    /// Ends the server at once, as a crash would: for tests of what follows.
    fn kill_server(&mut self) -> EngineResult<()> {
        Err(EngineError::Refused("this target has no server of its own to kill".into()))
    }
}

/// How long a server may take to answer what nobody can block.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How long the control connection may be silent before the server is asked on
/// a new one whether it is there at all.
const SILENCE: Duration = Duration::from_secs(5);

/// How long it may work on a statement that makes or drops something.
pub const WORK_LIMIT: Duration = Duration::from_secs(60);

/// Runs one statement to its end on a session that nobody else can block.
pub fn run_to_end(session: &mut dyn Session, sql: &str, limit: Duration) -> EngineResult<Outcome> {
    session.start(sql);
    finish(session, sql, limit)
}

fn finish(session: &mut dyn Session, sql: &str, limit: Duration) -> EngineResult<Outcome> {
    match session.reply(limit).map(|reply| reply.outcome) {
        Some(Outcome::Error(error)) if error.class == ErrorClass::Lost => {
            Err(EngineError::Lost(error.message))
        }
        Some(outcome) => Ok(outcome),
        None => Err(EngineError::Hangs(format!("no answer within {limit:?} to: {sql}"))),
    }
}

/// The same for the control connection, whose statements may be long: a server
/// that does not answer in time is asked on a new connection whether it is
/// there, and may work on if it is.
pub fn run_while_alive<S: Session>(
    session: &mut S,
    sql: &str,
    connect: impl FnOnce() -> EngineResult<S>,
) -> EngineResult<Outcome> {
    match run_to_end(session, sql, SILENCE) {
        Err(EngineError::Hangs(why)) => {
            let alive = connect().and_then(|mut s| run_to_end(&mut s, "select 1", ANSWER_LIMIT));
            alive.map_err(|e| EngineError::Hangs(format!("{why}; and a new connection: {e}")))?;
            finish(session, sql, WORK_LIMIT)
        }
        ended => ended,
    }
}

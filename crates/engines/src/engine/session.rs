//! One connection to a database: [`Session`], its [`Reply`], and functions
//! that run a statement on it to the end.

use super::error::{EngineError, EngineResult};
use isolde_model::Value;
use isolde_model::history::{DbError, ErrorClass, ErrorEffect};
use isolde_model::profile::Ddl;
use isolde_model::value::Row;
use isolde_sql::Kind;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The server's identifier of a session: a process, thread or connection id.
pub type SessionId = u64;

/// The result of one statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Rows { columns: Vec<String>, rows: Vec<Row> },
    Affected(u64),
    Done,
    Error(DbError),
}

/// The transaction status of a session after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxStatus {
    Idle,
    Open,
    /// Open, but only a rollback is accepted.
    Failed,
}

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub outcome: Outcome,
    /// None where the protocol does not report it; the runner then infers it.
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

    /// The session's transaction status after this reply: reported by the
    /// server, or inferred from the statement and its outcome where the
    /// protocol does not report it.
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

/// One connection for its whole life, with at most one statement in flight.
pub trait Session: Send {
    fn id(&self) -> SessionId;

    /// Sends one statement. If the connection turns out to be dead,
    /// [`Session::reply`] returns an error of class lost.
    fn start(&mut self, sql: &str);

    /// The answer to the statement in flight, if it arrives within `patience`.
    fn reply(&mut self, patience: Duration) -> Option<Reply>;

    /// The file descriptor that becomes readable when more of an answer has
    /// arrived, if the session has one. It lets one thread wait for many
    /// sessions at once.
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// False if the server has closed the connection while it was idle.
    fn is_alive(&self) -> bool {
        true
    }

    /// Discards cached table definitions. Called on an idle session before it
    /// runs another case, whose tables may have the same names.
    fn forget_tables(&mut self) {}

    /// Whether the session itself has signalled that its statement is blocked
    /// and that the server has looked for a deadlock. None if the protocol has
    /// no such signal.
    fn confirms_wait(&self) -> Option<bool> {
        None
    }
}

/// Time limit for the answer to a statement that cannot be blocked.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How long the control connection may be silent before a new connection
/// checks whether the server still answers.
const SILENCE: Duration = Duration::from_secs(5);

/// Time limit for a statement that creates or drops something.
pub const WORK_LIMIT: Duration = Duration::from_secs(60);

/// Runs one statement to its end on a session that no other one can block.
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

/// The one value of a query, as text.
pub fn query_text(session: &mut dyn Session, sql: &str) -> EngineResult<String> {
    let unexpected = |found: &dyn std::fmt::Debug| {
        Err(EngineError::Refused(format!("unexpected result of {sql}: {found:?}")))
    };
    match run_to_end(session, sql, ANSWER_LIMIT)? {
        Outcome::Rows { rows, .. } => match rows.first().and_then(|row| row.first()) {
            Some(Value::Text(text)) => Ok(text.clone()),
            Some(Value::Int(number)) => Ok(number.to_string()),
            other => unexpected(&other),
        },
        other => unexpected(&other),
    }
}

/// Runs one statement on the control connection, whose statements may take
/// long. If the server does not answer in time, a new connection checks that
/// it is alive; if so, the statement gets more time.
pub fn run_while_alive<S: Session>(
    session: &mut S,
    sql: &str,
    connect: impl FnOnce() -> EngineResult<S>,
) -> EngineResult<Outcome> {
    match run_to_end(session, sql, SILENCE) {
        Err(EngineError::Hangs(reason)) => {
            let alive = connect().and_then(|mut s| run_to_end(&mut s, "select 1", ANSWER_LIMIT));
            alive.map_err(|e| EngineError::Hangs(format!("{reason}; a new connection: {e}")))?;
            finish(session, sql, WORK_LIMIT)
        }
        ended => ended,
    }
}

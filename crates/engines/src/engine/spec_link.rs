//! The connections that PostgreSQL's isolation specs run on.
//!
//! The interface follows libpq, because the printed output depends on it: a
//! connection is busy until its *first* result has arrived, results are then
//! taken one by one, and notices appear whenever the connection is polled.

use super::error::EngineResult;
use std::time::Duration;

/// One result of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecAnswer {
    Table {
        columns: Vec<String>,
        rows: Vec<Vec<Option<String>>>,
    },
    Done,
    /// The text held no statement.
    Empty,
    Failed(SpecFailure),
    /// A kind of result that steps are not made for, by libpq's name.
    Unexpected(&'static str),
}

/// An error that a step, setup or teardown ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFailure {
    /// The one line that a step shows, such as `ERROR:  deadlock detected`.
    pub line: String,
    /// The server's whole message, each line terminated, as a failed setup
    /// shows it.
    pub full: String,
    /// The engine did not understand the statement.
    pub rejected: bool,
    /// The statement that failed, where it is known.
    pub statement: Option<String>,
}

/// A message of NOTIFY that a connection has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    pub sender: u64,
    pub channel: String,
    pub payload: String,
}

/// The connections of a run: 0 is the control connection, the sessions of the
/// spec follow in their order. `index` is the number of a connection.
pub trait SpecLinks {
    /// Sends the statements of a step. Err holds why nothing could be sent.
    fn send(&mut self, index: usize, sql: &str) -> Result<(), String>;

    /// Processes what has arrived; true while no result is available.
    fn is_busy(&mut self, index: usize) -> bool;

    /// Waits for data to arrive and reads it; false if none came in time.
    /// Err holds why none ever will.
    fn wait(&mut self, index: usize, patience: Duration) -> Result<bool, String>;

    /// The next result, waiting for it; none when the statement is done.
    fn next_answer(&mut self, index: usize) -> Option<SpecAnswer>;

    /// The notices that arrived since the last call, each line terminated.
    fn take_notices(&mut self, index: usize) -> Vec<String>;

    /// The notifications that arrived since the last call.
    fn take_notifications(&mut self, index: usize) -> Vec<Notification>;

    /// The server's number of a connection, as notifications name it.
    fn id(&self, index: usize) -> u64;

    /// Whether a session is blocked by another session of this run.
    fn is_blocked(&mut self, index: usize) -> EngineResult<bool>;

    fn cancel(&mut self, index: usize) -> EngineResult<()>;

    /// Called when a session can do nothing but wait. Connections that wait by
    /// retrying end the statement here, because nothing else can.
    fn give_up_retrying(&mut self, _index: usize) {}

    /// Called when a session can do nothing but wait and has waited for long.
    /// True when no session of this run can end the wait. PostgreSQL always
    /// returns false, because isolationtester waits on.
    fn waits_in_vain(&mut self, _index: usize) -> EngineResult<bool> {
        Ok(false)
    }

    /// Called while a setup or teardown is blocked and no step is running. The
    /// connections may roll back a transaction that a session has left open
    /// and that holds the lock; true if they did.
    fn roll_back_open_transactions(&mut self, _index: usize) -> EngineResult<bool> {
        Ok(false)
    }
}

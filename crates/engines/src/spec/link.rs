//! What the schedule needs of its connections.
//!
//! The shape is libpq's, because the output depends on it: a connection is
//! busy until its *first* result is there, results are then taken one by one,
//! and notices come up whenever the connection is looked at.

use crate::engine::EngineResult;
use std::time::Duration;

/// One result of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Table {
        columns: Vec<String>,
        rows: Vec<Vec<Option<String>>>,
    },
    Done,
    /// The text held no statement.
    Empty,
    Failed(Failed),
    /// A kind of result that steps are not made for, by libpq's name.
    Unexpected(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The one line that a step shows, such as `ERROR:  deadlock detected`.
    pub line: String,
    /// Everything the server said, each line ended, as a failed setup shows it.
    pub full: String,
    /// The engine did not understand the statement.
    pub rejected: bool,
    /// Which statement it was, where that is known.
    pub statement: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    pub sender: u64,
    pub channel: String,
    pub payload: String,
}

/// The connections of a run: 0 is the control connection, the sessions of the
/// spec follow in their order.
pub trait Links {
    /// Err holds why nothing could be sent.
    fn send(&mut self, who: usize, sql: &str) -> Result<(), String>;

    /// Looks at what has arrived; true while no result is there.
    fn is_busy(&mut self, who: usize) -> bool;

    /// Waits for something to arrive and takes it in; false if nothing came.
    /// Err holds why nothing ever will.
    fn wait(&mut self, who: usize, patience: Duration) -> Result<bool, String>;

    /// The next result, waiting for it; none when the statement is done.
    fn next_answer(&mut self, who: usize) -> Option<Answer>;

    /// The notices that came up since the last call, each line ended.
    fn take_notices(&mut self, who: usize) -> Vec<String>;

    /// The notifications that have arrived since the last call.
    fn take_notifications(&mut self, who: usize) -> Vec<Notification>;

    /// The server's number of a connection, as notifications name it.
    fn id(&self, who: usize) -> u64;

    /// Whether a session waits for another one of this run.
    fn is_blocked(&mut self, who: usize) -> EngineResult<bool>;

    fn cancel(&mut self, who: usize) -> EngineResult<()>;

    /// Called where waiting is all that is left for a session. Connections
    /// that wait by trying again end the statement here, for nobody else can.
    fn give_up_retrying(&mut self, _who: usize) {}

    /// Called where waiting is all that is left for a session and it has taken
    /// long. True when no session of this run can end the wait; on PostgreSQL
    /// never, for the original waits on.
    fn waits_in_vain(&mut self, _who: usize) -> EngineResult<bool> {
        Ok(false)
    }

    /// Called while a setup or teardown waits, when no step is under way.
    /// Connections that know it to wait for a transaction that a session has
    /// left open may end that; true when they did.
    fn end_what_was_left_open(&mut self, _who: usize) -> EngineResult<bool> {
        Ok(false)
    }
}

//! One session during a run: its statement in flight and the state of its
//! transaction.

use crate::engine::Session;
use isolde_model::Level;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxState {
    None,
    /// The index of the transaction in the history.
    Open(usize),
    Failed(usize),
    /// The engine ended it; the rest of its statements must not be sent.
    Aborted,
    /// The connection is lost.
    Gone,
}

pub struct InFlight {
    pub step: Option<usize>,
    pub sql: String,
    pub since: Instant,
    /// The same without lock waits; the time limit counts from here.
    pub works_since: Instant,
    /// Set when the server first reported a lock wait; orders the waits.
    pub waiting: Option<usize>,
    /// When the runner first cancelled it.
    pub cancelled: Option<Instant>,
}

pub struct RunningSession {
    pub name: String,
    pub session: Box<dyn Session>,
    pub level: Level,
    pub tx: TxState,
    pub in_flight: Option<InFlight>,
    /// The session may have state that the next run must not see.
    pub tainted: bool,
    /// The engine has ended a transaction of this session by itself, including
    /// that of a single statement.
    pub aborted: bool,
    /// A transaction with a level of its own has changed the session's level.
    pub level_changed: bool,
}

impl RunningSession {
    pub fn new(name: &str, session: Box<dyn Session>, level: Level) -> RunningSession {
        RunningSession {
            name: name.into(),
            session,
            level,
            tx: TxState::None,
            in_flight: None,
            tainted: false,
            aborted: false,
            level_changed: false,
        }
    }

    pub fn start(&mut self, step: Option<usize>, sql: &str) {
        self.in_flight = Some(InFlight {
            step,
            sql: sql.into(),
            since: Instant::now(),
            works_since: Instant::now(),
            waiting: None,
            cancelled: None,
        });
        self.session.start(sql);
    }

    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none() && matches!(self.tx, TxState::None | TxState::Aborted)
    }

    pub fn wait_order(&self) -> Option<usize> {
        self.in_flight.as_ref().and_then(|f| f.waiting)
    }
}

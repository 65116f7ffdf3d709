//! A case that is typed in statement by statement.
//!
//! Each statement becomes a step of a growing case and goes through the same
//! scan and settling as in a normal run. A statement for a blocked session is
//! therefore kept until the session is free, and the typed statements, saved as
//! a case file, replay to the same history.

use super::run::Run;
use super::session::{RunningSession, TxState};
use super::{Limits, RunError, empty_history, set_level};
use crate::engine::{Engine, EngineError, Outcome};
use isolde_model::case::{Line, Setup, Statement, Step};
use isolde_model::history::{EventKind, SentStep};
use isolde_model::profile::Waiting;
use isolde_model::{Case, History, Level};
use isolde_sql as sql;
use isolde_sql::Kind;
use std::time::Duration;

/// Time limit for closing a session.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

pub struct Interactive {
    engine: Box<dyn Engine>,
    limits: Limits,
    /// How long [`Interactive::submit`] waits for a statement that is
    /// executing.
    pub patience: Option<Duration>,
    /// Polled while a statement executes; true leaves it in the background.
    pub interrupted: fn() -> bool,
    /// The level requested last, for all sessions and for single ones.
    level: Level,
    own_levels: Vec<(String, Level)>,
    /// Something was done that a case file cannot express.
    interfered: bool,
    case: Case,
    sessions: Vec<RunningSession>,
    submitted: Vec<bool>,
    history: History,
    wait_detection: Vec<Duration>,
    typical_reply: Duration,
    wait_counter: usize,
}

/// The state of a session, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    Idle,
    Open,
    /// Accepts only a rollback.
    Failed,
    /// The engine ended its transaction; the session continues at the next
    /// BEGIN.
    Ended,
    Gone,
    Working {
        sql: String,
    },
    Waiting {
        sql: String,
        on: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    pub name: String,
    pub level: Level,
    pub state: SessionState,
    /// Statements that are sent when the session is free again.
    pub queued: usize,
}

impl Interactive {
    pub fn new(mut engine: Box<dyn Engine>) -> Result<Interactive, RunError> {
        engine.clear()?;
        let level = engine.profile().default_level;
        let case = Case { id: "repl".into(), level: Some(level), ..Case::default() };
        let mut history = empty_history(&case, Some(level));
        history.on = engine.info().clone();
        Ok(Interactive {
            engine,
            limits: Limits::default(),
            patience: None,
            interrupted: || false,
            level,
            own_levels: Vec::new(),
            interfered: false,
            case,
            sessions: Vec::new(),
            submitted: Vec::new(),
            history,
            wait_detection: Vec::new(),
            typical_reply: Duration::from_micros(150),
            wait_counter: 0,
        })
    }

    pub fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// Everything that happened since the start or the last reset.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The typed statements as a case that replays to the same history.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// Whether a statement was cancelled by hand, which a case file cannot
    /// express.
    pub fn interfered(&self) -> bool {
        self.interfered
    }

    pub fn tables(&mut self) -> Result<Vec<String>, EngineError> {
        self.engine.tables()
    }

    /// Runs a query on the control connection; it does not become a step.
    pub fn query(&mut self, query: &str) -> Result<Outcome, EngineError> {
        self.engine.control(query)
    }

    /// Runs one statement that prepares the database, before the first step.
    pub fn set_up(&mut self, sql: &str) -> Result<Outcome, RunError> {
        let outcome = self.engine.control(sql)?;
        if !matches!(outcome, Outcome::Error(_)) {
            let statement = Statement { sql: sql.into(), line: Line(0) };
            match self.case.setups.first_mut() {
                Some(setup) => setup.statements.push(statement),
                None => self.case.setups.push(Setup {
                    on: Vec::new(),
                    statements: vec![statement],
                    notes: Vec::new(),
                }),
            }
        }
        Ok(outcome)
    }

    /// Sets the level of transactions that begin from now on, of one session or
    /// of all.
    pub fn set_level(&mut self, session: Option<&str>, level: Level) -> Result<(), RunError> {
        self.check_level(level)?;
        match session {
            Some(name) => {
                self.own_levels.retain(|(n, _)| n != name);
                self.own_levels.push((name.into(), level));
            }
            None => {
                self.level = level;
                self.own_levels.clear();
                if self.level_is_unused() {
                    self.set_case_level(level)?;
                }
            }
        }
        Ok(())
    }

    /// Whether every statement so far ran alone and in autocommit, as
    /// statements that create the tables do.
    fn level_is_unused(&self) -> bool {
        let waited =
            self.history.events.iter().any(|e| matches!(e.what, EventKind::Waiting { .. }));
        let idle = self.sessions.iter().all(|l| l.in_flight.is_none() && l.tx == TxState::None);
        idle && !waited && self.history.transactions.iter().all(|t| t.autocommit)
    }

    /// Changes the level of the whole case, so that a saved case names it once
    /// and replays at any other level.
    fn set_case_level(&mut self, level: Level) -> Result<(), RunError> {
        for running in &mut self.sessions {
            let limit = self.limits.statement;
            set_level(self.engine.as_ref(), running.session.as_mut(), level, limit)?;
            running.level = level;
        }
        self.case.session_levels.clear();
        self.case.level = Some(level);
        self.history.level = Some(level);
        Ok(())
    }

    fn check_level(&self, level: Level) -> Result<(), RunError> {
        let known = self.engine.profile().level_names();
        if known.contains(&level) {
            return Ok(());
        }
        let known: Vec<&str> = known.iter().map(|l| l.name()).collect();
        let engine = self.engine.info().engine.clone();
        Err(RunError::NoSuchLevel { engine, level, known: known.join(", ") })
    }

    /// The level at which a session's next transaction begins.
    pub fn level_of(&self, session: &str) -> Level {
        let own = self.own_levels.iter().find(|(name, _)| name == session);
        own.map_or(self.level, |(_, level)| *level)
    }

    /// Sends a statement, or keeps it until its session is free. Returns when
    /// every session has answered, is blocked, or executes for longer than
    /// `patience`. The new events are at the end of the history.
    pub fn submit(
        &mut self,
        session: &str,
        level: Option<Level>,
        anyway: bool,
        sql: &str,
    ) -> Result<(), RunError> {
        if let Some(level) = level {
            self.check_level(level)?;
        }
        let opened_at = self.open_session(session)?;
        let wanted = level.unwrap_or_else(|| self.level_of(session));
        let begins = sql::kind(sql) == Kind::Begin;
        let level = (begins && wanted != opened_at).then_some(wanted);
        self.case.steps.push(Step { level, anyway, ..Step::plain(session, sql, Line(0)) });
        self.submitted.push(false);
        self.history.steps.push(SentStep::of(&self.case, self.case.steps.len() - 1));
        self.send_ready_steps()
    }

    /// Opens the session unless it is open; returns its level since then.
    fn open_session(&mut self, name: &str) -> Result<Level, RunError> {
        if let Some(running) = self.sessions.iter().find(|l| l.name == name) {
            return Ok(running.level);
        }
        let level = self.level_of(name);
        let mut session = self.engine.open()?;
        set_level(self.engine.as_ref(), session.as_mut(), level, self.limits.statement)?;
        self.sessions.push(RunningSession::new(name, session, level));
        if self.case.level != Some(level) {
            self.case.session_levels.push((name.into(), level));
        }
        Ok(level)
    }

    fn run(&mut self) -> Run<'_> {
        Run {
            engine: self.engine.as_mut(),
            limits: self.limits,
            patience: self.patience,
            interrupted: self.interrupted,
            case: &self.case,
            sessions: &mut self.sessions,
            submitted: &mut self.submitted,
            history: &mut self.history,
            wait_detection: &mut self.wait_detection,
            typical_reply: &mut self.typical_reply,
            wait_counter: &mut self.wait_counter,
        }
    }

    fn send_ready_steps(&mut self) -> Result<(), RunError> {
        let mut run = self.run();
        while run.scan()? {}
        Ok(())
    }

    /// Records what has happened meanwhile, without waiting.
    pub fn poll(&mut self) -> Result<(), RunError> {
        let mut run = self.run();
        run.patience = Some(Duration::ZERO);
        run.poll_replies()?;
        // The scan also skips a session that is executing, so any finished
        // statement may have made a kept statement ready.
        self.send_ready_steps()
    }

    pub fn anything_in_flight(&self) -> bool {
        self.sessions.iter().any(|l| l.in_flight.is_some())
    }

    /// Cancels the statement that a session is executing or blocked in. False
    /// when there is none.
    pub fn cancel(&mut self, session: &str) -> Result<bool, RunError> {
        let found = self.sessions.iter().position(|l| l.name == session && l.in_flight.is_some());
        let Some(index) = found else { return Ok(false) };
        self.interfered = true;
        let retries = self.engine.profile().waiting == Waiting::Retry;
        let mut run = self.run();
        if retries && run.sessions[index].wait_order().is_some() {
            run.fail_busy(index, "cancelled by hand")?;
        } else {
            run.cancel(index)?;
            // The wait is over, but the server's lock view may lag.
            let limit = run.limits.statement;
            run.await_cancelled(index, limit)?;
        }
        self.send_ready_steps()?;
        Ok(true)
    }

    pub fn sessions(&self) -> Vec<SessionView> {
        self.sessions.iter().map(|running| self.view(running)).collect()
    }

    fn view(&self, running: &RunningSession) -> SessionView {
        let state = match (&running.in_flight, running.tx) {
            (Some(f), _) if f.waiting.is_some() => {
                SessionState::Waiting { sql: f.sql.clone(), on: self.lock_holders(f.step) }
            }
            (Some(f), _) => SessionState::Working { sql: f.sql.clone() },
            (None, TxState::None) => SessionState::Idle,
            (None, TxState::Open(_)) => SessionState::Open,
            (None, TxState::Failed(_)) => SessionState::Failed,
            (None, TxState::Aborted) => SessionState::Ended,
            (None, TxState::Gone) => SessionState::Gone,
        };
        let unsent = |(i, step): (usize, &Step)| !self.submitted[i] && step.session == running.name;
        let queued =
            self.case.steps.iter().enumerate().filter(|(i, step)| unsent((*i, step))).count();
        SessionView {
            name: running.name.clone(),
            level: self.level_of(&running.name),
            state,
            queued,
        }
    }

    fn lock_holders(&self, step: Option<usize>) -> Vec<String> {
        let events = self.history.events.iter().rev();
        let found = events.filter(|e| e.step == step).find_map(|e| match &e.what {
            EventKind::Waiting { on } => Some(on.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// The sessions that may block this one, where the engine does not report
    /// lock holders: the others with an open transaction.
    pub fn possible_lock_holders(&self, session: &str) -> Vec<String> {
        let open = |l: &&RunningSession| matches!(l.tx, TxState::Open(_) | TxState::Failed(_));
        self.sessions.iter().filter(open).map(|l| l.name.clone()).filter(|n| n != session).collect()
    }

    /// Whether no session is left that could end a lock wait.
    pub fn all_blocked(&self) -> bool {
        let holds = |l: &RunningSession| {
            l.in_flight.as_ref().is_some_and(|f| f.waiting.is_none())
                || (l.in_flight.is_none() && matches!(l.tx, TxState::Open(_) | TxState::Failed(_)))
        };
        self.anything_in_flight() && !self.sessions.iter().any(holds)
    }

    /// Returns to an empty database without sessions.
    pub fn reset(&mut self) -> Result<(), RunError> {
        let retries = self.engine.profile().waiting == Waiting::Retry;
        for running in &mut self.sessions {
            if let Some(f) = &running.in_flight
                && !(retries && f.waiting.is_some())
                && self.engine.cancel(running.session.id()).is_ok()
            {
                running.session.reply(CLOSE_LIMIT);
            }
        }
        for running in &mut self.sessions {
            if running.tx != TxState::Gone {
                running.session.start("rollback");
                running.session.reply(CLOSE_LIMIT);
            }
        }
        self.sessions.clear();
        if self.engine.control("select 1").is_err() {
            self.engine.revive()?;
        }
        self.engine.clear()?;
        self.submitted.clear();
        self.own_levels.clear();
        self.interfered = false;
        self.wait_counter = 0;
        self.level = self.engine.profile().default_level;
        self.case = Case { id: "repl".into(), level: Some(self.level), ..Case::default() };
        self.history = empty_history(&self.case, Some(self.level));
        self.history.on = self.engine.info().clone();
        Ok(())
    }

    /// Starts over with the setup and the levels of a case. The caller submits
    /// its steps.
    pub fn load(&mut self, case: &Case) -> Result<(), RunError> {
        self.reset()?;
        if let Some(level) = case.level {
            self.set_level(None, level)?;
        }
        for (session, level) in &case.session_levels {
            self.set_level(Some(session), *level)?;
        }
        let info = self.engine.info().clone();
        for statement in case.setup_for(&info.engine, &info.version) {
            if let Outcome::Error(error) = self.set_up(&statement.sql)? {
                let (line, sql) = (statement.line.0, statement.sql.clone());
                return Err(RunError::Setup { line, sql, error });
            }
        }
        self.case.id = case.id.clone();
        self.case.title = case.title.clone();
        self.case.about = case.about.clone();
        self.case.finals = case.finals.clone();
        Ok(())
    }
}

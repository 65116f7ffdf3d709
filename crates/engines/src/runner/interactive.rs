//! A case that somebody is still typing.
//!
//! Each statement becomes a step of a growing case, and goes through the
//! runner's own scan and settling. So a statement for a session that waits is
//! kept until the session is free, and what was typed, saved as a case file,
//! replays to the same history.

use super::live::{Live, TxState};
use super::run::Run;
use super::{Limits, RunError, empty_history, set_level};
use crate::engine::{Engine, EngineError, Outcome};
use isolde_core::case::{Line, Setup, Statement, Step};
use isolde_core::history::{SentStep, What};
use isolde_core::profile::Waiting;
use isolde_core::sql::{self, Kind};
use isolde_core::{Case, History, Level};
use std::time::Duration;

/// How long a session that is closed may take to let go.
const LETTING_GO: Duration = Duration::from_secs(2);

pub struct Interactive {
    engine: Box<dyn Engine>,
    limits: Limits,
    /// How long [`Interactive::submit`] stays with a statement that works.
    pub patience: Option<Duration>,
    /// Asked while a statement works; true gives it back to the background.
    pub interrupted: fn() -> bool,
    /// What was asked for last, for everybody and for single sessions.
    level: Level,
    own_levels: Vec<(String, Level)>,
    /// Something was done that a case file cannot say.
    interfered: bool,
    case: Case,
    lives: Vec<Live>,
    submitted: Vec<bool>,
    history: History,
    wait_detection: Vec<Duration>,
    typical_reply: Duration,
    wait_counter: usize,
}

/// Where a session stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    Idle,
    Open,
    /// Takes only a rollback.
    Failed,
    /// The engine ended its transaction; it goes on at the next begin.
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
    /// Statements that go out when the session is free again.
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
            lives: Vec::new(),
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

    /// All that happened since the start or the last reset.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What was typed, as a case that replays to the same history.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// Whether a statement was cancelled by hand, which no case file can say.
    pub fn interfered(&self) -> bool {
        self.interfered
    }

    pub fn tables(&mut self) -> Result<Vec<String>, EngineError> {
        self.engine.tables()
    }

    /// A query beside the sessions, which is no step.
    pub fn look_at(&mut self, query: &str) -> Result<Outcome, EngineError> {
        self.engine.control(query)
    }

    /// One statement that prepares the database, before the first step.
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

    /// The level of transactions that begin from now on: of one session, or
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
                if self.level_has_not_mattered() {
                    self.set_level_of_the_case(level)?;
                }
            }
        }
        Ok(())
    }

    /// Until now every statement ran alone and committed by itself, as those
    /// do that make the tables.
    fn level_has_not_mattered(&self) -> bool {
        let waited = self.history.events.iter().any(|e| matches!(e.what, What::Waiting { .. }));
        let idle = self.lives.iter().all(|l| l.in_flight.is_none() && l.tx == TxState::None);
        idle && !waited && self.history.transactions.iter().all(|t| t.autocommit)
    }

    /// So the saved case names the level once, and replays at any other.
    fn set_level_of_the_case(&mut self, level: Level) -> Result<(), RunError> {
        for live in &mut self.lives {
            let limit = self.limits.statement;
            set_level(self.engine.as_ref(), live.session.as_mut(), level, limit)?;
            live.level = level;
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
    /// every session has answered, waits, or works for longer than the
    /// patience. What happened is at the end of the history.
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
        self.send_what_can_go()
    }

    /// The level that the session has had since it was opened.
    fn open_session(&mut self, name: &str) -> Result<Level, RunError> {
        if let Some(live) = self.lives.iter().find(|l| l.name == name) {
            return Ok(live.level);
        }
        let level = self.level_of(name);
        let mut session = self.engine.open()?;
        set_level(self.engine.as_ref(), session.as_mut(), level, self.limits.statement)?;
        self.lives.push(Live::new(name, session, level));
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
            lives: &mut self.lives,
            submitted: &mut self.submitted,
            history: &mut self.history,
            wait_detection: &mut self.wait_detection,
            typical_reply: &mut self.typical_reply,
            wait_counter: &mut self.wait_counter,
        }
    }

    fn send_what_can_go(&mut self) -> Result<(), RunError> {
        let mut run = self.run();
        while run.scan()? {}
        Ok(())
    }

    /// Takes in what happened meanwhile, without waiting for it.
    pub fn poll(&mut self) -> Result<(), RunError> {
        let mut run = self.run();
        run.patience = Some(Duration::ZERO);
        run.look()?;
        // A session that works does not pass the scan either, so whatever
        // finished may have set a kept statement free.
        self.send_what_can_go()
    }

    pub fn anything_in_flight(&self) -> bool {
        self.lives.iter().any(|l| l.in_flight.is_some())
    }

    /// Ends the statement that a session works on or waits with. False when
    /// there is none.
    pub fn cancel(&mut self, session: &str) -> Result<bool, RunError> {
        let found = self.lives.iter().position(|l| l.name == session && l.in_flight.is_some());
        let Some(who) = found else { return Ok(false) };
        self.interfered = true;
        let retries = self.engine.profile().waiting == Waiting::Retry;
        let mut run = self.run();
        if retries && run.lives[who].wait_order().is_some() {
            run.fail_busy(who, "cancelled by hand")?;
        } else {
            run.cancel(who)?;
            // Its "waiting" is over, but the server's view may lag behind.
            let limit = run.limits.statement;
            run.await_cancelled(who, limit)?;
        }
        self.send_what_can_go()?;
        Ok(true)
    }

    pub fn sessions(&self) -> Vec<SessionView> {
        self.lives.iter().map(|live| self.view(live)).collect()
    }

    fn view(&self, live: &Live) -> SessionView {
        let state = match (&live.in_flight, live.tx) {
            (Some(f), _) if f.waiting.is_some() => {
                SessionState::Waiting { sql: f.sql.clone(), on: self.waited_for(f.step) }
            }
            (Some(f), _) => SessionState::Working { sql: f.sql.clone() },
            (None, TxState::None) => SessionState::Idle,
            (None, TxState::Open(_)) => SessionState::Open,
            (None, TxState::Failed(_)) => SessionState::Failed,
            (None, TxState::Dead) => SessionState::Ended,
            (None, TxState::Gone) => SessionState::Gone,
        };
        let unsent = |(i, step): (usize, &Step)| !self.submitted[i] && step.session == live.name;
        let queued =
            self.case.steps.iter().enumerate().filter(|(i, step)| unsent((*i, step))).count();
        SessionView { name: live.name.clone(), level: self.level_of(&live.name), state, queued }
    }

    fn waited_for(&self, step: Option<usize>) -> Vec<String> {
        let events = self.history.events.iter().rev();
        let found = events.filter(|e| e.step == step).find_map(|e| match &e.what {
            What::Waiting { on } => Some(on.clone()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// Who may be in the way of a session, where the engine does not say: the
    /// others that have a transaction open.
    pub fn suspects(&self, session: &str) -> Vec<String> {
        let open = |l: &&Live| matches!(l.tx, TxState::Open(_) | TxState::Failed(_));
        self.lives.iter().filter(open).map(|l| l.name.clone()).filter(|n| n != session).collect()
    }

    /// Whether nobody is left who could set a waiting session free.
    pub fn all_wait(&self) -> bool {
        let holds = |l: &Live| {
            l.in_flight.as_ref().is_some_and(|f| f.waiting.is_none())
                || (l.in_flight.is_none() && matches!(l.tx, TxState::Open(_) | TxState::Failed(_)))
        };
        self.anything_in_flight() && !self.lives.iter().any(holds)
    }

    /// Back to an empty database and no sessions.
    pub fn reset(&mut self) -> Result<(), RunError> {
        let retries = self.engine.profile().waiting == Waiting::Retry;
        for live in &mut self.lives {
            if let Some(f) = &live.in_flight
                && !(retries && f.waiting.is_some())
                && self.engine.cancel(live.session.id()).is_ok()
            {
                live.session.reply(LETTING_GO);
            }
        }
        for live in &mut self.lives {
            if live.tx != TxState::Gone {
                live.session.start("rollback");
                live.session.reply(LETTING_GO);
            }
        }
        self.lives.clear();
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

    /// Starts over with the setup and the levels of a case; its steps are for
    /// the caller to submit.
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

//! Runs a case on an engine and writes down what happened.
//!
//! The protocol is Algorithm 1 of WriteCheck (VLDB'25) with the server asked
//! instead of a clock: statements are submitted in schedule order; those of a
//! waiting transaction are passed over; whenever something finishes, what it
//! set free is collected and the schedule is scanned again from its start.
//!
//! ```text
//!   scan ──► send one statement ──► settle: every session has answered,
//!    ▲                              or the server says that it waits
//!    └──────── something resumed ◄──┘
//! ```
//!
//! What it does not do: it judges nothing. Errors of the server are outcomes
//! in the history; only a target that cannot be used at all is an `Err`.

mod asking;
mod death;
mod final_state;
pub mod interactive;
mod live;
mod retrying;
mod run;
mod settle;

use crate::engine::{ANSWER_LIMIT, Engine, EngineError, Outcome, Session};
use isolde_core::history::{DbError, History, SentStep};
use isolde_core::sql::{self, Kind};
use isolde_core::{Case, Level};
use live::Live;
use run::Run;
use std::time::{Duration, Instant};

pub use death::COMES_BACK;
pub(crate) use death::LAST_WORDS;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A statement that works (does not wait) longer than this is cancelled.
    pub statement: Duration,
    /// How long the engine may take to break a deadlock before its members
    /// count as waiting.
    pub deadlock: Duration,
    /// How long a cancelled statement may take to end.
    pub cancel: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            statement: Duration::from_secs(30),
            deadlock: Duration::from_secs(5),
            cancel: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("setup failed at line {line}: {error}\n  {sql}")]
    Setup { line: usize, sql: String, error: DbError },
    #[error("{engine} has no level {level}; it has {known}")]
    NoSuchLevel { engine: String, level: Level, known: String },
    #[error("{engine} refused to set the level {level}: {error}")]
    Level { engine: String, level: Level, error: DbError },
    /// The server fell and could not be brought back.
    #[error("the server did not come back: {0}")]
    NotBack(EngineError),
    #[error("stopped")]
    Interrupted,
}

/// An idle session kept for the next run.
struct Pooled {
    session: Box<dyn Session>,
    level: Option<Level>,
}

pub struct Runner {
    pub engine: Box<dyn Engine>,
    pub limits: Limits,
    /// Asked between statements; true ends the run.
    pub interrupted: fn() -> bool,
    /// A user's server that is gone is not waited for beyond this.
    pub deadline: Option<Instant>,
    /// How long each wait took from sending the statement to knowing it.
    pub wait_detection: Vec<Duration>,
    /// How long statements that do not wait usually take.
    typical_reply: Duration,
    pool: Vec<Pooled>,
    /// Runs the setups; a connection of its own, so that what a setup leaves
    /// behind touches neither the control connection nor the case's sessions.
    preparer: Option<Box<dyn Session>>,
    /// The server is gone and has not been brought back.
    down: bool,
}

impl Runner {
    pub fn new(engine: Box<dyn Engine>) -> Runner {
        Runner {
            engine,
            limits: Limits::default(),
            interrupted: || false,
            deadline: None,
            wait_detection: Vec::new(),
            typical_reply: Duration::from_micros(150),
            pool: Vec::new(),
            preparer: None,
            down: false,
        }
    }

    /// Runs the case from its setup on an empty database.
    pub fn run(&mut self, case: &Case, level: Option<Level>) -> Result<History, RunError> {
        self.check_levels(case, level)?;
        self.clear()?;
        if let Err(error) = self.set_up(case) {
            let death = self.death_by(error)?;
            return Ok(self.not_run(case, level, death));
        }
        self.run_steps(case, level)
    }

    /// Empties the database, whatever the last run left of it.
    pub fn clear(&mut self) -> Result<(), RunError> {
        self.bring_back()?;
        if let Err(error) = self.engine.clear() {
            // It went down between two runs, by nothing that either of them did.
            self.death_by(error.into())?;
            self.bring_back()?;
            self.engine.clear()?;
        }
        Ok(())
    }

    /// Runs the steps on the database as it stands.
    pub fn run_steps(&mut self, case: &Case, level: Option<Level>) -> Result<History, RunError> {
        let mut lives = match self.open_sessions(case, level) {
            Ok(lives) => lives,
            Err(error) => {
                let death = self.death_by(error)?;
                return Ok(self.not_run(case, level, death));
            }
        };
        let mut history = empty_history(case, level);
        history.on = self.engine.info().clone();
        let mut run = Run {
            engine: self.engine.as_mut(),
            limits: self.limits,
            patience: None,
            interrupted: self.interrupted,
            case,
            lives: &mut lives,
            submitted: &mut vec![false; case.steps.len()],
            history: &mut history,
            wait_detection: &mut self.wait_detection,
            typical_reply: &mut self.typical_reply,
            wait_counter: &mut 0,
        };
        let outcome = run.schedule();
        let finals = if outcome.is_ok() { run.read_final_state() } else { Vec::new() };
        self.keep_clean_sessions(lives, outcome.is_ok());
        outcome?;
        history.final_state = finals;
        self.notice_death(&mut history);
        Ok(history)
    }

    /// Whether the engine has every level that a case asks for.
    pub fn check_levels(&self, case: &Case, level: Option<Level>) -> Result<(), RunError> {
        let profile = self.engine.profile();
        let known = profile.level_names();
        let wanted = level
            .into_iter()
            .chain(case.session_levels.iter().map(|(_, l)| *l))
            .chain(case.steps.iter().filter_map(|s| s.level))
            .chain(case.level.filter(|_| level.is_none()));
        for level in wanted {
            if !known.contains(&level) {
                let names: Vec<&str> = known.iter().map(|l| l.name()).collect();
                return Err(RunError::NoSuchLevel {
                    engine: self.engine.info().engine.clone(),
                    level,
                    known: names.join(", "),
                });
            }
        }
        Ok(())
    }

    fn set_up(&mut self, case: &Case) -> Result<(), RunError> {
        let info = self.engine.info().clone();
        let statements = case.setup_for(&info.engine, &info.version);
        if statements.is_empty() {
            return Ok(());
        }
        let mut session = match self.preparer.take().filter(|s| s.is_alive()) {
            Some(session) => session,
            None => self.engine.open()?,
        };
        let mut clean = true;
        for statement in statements {
            let kind = sql::kind(&statement.sql);
            clean &= kind != Kind::Begin && !sql::taints_session(&statement.sql);
            let limit = self.limits.statement;
            let outcome = crate::engine::run_to_end(session.as_mut(), &statement.sql, limit)?;
            if let Outcome::Error(error) = outcome {
                let (line, sql) = (statement.line.0, statement.sql.clone());
                return Err(RunError::Setup { line, sql, error });
            }
        }
        if clean {
            self.preparer = Some(session);
        }
        Ok(())
    }

    fn open_sessions(&mut self, case: &Case, level: Option<Level>) -> Result<Vec<Live>, RunError> {
        let default = self.engine.profile().default_level;
        let mut lives = Vec::new();
        for name in case.sessions() {
            let wanted = case.session_level(name, level).unwrap_or(default);
            let mut pooled = match self.pool.pop().filter(|p| p.session.is_alive()) {
                Some(mut pooled) => {
                    pooled.session.forget_tables();
                    pooled
                }
                None => Pooled { session: self.engine.open()?, level: None },
            };
            if pooled.level != Some(wanted) {
                let limit = self.limits.statement.max(ANSWER_LIMIT);
                set_level(self.engine.as_ref(), pooled.session.as_mut(), wanted, limit)?;
            }
            lives.push(Live::new(name, pooled.session, wanted));
        }
        Ok(lives)
    }

    /// Sessions that hold nothing of the run go back into the pool; dropping
    /// one closes its connection. Where one may have left something, all go:
    /// it may be in the database's own settings and need them to be closed.
    fn keep_clean_sessions(&mut self, lives: Vec<Live>, finished: bool) {
        if !finished || lives.iter().any(|l| l.tainted) {
            self.pool.clear();
            self.preparer = None;
            return;
        }
        // Popped from the end next time: the first session gets its own again.
        // One whose transaction the engine ended is closed: MariaDB leaves its
        // READ ONLY to the transaction that comes next, Dolt the snapshot of a
        // statement that failed.
        for live in lives.into_iter().rev().filter(|l| l.is_idle() && !l.aborted) {
            let level = (!live.level_changed).then_some(live.level);
            self.pool.push(Pooled { session: live.session, level });
        }
    }
}

pub(crate) fn set_level(
    engine: &dyn Engine,
    session: &mut dyn Session,
    level: Level,
    limit: Duration,
) -> Result<(), RunError> {
    for sql in engine.level_sql(level) {
        if let Outcome::Error(error) = crate::engine::run_to_end(session, &sql, limit)? {
            return Err(RunError::Level { engine: engine.info().engine.clone(), level, error });
        }
    }
    Ok(())
}

fn empty_history(case: &Case, level: Option<Level>) -> History {
    let steps = (0..case.steps.len()).map(|i| SentStep::of(case, i)).collect();
    History {
        isolde: env!("CARGO_PKG_VERSION").into(),
        case: case.id.clone(),
        on: Default::default(),
        level: level.or(case.level),
        seed: None,
        steps,
        events: Vec::new(),
        transactions: Vec::new(),
        final_state: Vec::new(),
        death: None,
    }
}

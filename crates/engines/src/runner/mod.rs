//! Runs a case on an engine and records the history.
//!
//! The protocol is Algorithm 1 of WriteCheck (VLDB'25), with the server's lock
//! view instead of a clock: statements are submitted in schedule order, those
//! of a blocked transaction are skipped, and whenever a statement finishes, the
//! statements that it unblocked are collected and the schedule is scanned again
//! from its start.
//!
//! ```text
//!   scan ──► send one statement ──► settle: every session has answered,
//!    ▲                              or the server reports it as blocked
//!    └──────── a statement resumed ◄┘
//! ```
//!
//! The runner judges nothing. Errors of the server are outcomes in the history;
//! only a target that cannot be used at all is an `Err`.

mod final_state;
pub mod interactive;
mod lock_view;
mod replies;
mod retrying;
mod run;
mod server_failure;
mod session;
mod settle;

use crate::engine::{ANSWER_LIMIT, Engine, EngineError, Outcome, Session};
use isolde_model::history::{DbError, EventKind, History, SentStep};
use isolde_model::{Case, Level};
use isolde_sql as sql;
use isolde_sql::Kind;
use run::Run;
use session::RunningSession;
use std::time::{Duration, Instant};

pub(crate) use server_failure::FINAL_REPLY_LIMIT;
pub use server_failure::RECOVERY_LIMIT;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A statement that executes (is not blocked) longer than this is
    /// cancelled.
    pub statement: Duration,
    /// How long the engine may take to break a deadlock before its members
    /// count as blocked.
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
    /// The server failed and could not be restored.
    #[error("the server did not come back: {0}")]
    NotRestored(EngineError),
    #[error("stopped")]
    Interrupted,
}

/// An idle session kept for the next run.
struct PooledSession {
    session: Box<dyn Session>,
    level: Option<Level>,
}

pub struct Runner {
    pub engine: Box<dyn Engine>,
    pub limits: Limits,
    /// Polled between statements; true ends the run.
    pub interrupted: fn() -> bool,
    /// The latest time until which to wait for a user's server that is down.
    pub deadline: Option<Instant>,
    /// For each lock wait, the time from sending the statement to detecting it.
    pub wait_detection: Vec<Duration>,
    /// How long statements that are not blocked usually take.
    typical_reply: Duration,
    pool: Vec<PooledSession>,
    /// Runs the setups on a connection of its own, so that session state of a
    /// setup affects neither the control connection nor the case's sessions.
    setup_session: Option<Box<dyn Session>>,
    /// The roles that the last case has made, which outlive its tables.
    roles: Vec<String>,
    /// The server is down and has not been restored.
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
            setup_session: None,
            roles: Vec::new(),
            down: false,
        }
    }

    /// Runs the case from its setup on an empty database.
    pub fn run(&mut self, case: &Case, level: Option<Level>) -> Result<History, RunError> {
        self.check_levels(case, level)?;
        self.clear()?;
        if let Err(error) = self.set_up(case) {
            let death = self.server_failure(error)?;
            return Ok(self.not_run(case, level, death));
        }
        self.run_steps(case, level)
    }

    /// Empties the database, whatever the last run left in it.
    pub fn clear(&mut self) -> Result<(), RunError> {
        self.restore_server()?;
        if let Err(error) = self.engine.clear() {
            // The server went down between two runs; neither of them is the
            // cause.
            self.server_failure(error.into())?;
            self.restore_server()?;
            self.engine.clear()?;
        }
        for role in std::mem::take(&mut self.roles) {
            // A role that cannot be dropped makes the setup fail that creates it again.
            self.engine.control(&format!("drop role if exists {role}"))?;
        }
        Ok(())
    }

    /// Runs the steps on the database as it is.
    pub fn run_steps(&mut self, case: &Case, level: Option<Level>) -> Result<History, RunError> {
        let mut sessions = match self.open_sessions(case, level) {
            Ok(sessions) => sessions,
            Err(error) => {
                let death = self.server_failure(error)?;
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
            sessions: &mut sessions,
            submitted: &mut vec![false; case.steps.len()],
            history: &mut history,
            wait_detection: &mut self.wait_detection,
            typical_reply: &mut self.typical_reply,
            wait_counter: &mut 0,
        };
        let outcome = run.schedule();
        let finals = if outcome.is_ok() { run.read_final_state() } else { Vec::new() };
        self.keep_clean_sessions(sessions, outcome.is_ok());
        outcome?;
        history.final_state = finals;
        for (n, step) in history.steps.iter().enumerate() {
            let done = matches!(history.outcome(n).reply, Some(EventKind::Done));
            self.roles.extend(role_made_by(&step.sql).filter(|_| done));
        }
        self.record_server_failure(&mut history);
        Ok(history)
    }

    /// Checks that the engine has every level that a case needs.
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
        let mut session = match self.setup_session.take().filter(|s| s.is_alive()) {
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
            self.roles.extend(role_made_by(&statement.sql));
        }
        if clean {
            self.setup_session = Some(session);
        }
        Ok(())
    }

    fn open_sessions(
        &mut self,
        case: &Case,
        level: Option<Level>,
    ) -> Result<Vec<RunningSession>, RunError> {
        let default = self.engine.profile().default_level;
        let mut sessions = Vec::new();
        for name in case.sessions() {
            let wanted = case.session_level(name, level).unwrap_or(default);
            let mut pooled = match self.pool.pop().filter(|p| p.session.is_alive()) {
                Some(mut pooled) => {
                    pooled.session.forget_tables();
                    pooled
                }
                None => PooledSession { session: self.engine.open()?, level: None },
            };
            if pooled.level != Some(wanted) {
                let limit = self.limits.statement.max(ANSWER_LIMIT);
                set_level(self.engine.as_ref(), pooled.session.as_mut(), wanted, limit)?;
            }
            sessions.push(RunningSession::new(name, pooled.session, wanted));
        }
        Ok(sessions)
    }

    /// Returns clean sessions to the pool; dropping a session closes its
    /// connection. If one session may have left something behind, all are
    /// closed: it may be a setting of the database that takes effect only then.
    fn keep_clean_sessions(&mut self, sessions: Vec<RunningSession>, finished: bool) {
        if !finished || sessions.iter().any(|l| l.tainted) {
            self.pool.clear();
            self.setup_session = None;
            return;
        }
        // Sessions are popped from the end, so in this order the first one gets
        // its own connection again. A session whose transaction the engine has
        // ended is closed: MariaDB applies its READ ONLY to the next
        // transaction, Dolt the snapshot of a failed statement.
        for running in sessions.into_iter().rev().filter(|l| l.is_idle() && !l.aborted) {
            let level = (!running.level_changed).then_some(running.level);
            self.pool.push(PooledSession { session: running.session, level });
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

/// The role that a statement creates.
fn role_made_by(sql: &str) -> Option<String> {
    match sql::lexer::pieces(sql).as_slice() {
        [create, role, name, ..]
            if create.eq_ignore_ascii_case("create") && role.eq_ignore_ascii_case("role") =>
        {
            (!name.eq_ignore_ascii_case("if")).then(|| (*name).to_string())
        }
        _ => None,
    }
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

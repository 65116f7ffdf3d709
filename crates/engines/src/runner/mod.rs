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

mod death;
pub(crate) mod live;
mod settle;

use crate::engine::{ANSWER_LIMIT, Engine, EngineError, Outcome, Session};
use isolde_core::history::{DbError, Event, FinalRows, History, SentStep, TxEnd, What};
use isolde_core::profile::Waiting;
use isolde_core::sql::{self, Kind};
use isolde_core::value::compare_rows;
use isolde_core::{Case, Level};
use live::{Live, TxState};
use std::time::{Duration, Instant};

pub use death::COMES_BACK;

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
        // READ ONLY to the transaction that comes next.
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

pub(crate) fn empty_history(case: &Case, level: Option<Level>) -> History {
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

/// One run under way. It owns nothing, so that a case that somebody is still
/// typing ([`crate::interactive`]) goes the same way as one from a file.
pub(crate) struct Run<'a> {
    pub engine: &'a mut dyn Engine,
    pub limits: Limits,
    /// How long to stay with a statement that works; none: to its end.
    pub patience: Option<Duration>,
    pub interrupted: fn() -> bool,
    pub case: &'a Case,
    pub lives: &'a mut Vec<Live>,
    pub submitted: &'a mut Vec<bool>,
    pub history: &'a mut History,
    pub wait_detection: &'a mut Vec<Duration>,
    pub typical_reply: &'a mut Duration,
    /// Orders the sessions by when they began to wait.
    pub wait_counter: &'a mut usize,
}

impl Run<'_> {
    fn schedule(&mut self) -> Result<(), RunError> {
        loop {
            if self.scan()? {
                continue;
            }
            // Nothing more can be sent: let go of what still holds locks, so
            // that the statements that wait come to their end.
            if self.lives.iter().all(|l| l.in_flight.is_none()) && self.all_submitted() {
                break;
            }
            if !self.release_something()? {
                self.give_up_waiting()?;
            }
        }
        self.roll_back_open_transactions()
    }

    fn all_submitted(&self) -> bool {
        self.submitted.iter().all(|s| *s)
    }

    /// One pass over the schedule. True when something resumed, so that the
    /// next pass has to start from the beginning.
    pub fn scan(&mut self) -> Result<bool, RunError> {
        for step in 0..self.case.steps.len() {
            if self.submitted[step] {
                continue;
            }
            if (self.interrupted)() {
                return Err(RunError::Interrupted);
            }
            let who = self.session_of(step);
            if self.lives[who].in_flight.is_some() {
                continue;
            }
            self.submitted[step] = true;
            if let Some(why) = self.reason_not_to_send(who, step) {
                self.event(who, Some(step), What::NotSent { why });
                continue;
            }
            let resumed = self.send(who, step)?;
            if resumed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn session_of(&self, step: usize) -> usize {
        let name = &self.case.steps[step].session;
        self.lives.iter().position(|l| l.name == *name).expect("every session was opened")
    }

    /// Why a statement must not go out: its transaction has ended or failed.
    /// One that is sent anyway leaves the session where it stands, so that
    /// what follows it is not sent unless it says so, too.
    fn reason_not_to_send(&mut self, who: usize, step: usize) -> Option<String> {
        if let Some(death) = &self.history.death {
            return Some(death.how.name().into());
        }
        let kind = self.case.steps[step].kind();
        let anyway = self.case.steps[step].anyway;
        let live = &mut self.lives[who];
        match live.tx {
            TxState::Gone => Some("its session is gone".into()),
            TxState::Dead if anyway && kind.ends_transaction() => {
                live.tx = TxState::None;
                None
            }
            TxState::Dead if anyway && kind != Kind::Begin => None,
            TxState::Dead if kind == Kind::Begin => {
                live.tx = TxState::None;
                None
            }
            TxState::Dead => {
                if kind.ends_transaction() {
                    live.tx = TxState::None;
                }
                Some("the engine has ended its transaction".into())
            }
            TxState::Failed(_) => match kind {
                Kind::Commit | Kind::Rollback | Kind::RollbackTo => None,
                _ if anyway => None,
                _ => Some("its transaction has failed and takes only a rollback".into()),
            },
            TxState::None | TxState::Open(_) => None,
        }
    }

    fn send(&mut self, who: usize, step: usize) -> Result<bool, RunError> {
        let script = &self.case.steps[step];
        let mut sql = script.sql.clone();
        if script.kind() == Kind::Begin {
            let begin = self.begin_text(&sql);
            let mut statements = match script.level {
                Some(level) => self.engine.begin_at_sql(&begin, level),
                // An earlier transaction had a level of its own.
                None if self.lives[who].level_changed => {
                    let mut all = self.engine.level_sql(self.lives[who].level);
                    all.push(begin);
                    all
                }
                None => vec![begin],
            };
            sql = statements.pop().unwrap_or(sql);
            if script.level.is_none() || !statements.is_empty() {
                self.lives[who].level_changed = script.level.is_some();
            }
            for prelude in statements {
                if let Some(reply) = self.run_quietly(who, &prelude)
                    && let Outcome::Error(error) = reply.outcome
                {
                    self.event(who, Some(step), What::Error(error));
                    self.lives[who].tx = TxState::Dead;
                    return Ok(false);
                }
            }
        }
        self.lives[who].tainted |= sql::taints_session(&sql);
        let as_sql = (sql != script.sql).then(|| sql.clone());
        self.event(who, Some(step), What::Sent { as_sql });
        self.lives[who].start(Some(step), &sql);
        self.settle(Some(who))
    }

    /// A bare BEGIN takes the engine's own form; one with options is the
    /// author's choice and stays.
    fn begin_text(&self, sql: &str) -> String {
        let bare = matches!(
            sql.trim().to_ascii_lowercase().as_str(),
            "begin" | "begin transaction" | "start transaction"
        );
        let own = &self.engine.profile().begin;
        if bare && own != "begin" { own.clone() } else { sql.to_string() }
    }

    /// Rolls back the first open transaction whose session is idle. At the
    /// end of the schedule only; false when there is none.
    fn release_something(&mut self) -> Result<bool, RunError> {
        let idle_holder = self.lives.iter().position(|l| {
            l.in_flight.is_none() && matches!(l.tx, TxState::Open(_) | TxState::Failed(_))
        });
        match idle_holder {
            Some(who) => {
                self.roll_back(who, "the case left it open while others waited")?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Every live session waits for another and no deadlock was reported: the
    /// last one to wait is the victim.
    fn give_up_waiting(&mut self) -> Result<(), RunError> {
        let victim = (0..self.lives.len())
            .filter(|i| self.lives[*i].in_flight.is_some())
            .max_by_key(|i| self.lives[*i].wait_order());
        let Some(victim) = victim else { return Ok(()) };
        match self.engine.profile().waiting {
            Waiting::Retry => self
                .fail_busy(victim, "every session waits for another; this one began to wait last"),
            _ => {
                if (self.interrupted)() {
                    return Err(RunError::Interrupted);
                }
                self.cancel(victim)?;
                self.settle(None).map(|_| ())
            }
        }
    }

    fn roll_back_open_transactions(&mut self) -> Result<(), RunError> {
        while self.release_at_end()? {}
        Ok(())
    }

    fn release_at_end(&mut self) -> Result<bool, RunError> {
        let open =
            self.lives.iter().position(|l| matches!(l.tx, TxState::Open(_) | TxState::Failed(_)));
        let Some(who) = open else { return Ok(false) };
        self.roll_back(who, "the case left it open")?;
        Ok(true)
    }

    /// The final rows: the case's own queries, or every table in full.
    fn read_final_state(&mut self) -> Vec<FinalRows> {
        if self.history.death.is_some() {
            return Vec::new();
        }
        let queries: Vec<String> = if self.case.finals.is_empty() {
            match self.engine.tables() {
                Ok(tables) => tables.iter().map(|t| format!("select * from {t}")).collect(),
                Err(error) => {
                    let error = Some(self.not_read(error));
                    let query = "(which tables there are)".to_string();
                    return vec![FinalRows { query, columns: Vec::new(), rows: Vec::new(), error }];
                }
            }
        } else {
            self.case.finals.iter().map(|s| s.sql.clone()).collect()
        };
        queries.into_iter().map(|query| self.read_final(query)).collect()
    }

    fn read_final(&mut self, query: String) -> FinalRows {
        let mut result =
            FinalRows { query: query.clone(), columns: Vec::new(), rows: Vec::new(), error: None };
        match self.engine.control(&query) {
            Ok(Outcome::Rows { columns, mut rows }) => {
                rows.sort_by(|a, b| compare_rows(a, b));
                result.columns = columns;
                result.rows = rows;
            }
            Ok(Outcome::Error(error)) => result.error = Some(error),
            Ok(Outcome::Affected(_) | Outcome::Done) => {}
            Err(error) => result.error = Some(self.not_read(error)),
        }
        result
    }

    fn not_read(&mut self, error: EngineError) -> DbError {
        let text = error.to_string();
        // Whatever else kept them from being read is in the text.
        let _ = self.fall(error);
        DbError::lost(text)
    }

    fn event(&mut self, who: usize, step: Option<usize>, what: What) {
        let session = self.lives[who].name.clone();
        self.history.events.push(Event { session, step, what });
    }

    fn end_transaction(&mut self, who: usize, step: Option<usize>, transaction: usize, how: TxEnd) {
        self.history.transactions[transaction].how = how;
        self.event(who, step, What::Ended { transaction, how });
    }
}

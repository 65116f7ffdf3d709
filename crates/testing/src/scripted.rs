//! A scripted engine. SQLite executes the statements, except at the calls at
//! which the script replaces the response, lets a statement never end, or lets
//! the server crash or hang.
//!
//! Lock waits work as on an engine without a lock view (`Waiting::Retry`) or as on
//! a server with one (`Waiting::Probe`). A revived server is empty.

use isolde_engines::engine::*;
use isolde_engines::sqlite::{Mode, Sqlite};
use isolde_model::history::{DbError, ErrorClass, ErrorEffect, TargetInfo};
use isolde_model::profile::Waiting;
use isolde_model::{Level, Profile};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A call of the engine or of one of its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Open,
    Start(String),
    Reply,
    Waiting,
    Cancel,
    Control(String),
    Clear,
    Tables,
    Revive,
}

/// What happens at a call instead of its execution.
#[derive(Clone, Debug)]
pub enum Act {
    /// Nothing is executed, and this is the response.
    Answer(Outcome),
    /// The statement never ends, even when it is cancelled.
    NeverEnd,
    /// The server crashes.
    Die,
    /// The server hangs: it responds to no call any more.
    StandStill,
    /// The server crashes, and its process does not reveal the end.
    DieUnseen,
}

/// Decides what happens at each call, given its number from 1 on.
pub type Script = Box<dyn FnMut(u64, &Call) -> Option<Act> + Send>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Alive,
    Dead { seen: bool },
    StandsStill,
}

struct World {
    script: Script,
    calls: u64,
    revived: u32,
    state: State,
    /// Sessions with a blocked statement.
    waiting: BTreeSet<SessionId>,
    cancelled: BTreeSet<SessionId>,
    /// The number of the server: sessions of an earlier one are lost.
    generation: u32,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<World>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies the script to a call. An error once the server has failed.
    fn call(&self, call: &Call) -> EngineResult<Option<Act>> {
        let mut world = self.lock();
        world.calls += 1;
        let number = world.calls;
        let act = (world.script)(number, call);
        match act {
            Some(Act::Die) => world.state = State::Dead { seen: true },
            Some(Act::DieUnseen) => world.state = State::Dead { seen: false },
            Some(Act::StandStill) => world.state = State::StandsStill,
            _ => {}
        }
        match world.state {
            State::Alive => Ok(act),
            State::Dead { .. } => Err(EngineError::Lost("the script ended it".into())),
            State::StandsStill => Err(EngineError::Hangs("the script stopped it".into())),
        }
    }
}

pub struct Scripted {
    shared: Shared,
    inner: Sqlite,
    info: TargetInfo,
    profile: Profile,
}

/// Counts the calls of an engine that the test has given away.
#[derive(Clone)]
pub struct Counter(Shared);

impl Counter {
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    pub fn revived(&self) -> u32 {
        self.0.lock().revived
    }
}

impl Scripted {
    pub fn new(waiting: Waiting, script: Script) -> EngineResult<Scripted> {
        let inner = Sqlite::private(Mode::RollbackJournal, "scripted")?;
        let mut profile = inner.profile().clone();
        profile.waiting = waiting;
        let info = inner.info().clone();
        let shared = Shared(Arc::new(Mutex::new(World {
            script,
            calls: 0,
            revived: 0,
            state: State::Alive,
            waiting: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            generation: 0,
        })));
        Ok(Scripted { shared, inner, info, profile })
    }

    pub fn counter(&self) -> Counter {
        Counter(self.shared.clone())
    }
}

impl Engine for Scripted {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        match self.shared.call(&Call::Open) {
            // The port of a crashed server refuses connections.
            Err(EngineError::Lost(why)) => return Err(EngineError::Unreachable(why)),
            other => other?,
        };
        let session = ScriptedSession {
            inner: self.inner.open()?,
            generation: self.shared.lock().generation,
            shared: self.shared.clone(),
            probes: self.profile.waiting == Waiting::Probe,
            in_flight: None,
        };
        Ok(Box::new(session))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        self.inner.level_sql(level)
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        self.inner.begin_at_sql(begin, level)
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        self.shared.call(&Call::Waiting)?;
        let world = self.shared.lock();
        let state = |session: &SessionId| match world.waiting.contains(session) {
            true => WaitState::Waiting(Vec::new()),
            false => WaitState::Free,
        };
        Ok(sessions.iter().map(state).collect())
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        self.shared.call(&Call::Cancel)?;
        self.shared.lock().cancelled.insert(session);
        Ok(())
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        match self.shared.call(&Call::Control(sql.into()))? {
            Some(Act::Answer(outcome)) => Ok(outcome),
            Some(Act::NeverEnd) => Err(EngineError::Hangs(format!("no answer to: {sql}"))),
            _ => self.inner.control(sql),
        }
    }

    fn batch(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        match self.shared.call(&Call::Control(statements.join("; ")))? {
            Some(Act::Answer(outcome)) => Ok(outcome),
            _ => self.inner.batch(statements),
        }
    }

    fn clear(&mut self) -> EngineResult<()> {
        self.shared.call(&Call::Clear)?;
        self.inner.clear()
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        self.shared.call(&Call::Tables)?;
        self.inner.tables()
    }

    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        Some(self)
    }

    fn version_tables(&mut self) -> Option<&mut dyn VersionTables> {
        Some(self)
    }
}

impl VersionTables for Scripted {
    fn create(&mut self, statements: &[String]) -> EngineResult<Outcome> {
        match self.shared.call(&Call::Control(statements.join("; ")))? {
            Some(Act::Answer(outcome)) => Ok(outcome),
            _ => self.inner.create(statements),
        }
    }

    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        match self.shared.call(&Call::Control(sql.into()))? {
            Some(Act::Answer(outcome)) => Ok(outcome),
            _ => self.inner.evaluate(sql),
        }
    }
}

impl ServerControl for Scripted {
    fn revive(&mut self) -> EngineResult<()> {
        self.shared.lock().state = State::Alive;
        if let Err(error) = self.shared.call(&Call::Revive) {
            return Err(EngineError::Unreachable(error.reason().into()));
        }
        self.inner = Sqlite::private(Mode::RollbackJournal, "scripted")?;
        let mut world = self.shared.lock();
        world.generation += 1;
        world.revived += 1;
        world.waiting.clear();
        world.cancelled.clear();
        Ok(())
    }

    fn exit_status(&mut self, _: Duration) -> Option<String> {
        let ended = self.shared.lock().state == State::Dead { seen: true };
        ended.then(|| "its process ended (by the script)".into())
    }

    fn log_tail(&self) -> Option<String> {
        Some("the log of the script".into())
    }
}

struct ScriptedSession {
    shared: Shared,
    inner: Box<dyn Session>,
    generation: u32,
    /// Whether the statement waits here while the database is busy, and not in
    /// the runner.
    probes: bool,
    in_flight: Option<InFlight>,
}

struct InFlight {
    sql: String,
    answer: Option<Reply>,
    never_ends: bool,
}

impl ScriptedSession {
    /// How the server failed, as this connection observes it.
    fn fate(&self) -> Option<State> {
        let world = self.shared.lock();
        match world.state {
            State::Alive if world.generation == self.generation => None,
            State::Alive => Some(State::Dead { seen: true }),
            state => Some(state),
        }
    }

    /// Runs the statement, or finds that it is blocked.
    fn work(&mut self) {
        let Some(in_flight) = &mut self.in_flight else { return };
        if in_flight.answer.is_some() || in_flight.never_ends {
            return;
        }
        self.inner.start(&in_flight.sql);
        let reply = self.inner.reply(Duration::ZERO);
        let busy = reply
            .as_ref()
            .is_some_and(|r| r.error().is_some_and(|error| error.class == ErrorClass::Busy));
        let id = self.inner.id();
        let mut world = self.shared.lock();
        if self.probes && busy {
            world.waiting.insert(id);
            if world.cancelled.remove(&id) {
                world.waiting.remove(&id);
                in_flight.answer =
                    reply.map(|r| Reply { outcome: Outcome::Error(cancelled()), ..r });
            }
        } else {
            world.waiting.remove(&id);
            in_flight.answer = reply;
        }
    }
}

impl Session for ScriptedSession {
    fn id(&self) -> SessionId {
        self.inner.id()
    }

    fn start(&mut self, sql: &str) {
        let act = self.shared.call(&Call::Start(sql.into()));
        let mut in_flight = InFlight { sql: sql.into(), answer: None, never_ends: act.is_err() };
        match act {
            Ok(Some(Act::Answer(outcome))) => in_flight.answer = Some(Reply::new(outcome, None)),
            Ok(Some(Act::NeverEnd)) => in_flight.never_ends = true,
            _ => {}
        }
        self.in_flight = Some(in_flight);
        self.work();
    }

    fn reply(&mut self, _: Duration) -> Option<Reply> {
        self.in_flight.as_ref()?;
        // An act at this call happens after the execution of the statement.
        let _ = self.shared.call(&Call::Reply);
        match self.fate() {
            Some(State::StandsStill) => return None,
            Some(_) => {
                self.in_flight = None;
                let error = DbError::lost("the connection was closed");
                return Some(Reply::new(Outcome::Error(error), Some(TxStatus::Idle)));
            }
            None => self.work(),
        }
        let answer = self.in_flight.as_mut()?.answer.take()?;
        self.in_flight = None;
        Some(answer)
    }

    fn is_alive(&self) -> bool {
        self.fate().is_none_or(|fate| fate == State::StandsStill)
    }

    fn forget_tables(&mut self) {
        self.inner.forget_tables();
    }
}

fn cancelled() -> DbError {
    DbError {
        code: "CANCELLED".into(),
        sqlstate: None,
        message: "the statement was cancelled".into(),
        class: ErrorClass::Cancelled,
        effect: ErrorEffect::Statement,
    }
}

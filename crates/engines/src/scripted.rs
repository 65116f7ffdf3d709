//! A fake engine for tests of everything that runs on engines. SQLite answers,
//! until the script wants something else: another answer, a statement that
//! never ends, a server that dies or stands still at the call that it names.
//!
//! It can wait like an engine without a lock view (`Waiting::Retry`) or like a
//! server that has one (`Waiting::Probe`). What is revived is empty.

use crate::engine::*;
use crate::sqlite::{Mode, Sqlite};
use isolde_core::history::{DbError, ErrorClass, ErrorEffect, TargetInfo};
use isolde_core::profile::Waiting;
use isolde_core::{Level, Profile};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is asked of the engine.
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

/// What happens instead.
#[derive(Clone, Debug)]
pub enum Act {
    /// Nothing is executed, and this is the answer.
    Answer(Outcome),
    /// The statement has no answer, also when it is cancelled.
    NeverEnd,
    Die,
    /// The server is there and answers nobody any more.
    StandStill,
    /// The server's end cannot be had from its process.
    DieUnseen,
}

/// Asked at every call, with its number from 1 on.
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
    /// Sessions whose statement waits for another.
    waiting: BTreeSet<SessionId>,
    cancelled: BTreeSet<SessionId>,
    /// Which server it is: sessions of an earlier one are lost.
    generation: u32,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<World>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the script makes of a call; an error once there is no server.
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

/// What a test wants to know of the engine that it has given away.
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
            // A port that nobody listens on.
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

    fn make_version_tables(&mut self, create: &[String]) -> EngineResult<Outcome> {
        match self.shared.call(&Call::Control(create.join("; ")))? {
            Some(Act::Answer(outcome)) => Ok(outcome),
            _ => self.inner.make_version_tables(create),
        }
    }

    fn evaluates_apart(&self) -> bool {
        self.inner.evaluates_apart()
    }

    fn evaluate(&mut self, sql: &str) -> EngineResult<Outcome> {
        match self.shared.call(&Call::Control(sql.into()))? {
            Some(Act::Answer(outcome)) => Ok(outcome),
            _ => self.inner.evaluate(sql),
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

    fn revive(&mut self) -> EngineResult<()> {
        self.shared.lock().state = State::Alive;
        if let Err(error) = self.shared.call(&Call::Revive) {
            return Err(EngineError::Unreachable(error.why().into()));
        }
        self.inner = Sqlite::private(Mode::RollbackJournal, "scripted")?;
        let mut world = self.shared.lock();
        world.generation += 1;
        world.revived += 1;
        world.waiting.clear();
        world.cancelled.clear();
        Ok(())
    }

    fn server_ended(&mut self, _: Duration) -> Option<String> {
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
    /// A busy database makes the statement wait here, not in the runner.
    probes: bool,
    in_flight: Option<InFlight>,
}

struct InFlight {
    sql: String,
    answer: Option<Reply>,
    never_ends: bool,
}

impl ScriptedSession {
    /// The end of the server as this connection sees it.
    fn fate(&self) -> Option<State> {
        let world = self.shared.lock();
        match world.state {
            State::Alive if world.generation == self.generation => None,
            State::Alive => Some(State::Dead { seen: true }),
            state => Some(state),
        }
    }

    /// Runs the statement, or finds that it has to wait.
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
        // What the script does here happens after the statement was executed.
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
        message: "it was told to end".into(),
        class: ErrorClass::Cancelled,
        effect: ErrorEffect::Statement,
    }
}

//! A driver as an engine: its sessions are lines to and from one process.

use super::command::DriverCommand;
use super::message::{Hello, Message, wait_states};
use super::process::DriverProcess;
use crate::engine::{
    Engine, EngineError, EngineResult, Outcome, Reply, ServerControl, Session, SessionId, TxStatus,
    WaitState,
};
use isolde_model::history::{DbError, ErrorClass, ErrorEffect, TargetInfo};
use isolde_model::profile::Waiting;
use isolde_model::{Level, Profile};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub const HELLO_LIMIT: Duration = Duration::from_secs(20);
/// Time limit for requests that no other session can block.
const LIMIT: Duration = Duration::from_secs(30);

pub struct DriverEngine {
    command: DriverCommand,
    info: TargetInfo,
    hello: Arc<Hello>,
    process: Arc<DriverProcess>,
    /// Opened when first needed.
    control: Option<DriverSession>,
    next_session: SessionId,
}

impl DriverEngine {
    pub fn start(command: &DriverCommand, target_name: &str) -> EngineResult<DriverEngine> {
        let (process, hello) = start_driver(command, HELLO_LIMIT)?;
        let info = TargetInfo {
            target: target_name.into(),
            engine: hello.name.clone(),
            version: hello.version.clone(),
            settings: hello.settings.clone(),
            follows: hello.follows.clone(),
        };
        Ok(DriverEngine {
            command: command.clone(),
            info,
            hello: Arc::new(hello),
            process: Arc::new(process),
            control: None,
            next_session: 1,
        })
    }

    fn open_session(&mut self) -> EngineResult<DriverSession> {
        let session = self.next_session;
        let request = json!({"request": "open", "session": session});
        match self.process.ask(request, LIMIT)? {
            Message::Ok { .. } => {}
            other => return Err(self.refusal("open", other)),
        }
        self.next_session += 1;
        Ok(DriverSession {
            id: session,
            process: Arc::clone(&self.process),
            hello: Arc::clone(&self.hello),
            in_flight: None,
            tx: Some(TxStatus::Idle),
        })
    }

    /// An error in answer to a request comes from the database; any other
    /// unexpected kind of answer is an error of the driver.
    fn refusal(&self, request: &str, message: Message) -> EngineError {
        match message {
            Message::Error { error, .. } => EngineError::Refused(format!(
                "the driver cannot `{request}`: {}: {}",
                error.code, error.message
            )),
            other => EngineError::Lost(
                self.process
                    .violation(&format!("it answered `{request}` with {}", other.describe())),
            ),
        }
    }

    /// Waits until dropped sessions are closed: their transactions would still
    /// hold locks.
    fn settled(&self) -> EngineResult<()> {
        match self.process.settle(LIMIT) {
            true => Ok(()),
            false => {
                let why = self.process.violation("it did not answer `close`");
                Err(EngineError::Lost(why))
            }
        }
    }
}

/// Starts a driver and reads its hello.
pub fn start_driver(
    command: &DriverCommand,
    limit: Duration,
) -> EngineResult<(DriverProcess, Hello)> {
    let unreachable = |why: String| EngineError::Unreachable(format!("`{command}`: {why}"));
    let process = DriverProcess::spawn(command)?;
    let request = json!({"request": "hello", "protocol": super::message::PROTOCOL});
    let hello = match process.ask(request, limit) {
        Ok(Message::Hello(hello)) => *hello,
        Ok(Message::Error { error, .. }) => return Err(unreachable(error.message)),
        Ok(other) => {
            let why = format!("it answered `hello` with {}", other.describe());
            return Err(unreachable(process.violation(&why)));
        }
        Err(EngineError::Lost(why)) => return Err(unreachable(why)),
        Err(other) => return Err(other),
    };
    match hello.invalidity() {
        Some(invalidity) => {
            Err(unreachable(process.violation(&format!("in its hello, {invalidity}"))))
        }
        None => Ok((process, hello)),
    }
}

impl Engine for DriverEngine {
    fn info(&self) -> &TargetInfo {
        &self.info
    }

    fn profile(&self) -> &Profile {
        &self.hello.profile
    }

    fn open(&mut self) -> EngineResult<Box<dyn Session>> {
        Ok(Box::new(self.open_session()?))
    }

    fn level_sql(&self, level: Level) -> Vec<String> {
        self.hello.level_sql.get(&level).cloned().unwrap_or_default()
    }

    fn begin_at_sql(&self, begin: &str, level: Level) -> Vec<String> {
        match self.hello.begin_at_sql.get(&level) {
            Some(sql) => sql.iter().map(|s| s.replace("{begin}", begin)).collect(),
            None => {
                let mut sql = self.level_sql(level);
                sql.push(begin.into());
                sql
            }
        }
    }

    fn waiting(&mut self, sessions: &[SessionId]) -> EngineResult<Vec<WaitState>> {
        let asks = self.hello.profile.waiting == Waiting::Probe && self.hello.can("waiting");
        if !asks {
            return Ok(vec![WaitState::Free; sessions.len()]);
        }
        let request = json!({"request": "waiting", "sessions": sessions});
        match self.process.ask(request, LIMIT)? {
            Message::Waiting(waiters) => Ok(wait_states(&waiters, sessions)),
            other => Err(self.refusal("waiting", other)),
        }
    }

    fn cancel(&mut self, session: SessionId) -> EngineResult<()> {
        if !self.hello.can("cancel") {
            // Nothing else can end the statement, and an executing driver
            // cannot be distinguished from one that hangs.
            self.process.kill();
            let why = "the driver did not answer `execute` and cannot `cancel`; it was killed";
            return Err(EngineError::Hangs(why.into()));
        }
        match self.process.ask(json!({"request": "cancel", "session": session}), LIMIT)? {
            Message::Ok { .. } => Ok(()),
            other => Err(self.refusal("cancel", other)),
        }
    }

    fn can_cancel(&self) -> bool {
        self.hello.can("cancel")
    }

    fn control(&mut self, sql: &str) -> EngineResult<Outcome> {
        self.settled()?;
        let mut session = match self.control.take() {
            Some(session) if session.process.end(Duration::ZERO).is_none() => session,
            _ => self.open_session()?,
        };
        session.start(sql);
        let Some(reply) = session.reply(LIMIT) else {
            let why = format!("no answer within {LIMIT:?} to: {sql}");
            self.process.kill();
            return Err(EngineError::Hangs(why));
        };
        self.control = Some(session);
        match reply.outcome {
            Outcome::Error(e) if e.class == ErrorClass::Lost => Err(EngineError::Lost(e.message)),
            outcome => Ok(outcome),
        }
    }

    fn clear(&mut self) -> EngineResult<()> {
        self.settled()?;
        match self.process.ask(json!({"request": "clear"}), LIMIT)? {
            Message::Ok { .. } => Ok(()),
            other => Err(self.refusal("clear", other)),
        }
    }

    fn tables(&mut self) -> EngineResult<Vec<String>> {
        self.settled()?;
        match self.process.ask(json!({"request": "tables"}), LIMIT)? {
            Message::Tables(mut tables) => {
                tables.sort();
                Ok(tables)
            }
            other => Err(self.refusal("tables", other)),
        }
    }

    fn server_control(&mut self) -> Option<&mut dyn ServerControl> {
        Some(self)
    }
}

impl ServerControl for DriverEngine {
    fn revive(&mut self) -> EngineResult<()> {
        self.control = None;
        self.process.kill();
        let (process, hello) = start_driver(&self.command, HELLO_LIMIT)?;
        self.process = Arc::new(process);
        self.hello = Arc::new(hello);
        Ok(())
    }

    fn exit_status(&mut self, patience: Duration) -> Option<String> {
        self.process.end(patience)
    }

    fn log_tail(&self) -> Option<String> {
        self.process.stderr_tail()
    }

    fn kill(&mut self) -> EngineResult<()> {
        self.process.kill();
        Ok(())
    }
}

impl Drop for DriverEngine {
    fn drop(&mut self) {
        self.control = None;
        if self.process.end(Duration::ZERO).is_none() {
            // Gives it a chance to remove its files; a driver that ignores this
            // is killed when the last session drops the process.
            self.process.settle(Duration::from_millis(200));
            self.process.send(json!({"request": "bye"}));
            self.process.wait_exit(Duration::from_secs(1));
        }
    }
}

pub struct DriverSession {
    id: SessionId,
    process: Arc<DriverProcess>,
    hello: Arc<Hello>,
    in_flight: Option<u64>,
    tx: Option<TxStatus>,
}

impl Session for DriverSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn start(&mut self, sql: &str) {
        let request = json!({"request": "execute", "session": self.id, "sql": sql});
        self.in_flight = Some(self.process.send(request));
    }

    fn reply(&mut self, patience: Duration) -> Option<Reply> {
        let answer = self.process.wait(self.in_flight?, patience)?;
        self.in_flight = None;
        let reply = match answer {
            Ok(message) => {
                let came = message.describe();
                message.into_reply(&self.hello.profile, self.tx).unwrap_or_else(|| {
                    lost(self.process.violation(&format!("it answered `execute` with {came}")))
                })
            }
            Err(why) => lost(why),
        };
        self.tx = reply.tx;
        Some(reply)
    }
}

impl Drop for DriverSession {
    fn drop(&mut self) {
        if self.process.end(Duration::ZERO).is_none() {
            self.process.send_unwatched(json!({"request": "close", "session": self.id}));
        }
    }
}

/// The reply to every statement after the driver has ended.
fn lost(message: String) -> Reply {
    Reply::new(
        Outcome::Error(DbError {
            code: "DRIVER".into(),
            sqlstate: None,
            message,
            class: ErrorClass::Lost,
            effect: ErrorEffect::Lost,
        }),
        None,
    )
}

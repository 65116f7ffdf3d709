//! The bench on which a driver is checked: a process, requests by hand, and
//! answers that are compared with what the protocol's page says.

use super::message::{Hello, Message};
use super::process::DriverProcess;
use crate::driver::{DriverCommand, HELLO_LIMIT, greet};
use crate::engine::TxStatus;
use isolde_core::history::{DbError, ErrorClass};
use isolde_core::value::{Row, show_rows};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Long enough for a loaded machine, short enough that a driver which never
/// answers is checked within a minute or two.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A fault found: what was expected, what came, and what the page says.
pub struct Fault {
    pub expected: String,
    pub came: String,
}

pub type Found<T> = Result<T, Fault>;

pub fn fault<T>(expected: impl Into<String>, came: impl Into<String>) -> Found<T> {
    Err(Fault { expected: expected.into(), came: came.into() })
}

pub struct Lab {
    command: DriverCommand,
    process: Option<DriverProcess>,
    pub hello: Hello,
    next_session: u64,
}

impl Lab {
    /// Starts the driver; the error is why there is nothing to check.
    pub fn new(command: &DriverCommand) -> Result<Lab, String> {
        let (process, hello) = greet(command, HELLO_LIMIT).map_err(|e| e.to_string())?;
        Ok(Lab { command: command.clone(), process: Some(process), hello, next_session: 1 })
    }

    /// A driver that lives and a database that is empty; a driver that the
    /// check before has killed is started again.
    pub fn fresh(&mut self) -> Found<()> {
        if self.process.as_ref().is_none_or(|p| p.end(Duration::ZERO).is_some()) {
            match greet(&self.command, HELLO_LIMIT) {
                Ok((process, hello)) => (self.process, self.hello) = (Some(process), hello),
                Err(error) => return fault("the driver starts a second time", error.to_string()),
            }
        }
        match self.ask(json!({"request": "clear"}))? {
            Message::Ok { .. } => Ok(()),
            other => fault("`ok` to `clear`", other.describe()),
        }
    }

    pub fn forget_process(&mut self) {
        self.process = None;
    }

    pub fn process(&self) -> Found<&DriverProcess> {
        match &self.process {
            Some(process) => Ok(process),
            None => fault("a running driver", "none"),
        }
    }

    pub fn send(&self, request: Json) -> Found<u64> {
        Ok(self.process()?.send(request))
    }

    /// The answer to a request, within a limit; none when it does not come.
    pub fn answer(&self, id: u64, limit: Duration) -> Found<Option<Message>> {
        match self.process()?.wait(id, limit) {
            Some(Ok(message)) => Ok(Some(message)),
            Some(Err(why)) => fault("an answer", why),
            None => Ok(None),
        }
    }

    pub fn ask(&self, request: Json) -> Found<Message> {
        let shown = request.to_string();
        let id = self.send(request)?;
        match self.answer(id, PATIENCE) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => fault(format!("an answer to {shown}"), format!("none in {PATIENCE:?}")),
            Err(end) => fault(format!("an answer to {shown}"), end.came),
        }
    }

    pub fn open(&mut self) -> Found<u64> {
        let session = self.next_session;
        self.next_session += 1;
        match self.ask(json!({"request": "open", "session": session}))? {
            Message::Ok { .. } => Ok(session),
            other => fault(format!("`ok` to `open` of session {session}"), other.describe()),
        }
    }

    pub fn close(&self, session: u64) -> Found<()> {
        match self.ask(json!({"request": "close", "session": session}))? {
            Message::Ok { .. } => Ok(()),
            other => fault(format!("`ok` to `close` of session {session}"), other.describe()),
        }
    }

    pub fn start(&self, session: u64, sql: &str) -> Found<u64> {
        self.send(json!({"request": "execute", "session": session, "sql": sql}))
    }

    pub fn execute(&self, session: u64, sql: &str) -> Found<Message> {
        self.ask(json!({"request": "execute", "session": session, "sql": sql}))
    }

    /// Runs a statement that has to succeed.
    pub fn run(&self, session: u64, sql: &str) -> Found<Message> {
        match self.execute(session, sql)? {
            Message::Error { error, .. } => {
                fault(format!("`{sql}` to succeed"), format!("{}: {}", error.code, error.message))
            }
            message => Ok(message),
        }
    }

    pub fn begin(&self, session: u64) -> Found<Message> {
        self.run(session, &self.hello.profile.begin)
    }

    pub fn rows(&self, session: u64, sql: &str) -> Found<Vec<Row>> {
        match self.execute(session, sql)? {
            Message::Rows { rows, .. } => Ok(rows),
            other => fault(format!("`rows` to `{sql}`"), other.describe()),
        }
    }

    pub fn expect_rows(&self, session: u64, sql: &str, wanted: &[Row]) -> Found<()> {
        let rows = self.rows(session, sql)?;
        match isolde_core::value::same_multiset(&rows, wanted) {
            true => Ok(()),
            false => fault(format!("{} from `{sql}`", show_rows(wanted)), show_rows(&rows)),
        }
    }

    pub fn expect_tx(&self, message: &Message, after: &str, wanted: TxStatus) -> Found<()> {
        match message.tx() {
            Some(tx) if tx != wanted => {
                fault(format!("\"tx\" {wanted:?} after {after}"), format!("{tx:?}"))
            }
            _ => Ok(()),
        }
    }

    pub fn tables(&self) -> Found<Vec<String>> {
        match self.ask(json!({"request": "tables"}))? {
            Message::Tables(tables) => Ok(tables),
            other => fault("`tables` to `tables`", other.describe()),
        }
    }

    /// The error with its class, as the runner would see it.
    pub fn classify(&self, message: &Message, before: TxStatus) -> Option<DbError> {
        match message {
            Message::Error { error, tx } => {
                Some(error.clone().classify(&self.hello.profile, Some(before), *tx))
            }
            _ => None,
        }
    }

    /// A table of two rows: (1, 10), (2, 20).
    pub fn table(&self, session: u64) -> Found<()> {
        self.run(session, "create table isolde_check (id integer primary key, v integer)")?;
        self.run(session, "insert into isolde_check values (1, 10), (2, 20)").map(drop)
    }
}

/// The classes by which an engine says that two transactions do not go together.
pub fn is_conflict(class: ErrorClass) -> bool {
    use ErrorClass::*;
    matches!(class, Deadlock | Serialization | WriteConflict | LockTimeout | Busy)
}

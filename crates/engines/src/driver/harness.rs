//! The test harness for drivers: a process, single requests, and comparison of
//! the answers with the protocol's documentation.

use super::message::{Hello, Message};
use super::process::DriverProcess;
use crate::driver::{DriverCommand, HELLO_LIMIT, start_driver};
use crate::engine::TxStatus;
use isolde_model::history::DbError;
use isolde_model::value::{Row, show_rows};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// Long enough for a loaded machine, short enough that a driver which never
/// answers is checked within a minute or two.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A violation of the protocol: what was expected and what came.
pub struct Violation {
    pub expected: String,
    pub came: String,
}

pub type CheckOutcome<T> = Result<T, Violation>;

pub fn unexpected<T>(expected: impl Into<String>, came: impl Into<String>) -> CheckOutcome<T> {
    Err(Violation { expected: expected.into(), came: came.into() })
}

pub struct Harness {
    command: DriverCommand,
    process: Option<DriverProcess>,
    pub hello: Hello,
    next_session: u64,
}

impl Harness {
    /// Starts the driver; the error is why there is nothing to check.
    pub fn new(command: &DriverCommand) -> Result<Harness, String> {
        let (process, hello) = start_driver(command, HELLO_LIMIT).map_err(|e| e.to_string())?;
        Ok(Harness { command: command.clone(), process: Some(process), hello, next_session: 1 })
    }

    /// Provides a running driver and an empty database; a driver that the
    /// previous check has killed is started again.
    pub fn fresh(&mut self) -> CheckOutcome<()> {
        if self.process.as_ref().is_none_or(|p| p.end(Duration::ZERO).is_some()) {
            match start_driver(&self.command, HELLO_LIMIT) {
                Ok((process, hello)) => (self.process, self.hello) = (Some(process), hello),
                Err(error) => {
                    return unexpected("the driver starts a second time", error.to_string());
                }
            }
        }
        match self.ask(json!({"request": "clear"}))? {
            Message::Ok { .. } => Ok(()),
            other => unexpected("`ok` to `clear`", other.describe()),
        }
    }

    pub fn forget_process(&mut self) {
        self.process = None;
    }

    pub fn process(&self) -> CheckOutcome<&DriverProcess> {
        match &self.process {
            Some(process) => Ok(process),
            None => unexpected("a running driver", "none"),
        }
    }

    pub fn send(&self, request: Json) -> CheckOutcome<u64> {
        Ok(self.process()?.send(request))
    }

    /// The answer to a request, within a limit; none when it does not come.
    pub fn answer(&self, id: u64, limit: Duration) -> CheckOutcome<Option<Message>> {
        match self.process()?.wait(id, limit) {
            Some(Ok(message)) => Ok(Some(message)),
            Some(Err(why)) => unexpected("an answer", why),
            None => Ok(None),
        }
    }

    pub fn ask(&self, request: Json) -> CheckOutcome<Message> {
        let shown = request.to_string();
        let id = self.send(request)?;
        match self.answer(id, PATIENCE) {
            Ok(Some(message)) => Ok(message),
            Ok(None) => {
                unexpected(format!("an answer to {shown}"), format!("none in {PATIENCE:?}"))
            }
            Err(end) => unexpected(format!("an answer to {shown}"), end.came),
        }
    }

    pub fn open(&mut self) -> CheckOutcome<u64> {
        let session = self.next_session;
        self.next_session += 1;
        match self.ask(json!({"request": "open", "session": session}))? {
            Message::Ok { .. } => Ok(session),
            other => unexpected(format!("`ok` to `open` of session {session}"), other.describe()),
        }
    }

    pub fn close(&self, session: u64) -> CheckOutcome<()> {
        match self.ask(json!({"request": "close", "session": session}))? {
            Message::Ok { .. } => Ok(()),
            other => unexpected(format!("`ok` to `close` of session {session}"), other.describe()),
        }
    }

    pub fn start(&self, session: u64, sql: &str) -> CheckOutcome<u64> {
        self.send(json!({"request": "execute", "session": session, "sql": sql}))
    }

    pub fn execute(&self, session: u64, sql: &str) -> CheckOutcome<Message> {
        self.ask(json!({"request": "execute", "session": session, "sql": sql}))
    }

    /// Runs a statement that must succeed.
    pub fn run(&self, session: u64, sql: &str) -> CheckOutcome<Message> {
        match self.execute(session, sql)? {
            Message::Error { error, .. } => unexpected(
                format!("`{sql}` to succeed"),
                format!("{}: {}", error.code, error.message),
            ),
            message => Ok(message),
        }
    }

    pub fn begin(&self, session: u64) -> CheckOutcome<Message> {
        self.run(session, &self.hello.profile.begin)
    }

    pub fn rows(&self, session: u64, sql: &str) -> CheckOutcome<Vec<Row>> {
        match self.execute(session, sql)? {
            Message::Rows { rows, .. } => Ok(rows),
            other => unexpected(format!("`rows` to `{sql}`"), other.describe()),
        }
    }

    pub fn expect_rows(&self, session: u64, sql: &str, wanted: &[Row]) -> CheckOutcome<()> {
        let rows = self.rows(session, sql)?;
        match isolde_model::value::same_multiset(&rows, wanted) {
            true => Ok(()),
            false => unexpected(format!("{} from `{sql}`", show_rows(wanted)), show_rows(&rows)),
        }
    }

    pub fn expect_tx(&self, message: &Message, after: &str, wanted: TxStatus) -> CheckOutcome<()> {
        match message.tx() {
            Some(tx) if tx != wanted => {
                unexpected(format!("\"tx\" {wanted:?} after {after}"), format!("{tx:?}"))
            }
            _ => Ok(()),
        }
    }

    pub fn tables(&self) -> CheckOutcome<Vec<String>> {
        match self.ask(json!({"request": "tables"}))? {
            Message::Tables(tables) => Ok(tables),
            other => unexpected("`tables` to `tables`", other.describe()),
        }
    }

    /// The error with its class, as the runner would classify it.
    pub fn classify(&self, message: &Message, before: TxStatus) -> Option<DbError> {
        match message {
            Message::Error { error, tx } => {
                Some(error.clone().classify(&self.hello.profile, Some(before), *tx))
            }
            _ => None,
        }
    }

    /// Creates a table of two rows: (1, 10), (2, 20).
    pub fn table(&self, session: u64) -> CheckOutcome<()> {
        self.run(session, "create table isolde_check (id integer primary key, v integer)")?;
        self.run(session, "insert into isolde_check values (1, 10), (2, 20)").map(drop)
    }
}

//! Connections to PostgreSQL that are read as libpq reads them, message by
//! message, because the order of notices and results in the output depends on
//! it.

use super::spec_message::Report;
use super::wire::PgSession;
use crate::engine::{EngineError, EngineResult, Outcome, Session, run_to_end};
use crate::engine::{Notification, SpecAnswer, SpecFailure, SpecLinks};
use fallible_iterator::FallibleIterator;
use isolde_model::Value;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io;
use std::time::Duration;

const CONTROL_LIMIT: Duration = Duration::from_secs(60);
/// A server that sends nothing for this long is blocked or executing.
const BURST_PAUSE: Duration = Duration::from_micros(500);
const INTERRUPT_PAUSE: Duration = Duration::from_millis(100);
const GONE: &str = "server closed the connection unexpectedly\n\tThis probably means the server \
                    terminated abnormally\n\tbefore or while processing the request.\n";

/// The session settings of PostgreSQL's test driver, and on a private server
/// also PostgreSQL's defaults for settings that Isolde has changed.
pub fn session_settings(test: &str, private: bool) -> Vec<(String, String)> {
    let from = |variable: &str, default: &str| {
        std::env::var(variable).ok().filter(|v| !v.is_empty()).unwrap_or_else(|| default.into())
    };
    let mut settings = vec![
        ("application_name".to_string(), format!("isolation/{test}")),
        ("TimeZone".to_string(), from("PGTZ", "PST8PDT")),
        ("DateStyle".to_string(), from("PGDATESTYLE", "Postgres, MDY")),
        (
            "options".to_string(),
            format!("{} -c intervalstyle=postgres_verbose", from("PGOPTIONS", "")),
        ),
    ];
    if private {
        for (name, value) in [
            ("client_min_messages", "notice"),
            ("deadlock_timeout", "1s"),
            ("log_lock_waits", "off"),
        ] {
            settings.push((name.into(), value.into()));
        }
    }
    settings
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Sent, and no result has arrived yet.
    Busy,
    /// A result has arrived and has not been taken.
    Ready,
}

struct PgLink {
    session: PgSession,
    state: State,
    query: String,
    result: Option<SpecAnswer>,
    /// A message that is kept until the result before it is taken.
    held: Option<Message>,
    notices: Vec<String>,
    notifications: Vec<Notification>,
    dead: bool,
}

pub struct PgLinks {
    links: Vec<PgLink>,
    /// Polled while a result is awaited; true gives the connection up.
    interrupted: fn() -> bool,
    /// `'{1,2}'`: the processes of the sessions, for the server's lock view.
    pids: String,
}

impl PgLinks {
    /// Opens the control connection and one connection per session.
    pub fn open(
        sessions: &[String],
        interrupted: fn() -> bool,
        connect: impl Fn() -> EngineResult<PgSession>,
    ) -> EngineResult<PgLinks> {
        let mut links = Vec::new();
        for name in std::iter::once("control connection").chain(sessions.iter().map(String::as_str))
        {
            let mut session = connect()?;
            let rename = format!(
                "select set_config('application_name', \
                 current_setting('application_name') || '/' || '{}', false)",
                name.replace('\'', "''")
            );
            if let Outcome::Error(error) = run_to_end(&mut session, &rename, CONTROL_LIMIT)? {
                return Err(EngineError::Refused(format!(
                    "setting of application name failed: {error}"
                )));
            }
            links.push(PgLink::new(session));
        }
        let pids: Vec<String> = links[1..].iter().map(|l| l.session.id().to_string()).collect();
        Ok(PgLinks { links, interrupted, pids: pids.join(",") })
    }
}

impl PgLink {
    fn new(session: PgSession) -> PgLink {
        PgLink {
            session,
            state: State::Idle,
            query: String::new(),
            result: None,
            held: None,
            notices: Vec::new(),
            notifications: Vec::new(),
            dead: false,
        }
    }

    /// Processes all messages up to one that must be kept.
    fn take_in(&mut self) -> io::Result<()> {
        loop {
            let message = match self.held.take() {
                Some(message) => message,
                None => match self.session.next_message()? {
                    Some(message) => message,
                    None => return Ok(()),
                },
            };
            match message {
                Message::NoticeResponse(body) => {
                    self.notices.push(Report::read(body.fields())?.notice(&self.query));
                }
                Message::NotificationResponse(body) => self.notifications.push(Notification {
                    sender: u64::try_from(body.process_id()).unwrap_or_default(),
                    channel: body.channel()?.to_string(),
                    payload: body.message()?.to_string(),
                }),
                message => match self.state {
                    State::Ready => {
                        self.held = Some(message);
                        return Ok(());
                    }
                    State::Busy => self.take_result(message)?,
                    State::Idle => {
                        // The server's last message to a session that was idle.
                        if let Message::ErrorResponse(body) = message {
                            self.notices.push(Report::read(body.fields())?.notice(&self.query));
                        }
                    }
                },
            }
        }
    }

    fn take_result(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::RowDescription(body) => {
                let columns = body.fields().map(|f| Ok(f.name().to_string())).collect()?;
                self.result = Some(SpecAnswer::Table { columns, rows: Vec::new() });
            }
            Message::DataRow(body) => {
                let text = |range: std::ops::Range<usize>| {
                    String::from_utf8_lossy(&body.buffer()[range]).into_owned()
                };
                let row = body.ranges().map(|range| Ok(range.map(text))).collect()?;
                if let Some(SpecAnswer::Table { rows, .. }) = &mut self.result {
                    rows.push(row);
                }
            }
            Message::CommandComplete(_) => {
                self.result.get_or_insert(SpecAnswer::Done);
                self.state = State::Ready;
            }
            Message::EmptyQueryResponse => {
                self.result = Some(SpecAnswer::Empty);
                self.state = State::Ready;
            }
            Message::ErrorResponse(body) => {
                let report = Report::read(body.fields())?;
                self.result = Some(SpecAnswer::Failed(report.failed(&self.query)));
                self.state = State::Ready;
            }
            Message::CopyInResponse(_) => {
                self.session.write(|out| frontend::copy_fail("a step sends no data", out))?;
                self.result = Some(SpecAnswer::Unexpected("PGRES_COPY_IN"));
                self.state = State::Ready;
            }
            Message::CopyOutResponse(_) => {
                self.result = Some(SpecAnswer::Unexpected("PGRES_COPY_OUT"));
                self.state = State::Ready;
            }
            Message::ReadyForQuery(_) => {
                self.result = None;
                self.state = State::Idle;
            }
            // CopyData, CopyDone, ParameterStatus: nothing to report.
            _ => {}
        }
        Ok(())
    }

    /// Messages that the server sends without a pause are read together: which
    /// notices precede a step's line must not depend on scheduling.
    fn read_burst(&mut self) -> io::Result<()> {
        self.session.read_some()?;
        while !self.session.reply_is_whole() && self.session.readable(BURST_PAUSE)? {
            if self.session.read_some().is_err() {
                // The end of the connection shows in the next read.
                break;
            }
        }
        Ok(())
    }

    fn next_answer(&mut self, interrupted: fn() -> bool) -> Option<SpecAnswer> {
        loop {
            if self.take_in().is_err() {
                return self.lose();
            }
            match self.state {
                State::Idle => return None,
                State::Ready => {
                    self.state = State::Busy;
                    return self.result.take();
                }
                State::Busy => match self.session.readable(INTERRUPT_PAUSE) {
                    Ok(false) if interrupted() => return self.lose(),
                    Ok(false) => {}
                    Ok(true) if self.session.read_some().is_ok() => {}
                    _ => return self.lose(),
                },
            }
        }
    }

    fn lose(&mut self) -> Option<SpecAnswer> {
        self.state = State::Idle;
        self.dead = true;
        let (line, full) = (GONE.into(), GONE.into());
        Some(SpecAnswer::Failed(SpecFailure { line, full, rejected: false, statement: None }))
    }
}

impl SpecLinks for PgLinks {
    fn send(&mut self, index: usize, sql: &str) -> Result<(), String> {
        let link = &mut self.links[index];
        if link.dead {
            return Err("no connection to the server\n".into());
        }
        link.query = sql.into();
        link.state = State::Busy;
        link.session.write(|out| frontend::query(sql, out)).map_err(|e| format!("{e}\n"))
    }

    fn is_busy(&mut self, index: usize) -> bool {
        let link = &mut self.links[index];
        link.take_in().is_ok() && link.state == State::Busy
    }

    fn wait(&mut self, index: usize, patience: Duration) -> Result<bool, String> {
        let link = &mut self.links[index];
        match link.session.readable(patience) {
            Ok(false) => Ok(false),
            Ok(true) => link.read_burst().map(|()| true).map_err(|_| GONE.into()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn next_answer(&mut self, index: usize) -> Option<SpecAnswer> {
        self.links[index].next_answer(self.interrupted)
    }

    fn take_notices(&mut self, index: usize) -> Vec<String> {
        std::mem::take(&mut self.links[index].notices)
    }

    fn take_notifications(&mut self, index: usize) -> Vec<Notification> {
        let link = &mut self.links[index];
        // Notifications that have arrived since belong to this step's report.
        while matches!(link.session.readable(Duration::ZERO), Ok(true))
            && link.session.read_some().is_ok()
        {}
        let _ = link.take_in();
        std::mem::take(&mut link.notifications)
    }

    fn id(&self, index: usize) -> u64 {
        self.links[index].session.id()
    }

    fn is_blocked(&mut self, index: usize) -> EngineResult<bool> {
        let sql = format!(
            "select pg_catalog.pg_isolation_test_session_is_blocked({}, '{{{}}}')",
            self.links[index].session.id(),
            self.pids
        );
        let control = &mut self.links[0].session;
        match run_to_end(control, &sql, CONTROL_LIMIT)? {
            Outcome::Rows { rows, .. } => {
                Ok(rows.first().and_then(|r| r.first()) == Some(&Value::Bool(true)))
            }
            other => Err(EngineError::Refused(format!("lock wait query failed: {other:?}"))),
        }
    }

    fn cancel(&mut self, index: usize) -> EngineResult<()> {
        let sql = format!("select pg_cancel_backend({})", self.links[index].session.id());
        run_to_end(&mut self.links[0].session, &sql, CONTROL_LIMIT).map(|_| ())
    }
}

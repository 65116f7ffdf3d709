//! One connection in PostgreSQL's protocol.
//!
//! It uses the codec of the postgres-protocol crate, because a full client
//! hides two things that matter here: the transaction status that the server
//! sends with every reply, and the notices that arrive while a statement is
//! blocked. Replies are polled for, so no thread is needed.

mod fuzz;
mod login;

pub use fuzz::fuzz;

use crate::connect::address::{Login, WireSession};
use crate::connect::login::{connect_by_mode, login_error};
use crate::connect::poll::{LOGIN_LIMIT, check_length};
use crate::connect::stream::Stream;
use crate::engine::{EngineResult, Outcome, Reply, Session, SessionId, TxStatus};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use isolde_model::history::{DbError, ErrorClass};
use isolde_model::value::unhex;
use isolde_model::{Profile, Value};
use postgres_protocol::message::backend::{ErrorFields, Message};
use postgres_protocol::message::frontend;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct PgSession {
    stream: Stream,
    incoming: BytesMut,
    profile: Arc<Profile>,
    pid: SessionId,
    partial: Partial,
    /// The server notifies this session when it waits for a lock and has looked
    /// for a deadlock (log_lock_waits, sent to the client).
    pub reports_waits: bool,
    waits: bool,
    /// Bytes received since the last statement was sent.
    received: usize,
    broken: Option<String>,
}

/// The part of a reply that has arrived so far.
#[derive(Default)]
struct Partial {
    columns: Vec<String>,
    types: Vec<u32>,
    rows: Vec<Vec<Value>>,
    is_rows: bool,
    tag: String,
    error: Option<DbError>,
}

impl PgSession {
    /// A session that has not logged in yet.
    fn new(stream: Stream, profile: Arc<Profile>) -> PgSession {
        PgSession {
            stream,
            incoming: BytesMut::with_capacity(8192),
            profile,
            pid: 0,
            partial: Partial::default(),
            reports_waits: false,
            waits: false,
            received: 0,
            broken: None,
        }
    }

    /// The next message that has arrived in full, for callers that read the
    /// protocol themselves instead of waiting for a [`Reply`].
    pub(crate) fn next_message(&mut self) -> io::Result<Option<Message>> {
        // The codec allocates the length that a message announces.
        if let Some(length) = self.incoming.get(1..5) {
            let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
            check_length(length as usize)?;
        }
        Message::parse(&mut self.incoming)
    }

    /// Whether the received bytes end with the end of a reply.
    pub(crate) fn reply_is_whole(&self) -> bool {
        const END: [u8; 5] = [b'Z', 0, 0, 0, 5];
        self.incoming.len() > END.len()
            && self.incoming[self.incoming.len() - END.len() - 1..].starts_with(&END)
    }

    pub(crate) fn readable(&self, patience: Duration) -> io::Result<bool> {
        self.stream.readable(patience)
    }

    pub(crate) fn write(
        &mut self,
        encode: impl FnOnce(&mut BytesMut) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BytesMut::new();
        encode(&mut out)?;
        self.stream.write_all(&out)
    }

    pub(crate) fn read_some(&mut self) -> io::Result<()> {
        let incoming = &mut self.incoming;
        self.received += self.stream.read_into(|bytes| incoming.extend_from_slice(bytes))?;
        check_length(self.received)
    }

    fn take_messages(&mut self) -> io::Result<Option<Reply>> {
        while let Some(message) = self.next_message()? {
            if let Some(reply) = self.take(message)? {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn take(&mut self, message: Message) -> io::Result<Option<Reply>> {
        match message {
            Message::RowDescription(body) => {
                let mut fields = body.fields();
                self.partial = Partial { is_rows: true, ..Partial::default() };
                while let Some(field) = fields.next()? {
                    self.partial.columns.push(field.name().to_string());
                    self.partial.types.push(field.type_oid());
                }
            }
            Message::DataRow(body) => {
                let buffer = body.buffer();
                let mut ranges = body.ranges();
                let mut row = Vec::with_capacity(self.partial.types.len());
                while let Some(range) = ranges.next()? {
                    let oid = self.partial.types.get(row.len()).copied().unwrap_or(0);
                    row.push(match range {
                        Some(range) => value(oid, &String::from_utf8_lossy(&buffer[range])),
                        None => Value::Null,
                    });
                }
                self.partial.rows.push(row);
            }
            Message::CommandComplete(body) => self.partial.tag = body.tag()?.to_string(),
            Message::ErrorResponse(body) => {
                self.partial.error = Some(self.db_error(body.fields())?)
            }
            Message::NoticeResponse(body) => self.heed_notice(body.fields())?,
            Message::CopyInResponse(_) => {
                self.write(|out| frontend::copy_fail("Isolde sends no data", out))?;
            }
            Message::ReadyForQuery(body) => return Ok(Some(self.finish(body.status()))),
            _ => {}
        }
        Ok(None)
    }

    /// `process 12 still waiting for ShareLock …` is sent once the deadlock
    /// check has found nothing; `process 12 acquired …` ends the wait.
    fn heed_notice(&mut self, mut fields: ErrorFields<'_>) -> io::Result<()> {
        let mut log = false;
        let mut text = String::new();
        while let Some(field) = fields.next()? {
            match field.type_() {
                b'V' => log = field.value_bytes() == b"LOG",
                b'M' => text = String::from_utf8_lossy(field.value_bytes()).into_owned(),
                _ => {}
            }
        }
        if log {
            self.waits =
                (self.waits || text.contains("still waiting for")) && !text.contains(" acquired ");
        }
        Ok(())
    }

    fn finish(&mut self, status: u8) -> Reply {
        let partial = std::mem::take(&mut self.partial);
        self.waits = false;
        let rolled_back = partial.tag == "ROLLBACK";
        let outcome = match partial.error {
            Some(error) => Outcome::Error(error),
            None if partial.is_rows => {
                Outcome::Rows { columns: partial.columns, rows: partial.rows }
            }
            None => outcome_of_tag(&partial.tag),
        };
        let status = match status {
            b'T' => TxStatus::Open,
            b'E' => TxStatus::Failed,
            _ => TxStatus::Idle,
        };
        Reply { outcome, tx: Some(status), commit_rolled_back: rolled_back }
    }

    fn db_error(&self, mut fields: ErrorFields<'_>) -> io::Result<DbError> {
        let (mut code, mut message, mut fatal) = (String::new(), String::new(), false);
        while let Some(field) = fields.next()? {
            match field.type_() {
                b'C' => code = String::from_utf8_lossy(field.value_bytes()).into_owned(),
                b'V' => fatal = matches!(field.value_bytes(), b"FATAL" | b"PANIC"),
                b'M' => message = String::from_utf8_lossy(field.value_bytes()).into_owned(),
                _ => {}
            }
        }
        let (class, effect) = match self.profile.classify(&code, Some(&code), &message) {
            // Any function may raise such a code; only a fatal error ends the
            // session.
            (ErrorClass::Lost, _) if !fatal => (ErrorClass::Other, self.profile.other_errors),
            known => known,
        };
        Ok(DbError { sqlstate: Some(code.clone()), code, message, class, effect })
    }

    fn lost(&mut self, why: String) -> Reply {
        // The server's last message, if any, says more than the socket's error.
        let why = match self.partial.error.take() {
            Some(error) => format!("{error} ({why})"),
            None => why,
        };
        self.broken = Some(why.clone());
        Reply::new(Outcome::Error(DbError::lost(why)), Some(TxStatus::Idle))
    }
}

impl WireSession for PgSession {
    fn log_in(login: &Login<'_>, profile: Arc<Profile>) -> EngineResult<Self> {
        let server = format!("{}:{}", login.address.host, login.address.port);
        connect_by_mode(login.address.tls.as_ref(), |tls| {
            let stream = Stream::connect(&login.address.host, login.address.port)?;
            let mut session = PgSession::new(stream, Arc::clone(&profile));
            let deadline = Instant::now() + LOGIN_LIMIT;
            if let Some(tls) = tls {
                session.encrypt(tls, &login.address.host, deadline)?;
            }
            session.authenticate(login, deadline)?;
            Ok(session)
        })
        .map_err(|e| login_error(&server, &e))
    }

    fn hang_up(&mut self) {
        let _ = self.stream.socket().shutdown(std::net::Shutdown::Both);
    }
}

impl Session for PgSession {
    fn id(&self) -> SessionId {
        self.pid
    }

    fn start(&mut self, sql: &str) {
        self.waits = false;
        self.received = 0;
        if let Err(error) = self.write(|out| frontend::query(sql, out)) {
            self.broken = Some(error.to_string());
        }
    }

    fn reply(&mut self, patience: Duration) -> Option<Reply> {
        let deadline = Instant::now() + patience;
        let mut looked = false;
        loop {
            match self.take_messages() {
                Ok(Some(reply)) => return Some(reply),
                // A server that sends without end does not get more time.
                Ok(None) if looked && Instant::now() >= deadline => return None,
                Ok(None) => looked = true,
                Err(error) => return Some(self.lost(error.to_string())),
            }
            // Data sent before the connection broke can still be read.
            let left = deadline.saturating_duration_since(Instant::now());
            match self.stream.readable(left) {
                Ok(true) => {}
                Ok(false) => {
                    let why = self.broken.take()?;
                    return Some(self.lost(why));
                }
                Err(error) => return Some(self.lost(error.to_string())),
            }
            if let Err(error) = self.read_some() {
                return Some(self.lost(error.to_string()));
            }
        }
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.socket().as_fd())
    }

    fn is_alive(&self) -> bool {
        // No reply is expected: readable data means the end of the connection,
        // or a message about it.
        self.broken.is_none() && matches!(self.stream.readable(Duration::ZERO), Ok(false))
    }

    fn confirms_wait(&self) -> Option<bool> {
        self.reports_waits.then_some(self.waits)
    }
}

impl Drop for PgSession {
    fn drop(&mut self) {
        let _ = self.write(|out| {
            frontend::terminate(out);
            Ok(())
        });
    }
}

/// `UPDATE 3` and `INSERT 0 1` count rows; other tags do not.
fn outcome_of_tag(tag: &str) -> Outcome {
    let mut words = tag.split(' ');
    let counted = matches!(words.next(), Some("INSERT" | "UPDATE" | "DELETE" | "MERGE"));
    match words.next_back().and_then(|n| n.parse().ok()) {
        Some(count) if counted => Outcome::Affected(count),
        _ => Outcome::Done,
    }
}

fn value(oid: u32, text: &str) -> Value {
    const BOOL: u32 = 16;
    const BYTEA: u32 = 17;
    const INTS: [u32; 4] = [20, 21, 23, 26];
    const FLOATS: [u32; 2] = [700, 701];
    const NUMERIC: u32 = 1700;
    match oid {
        BOOL => Value::Bool(text == "t"),
        BYTEA => {
            text.strip_prefix("\\x").and_then(unhex).map_or(Value::Text(text.into()), Value::Bytes)
        }
        NUMERIC => Value::Decimal(text.into()),
        oid if INTS.contains(&oid) => text.parse().map_or(Value::Text(text.into()), Value::Int),
        oid if FLOATS.contains(&oid) => text.parse().map_or(Value::Text(text.into()), Value::Float),
        _ => Value::Text(text.into()),
    }
}

#[cfg(test)]
mod tests;

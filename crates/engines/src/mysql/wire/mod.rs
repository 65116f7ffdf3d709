//! One connection in MySQL's text protocol.
//!
//! It uses mysql_common's packets and authentication, because a full client
//! hides the transaction flag that comes with every reply and cannot be polled.
//! An error packet carries no flags, so a ping follows each error: the status
//! after an error shows what happened to the transaction.

mod fuzz;
mod login;
mod values;

pub use fuzz::fuzz;

use crate::connect::address::{Login, WireSession};
use crate::connect::login::{connect_by_mode, login_error};
use crate::connect::poll::check_length;
use crate::connect::stream::Stream;
use crate::engine::{EngineResult, Outcome, Reply, Session, SessionId, TxStatus};
use isolde_model::history::{DbError, ErrorEffect};
use isolde_model::{Profile, Value};
use isolde_sql as sql;
use mysql_common::io::ParseBuf;
use mysql_common::packets::Column;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use values::{length_encoded, ok_packet, row};

const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 8;

pub struct MySqlSession {
    stream: Stream,
    incoming: Vec<u8>,
    /// The start of the bytes not read yet.
    read_to: usize,
    sequence: u8,
    profile: Arc<Profile>,
    pub id: SessionId,
    expects: Expects,
    result: Option<Outcome>,
    /// Only writes count rows; the packet always has a number.
    counts_rows: bool,
    /// The prepared statements of the session that write, by their names.
    prepared_writes: BTreeSet<String>,
    /// Bytes received since the last statement was sent.
    received: usize,
    broken: Option<String>,
    pub server_version: String,
}

/// The next packet of a reply.
enum Expects {
    Header,
    Columns {
        left: u64,
        columns: Vec<Column>,
    },
    EndOfColumns {
        columns: Vec<Column>,
    },
    Rows {
        columns: Vec<Column>,
        rows: Vec<Vec<Value>>,
    },
    /// The reply to the ping after an error.
    Status,
}

impl MySqlSession {
    /// A session that has not logged in yet.
    fn new(stream: Stream, profile: Arc<Profile>) -> MySqlSession {
        MySqlSession {
            stream,
            incoming: Vec::with_capacity(8192),
            read_to: 0,
            sequence: 0,
            profile,
            id: 0,
            expects: Expects::Header,
            result: None,
            counts_rows: false,
            prepared_writes: BTreeSet::new(),
            received: 0,
            broken: None,
            server_version: String::new(),
        }
    }

    /// Follows PREPARE, and says whether EXECUTE runs a write.
    fn executes_write(&mut self, text: &str) -> bool {
        if let Some((name, inner)) = sql::read::prepared_text(text) {
            match sql::kind(&inner) {
                sql::Kind::Write => self.prepared_writes.insert(name),
                _ => self.prepared_writes.remove(&name),
            };
            return false;
        }
        let executed = sql::first_word(text).eq_ignore_ascii_case("execute");
        executed
            && match sql::read::control(text) {
                Some(sql::Stmt::Execute(name)) => self.prepared_writes.contains(&name),
                _ => false,
            }
    }

    fn write_packet(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut out = Vec::with_capacity(payload.len() + 4);
        let mut rest = payload;
        loop {
            let part = &rest[..rest.len().min(0xff_ffff)];
            rest = &rest[part.len()..];
            let length = u32::try_from(part.len()).unwrap_or(0).to_le_bytes();
            out.extend_from_slice(&length[..3]);
            out.push(self.sequence);
            out.extend_from_slice(part);
            self.sequence = self.sequence.wrapping_add(1);
            if part.len() < 0xff_ffff {
                break;
            }
        }
        self.stream.write_all(&out)
    }

    fn write_command(&mut self, command: u8, argument: &[u8]) -> io::Result<()> {
        self.sequence = 0;
        let mut payload = Vec::with_capacity(argument.len() + 1);
        payload.push(command);
        payload.extend_from_slice(argument);
        self.write_packet(&payload)
    }

    fn read_some(&mut self) -> io::Result<()> {
        let incoming = &mut self.incoming;
        self.received += self.stream.read_into(|bytes| incoming.extend_from_slice(bytes))?;
        check_length(self.received)
    }

    /// A whole packet, joined where it is longer than 16 MB. Nothing is copied
    /// before its last part has arrived.
    fn next_packet(&mut self) -> Option<Vec<u8>> {
        let mut parts = Vec::new();
        let mut at = self.read_to;
        loop {
            let header = self.incoming.get(at..at + 4)?;
            let length =
                usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
            self.sequence = header[3].wrapping_add(1);
            parts.push(at + 4..at + 4 + length);
            at += 4 + length;
            if length < 0xff_ffff {
                break;
            }
        }
        if self.incoming.len() < at {
            return None;
        }
        let payload = parts.into_iter().flat_map(|part| &self.incoming[part]).copied().collect();
        self.read_to = at;
        if self.read_to == self.incoming.len() {
            self.incoming.clear();
            self.read_to = 0;
        }
        Some(payload)
    }

    fn take_packets(&mut self) -> io::Result<Option<Reply>> {
        while let Some(packet) = self.next_packet() {
            if let Some(reply) = self.take(&packet)? {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn take(&mut self, packet: &[u8]) -> io::Result<Option<Reply>> {
        let first = packet.first().copied().unwrap_or(0);
        if first == 0xff {
            return self.take_error(packet);
        }
        let end = first == 0xfe && packet.len() < 9;
        match std::mem::replace(&mut self.expects, Expects::Header) {
            Expects::Status => {
                let (_, status) = ok_packet(packet);
                Ok(Some(self.finish(status)))
            }
            Expects::Header if first == 0x00 => {
                let (affected, status) = ok_packet(packet);
                let counted = self.counts_rows;
                let outcome = if counted { Outcome::Affected(affected) } else { Outcome::Done };
                self.result.get_or_insert(outcome);
                Ok(self.unless_more(status))
            }
            Expects::Header if first == 0xfb => {
                // LOAD DATA LOCAL: Isolde sends no files.
                self.write_packet(&[])?;
                Ok(None)
            }
            Expects::Header => {
                let left = length_encoded(&mut &packet[..]).filter(|n| *n > 0);
                let left = left.ok_or_else(|| io::Error::other("a result without columns"))?;
                self.expects = Expects::Columns { left, columns: Vec::new() };
                Ok(None)
            }
            Expects::Columns { left, mut columns } => {
                columns.push(ParseBuf(packet).parse(())?);
                self.expects = if columns.len() as u64 == left {
                    Expects::EndOfColumns { columns }
                } else {
                    Expects::Columns { left, columns }
                };
                Ok(None)
            }
            Expects::EndOfColumns { columns } => {
                self.expects = Expects::Rows { columns, rows: Vec::new() };
                Ok(None)
            }
            Expects::Rows { columns, rows } if end => {
                let names = columns.iter().map(|c| c.name_str().into_owned()).collect();
                let status = packet.get(3..5).map_or(0, |s| u16::from_le_bytes([s[0], s[1]]));
                self.result.get_or_insert(Outcome::Rows { columns: names, rows });
                Ok(self.unless_more(status))
            }
            Expects::Rows { columns, mut rows } => {
                rows.push(row(&columns, packet));
                self.expects = Expects::Rows { columns, rows };
                Ok(None)
            }
        }
    }

    fn take_error(&mut self, packet: &[u8]) -> io::Result<Option<Reply>> {
        if matches!(self.expects, Expects::Status) {
            return Err(io::Error::other(self.error(packet).to_string()));
        }
        let error = self.error(packet);
        if error.effect == ErrorEffect::Lost {
            return Err(io::Error::other(error.to_string()));
        }
        self.result = Some(Outcome::Error(error));
        self.write_command(COM_PING, &[])?;
        self.expects = Expects::Status;
        Ok(None)
    }

    fn unless_more(&mut self, status: u16) -> Option<Reply> {
        self.expects = Expects::Header;
        (status & MORE_RESULTS == 0).then(|| self.finish(status))
    }

    fn finish(&mut self, status: u16) -> Reply {
        self.expects = Expects::Header;
        let outcome = self.result.take().unwrap_or(Outcome::Done);
        let open = status & IN_TRANSACTION != 0;
        Reply::new(outcome, Some(if open { TxStatus::Open } else { TxStatus::Idle }))
    }

    fn error(&self, packet: &[u8]) -> DbError {
        let code = packet.get(1..3).map_or(0, |c| u16::from_le_bytes([c[0], c[1]]));
        let rest = packet.get(3..).unwrap_or_default();
        let (state, text) = match rest.split_first() {
            Some((b'#', tail)) if tail.len() >= 5 => {
                let (state, text) = tail.split_at(5);
                (Some(String::from_utf8_lossy(state).into_owned()), text)
            }
            _ => (None, rest),
        };
        let code = code.to_string();
        let message = String::from_utf8_lossy(text).into_owned();
        let (class, effect) = self.profile.classify(&code, None, &message);
        DbError { code, sqlstate: state, message, class, effect }
    }

    fn lost(&mut self, why: &str) -> Reply {
        self.broken = Some(why.to_string());
        Reply::new(Outcome::Error(DbError::lost(why)), Some(TxStatus::Idle))
    }
}

impl WireSession for MySqlSession {
    fn log_in(login: &Login<'_>, profile: Arc<Profile>) -> EngineResult<Self> {
        let server = format!("{}:{}", login.address.host, login.address.port);
        connect_by_mode(login.address.tls.as_ref(), |tls| {
            let stream = Stream::connect(&login.address.host, login.address.port)?;
            let mut session = MySqlSession::new(stream, Arc::clone(&profile));
            session.authenticate(login, tls)?;
            Ok(session)
        })
        .map_err(|e| login_error(&server, &e))
    }

    fn hang_up(&mut self) {
        let _ = self.stream.socket().shutdown(std::net::Shutdown::Both);
    }
}

impl Session for MySqlSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.socket().as_fd())
    }

    fn is_alive(&self) -> bool {
        // No reply is expected: readable data means the end of the connection,
        // or a message about it.
        self.broken.is_none() && matches!(self.stream.readable(Duration::ZERO), Ok(false))
    }

    fn start(&mut self, sql: &str) {
        self.result = None;
        self.received = 0;
        self.counts_rows = sql::kind(sql) == sql::Kind::Write || self.executes_write(sql);
        self.expects = Expects::Header;
        if let Err(error) = self.write_command(COM_QUERY, sql.as_bytes()) {
            self.broken = Some(error.to_string());
        }
    }

    fn reply(&mut self, patience: Duration) -> Option<Reply> {
        let deadline = Instant::now() + patience;
        let mut looked = false;
        loop {
            match self.take_packets() {
                Ok(Some(reply)) => return Some(reply),
                // A server that sends without end does not get more time.
                Ok(None) if looked && Instant::now() >= deadline => return None,
                Ok(None) => looked = true,
                Err(error) => return Some(self.lost(&error.to_string())),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.stream.readable(left) {
                Ok(true) => {}
                Ok(false) => {
                    let why = self.broken.take()?;
                    return Some(self.lost(&why));
                }
                Err(error) => return Some(self.lost(&error.to_string())),
            }
            if let Err(error) = self.read_some() {
                return Some(self.lost(&error.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests;

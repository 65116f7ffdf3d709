//! One connection in MySQL's text protocol.
//!
//! On top of mysql_common's packets and logins, because a full client hides
//! the transaction flag that comes with every reply and cannot be polled. An
//! error packet carries no flags, so each error is followed by a ping whose
//! answer does: what the server says after an error is what happened to the
//! transaction.

use crate::engine::{EngineResult, Outcome, Reply, Session, SessionId, TxStatus};
use crate::poll::{LOGIN_LIMIT, await_login, by_mode, check_length, not_logged_in};
use crate::stream::Stream;
use crate::tls::{Mode, Tls};
use isolde_core::history::{DbError, ErrorEffect};
use isolde_core::{Profile, Value, sql};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context};
use mysql_common::collations::CollationId;
use mysql_common::constants::{CapabilityFlags, ColumnType};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, Column, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Login<'a> {
    pub host: &'a str,
    pub port: u16,
    pub user: &'a str,
    pub password: Option<&'a str>,
    pub database: Option<&'a str>,
    /// None is in clear.
    pub tls: Option<&'a Tls>,
}

const LARGEST_PACKET: u32 = 1 << 24;
/// As the answer to the handshake says it, too: servers compare.
const UTF8MB4: u8 = CollationId::UTF8MB4_GENERAL_CI as u8;
const COM_QUERY: u8 = 3;
const COM_PING: u8 = 14;
const IN_TRANSACTION: u16 = 1;
const MORE_RESULTS: u16 = 8;
const BINARY_CHARSET: u16 = 63;

pub struct MySqlSession {
    stream: Stream,
    incoming: Vec<u8>,
    /// Where the bytes not read yet start.
    read_to: usize,
    sequence: u8,
    profile: Arc<Profile>,
    pub id: SessionId,
    expects: Expects,
    result: Option<Outcome>,
    /// Only writes count rows; the packet always has a number.
    counts_rows: bool,
    /// Bytes that have come since the last statement was sent.
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
    /// The ping behind an error.
    Status,
}

struct LoginContext<'a> {
    password: &'a [u8],
    nonce: &'a [u8],
    encrypted: bool,
}

impl Context for LoginContext<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }
    fn is_ipc_transport(&self) -> bool {
        false
    }
    fn is_tls_transport(&self) -> bool {
        self.encrypted
    }
    fn scramble(&self) -> &[u8] {
        self.nonce
    }
    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

impl MySqlSession {
    pub fn connect(login: &Login<'_>, profile: Arc<Profile>) -> EngineResult<MySqlSession> {
        let place = format!("{}:{}", login.host, login.port);
        by_mode(login.tls, |tls| {
            let mut session = MySqlSession {
                stream: Stream::connect(login.host, login.port)?,
                incoming: Vec::with_capacity(8192),
                read_to: 0,
                sequence: 0,
                profile: Arc::clone(&profile),
                id: 0,
                expects: Expects::Header,
                result: None,
                counts_rows: false,
                received: 0,
                broken: None,
                server_version: String::new(),
            };
            session.log_in(login, tls)?;
            Ok(session)
        })
        .map_err(|e| not_logged_in(&place, &e))
    }

    fn log_in(&mut self, login: &Login<'_>, tls: Option<&Tls>) -> io::Result<()> {
        let deadline = Instant::now() + LOGIN_LIMIT;
        let first = self.read_login_packet(deadline)?;
        if first.first() == Some(&0xff) {
            return Err(io::Error::other(self.error(&first).to_string()));
        }
        let hello: HandshakePacket<'_> = ParseBuf(&first).parse(())?;
        self.id = u64::from(hello.connection_id());
        self.server_version = hello.server_version_str().into_owned();
        let password = login.password.unwrap_or("").as_bytes();
        let mut nonce = hello.nonce();
        nonce.truncate(20);
        let mut wanted = CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_MULTI_RESULTS
            | CapabilityFlags::CLIENT_MULTI_STATEMENTS
            | CapabilityFlags::CLIENT_PLUGIN_AUTH;
        if login.database.is_some() {
            wanted |= CapabilityFlags::CLIENT_CONNECT_WITH_DB;
        }
        if let Some(tls) = tls {
            if hello.capabilities().contains(CapabilityFlags::CLIENT_SSL) {
                wanted |= CapabilityFlags::CLIENT_SSL;
                let wanted = wanted & hello.capabilities();
                self.encrypt(tls, login.host, wanted, deadline)?;
            } else if tls.mode >= Mode::Require {
                return Err(io::Error::other("it does not offer TLS, which ssl-mode asks for"));
            }
        }
        let plugin = hello.auth_plugin().unwrap_or(AuthPlugin::MysqlNativePassword).into_owned();
        let bad = |e: &dyn std::fmt::Display| io::Error::other(format!("login: {e}"));
        let encrypted = self.stream.is_encrypted();
        self.check_plugin(&plugin)?;
        let mut procedure = plugin.init().map_err(|e| bad(&e))?;
        let context = LoginContext { password, nonce: &nonce, encrypted };
        let answer = procedure.run(context, &nonce).map_err(|e| bad(&e))?;
        let response = HandshakeResponse::new(
            answer.data().map(<[u8]>::to_vec),
            (5, 6, 0),
            Some(login.user.as_bytes().to_vec()),
            login.database.map(|d| d.as_bytes().to_vec()),
            Some(plugin),
            wanted & hello.capabilities(),
            None,
            LARGEST_PACKET,
        );
        let mut payload = Vec::new();
        response.serialize(&mut payload);
        self.write_packet(&payload)?;
        self.finish_login(password, nonce, &mut procedure, deadline)
    }

    /// All that follows is encrypted; nothing in clear may be left to read.
    fn encrypt(
        &mut self,
        tls: &Tls,
        host: &str,
        wanted: CapabilityFlags,
        deadline: Instant,
    ) -> io::Result<()> {
        let mut payload = Vec::new();
        SslRequest::new(wanted, LARGEST_PACKET, UTF8MB4).serialize(&mut payload);
        self.write_packet(&payload)?;
        if self.read_to < self.incoming.len() {
            return Err(io::Error::other("it has sent more in clear than it should"));
        }
        self.stream.encrypt(tls, host, deadline)
    }

    /// Whoever listens could read a password that is sent as it is.
    fn check_plugin(&self, plugin: &AuthPlugin<'_>) -> io::Result<()> {
        match plugin {
            AuthPlugin::MysqlClearPassword if !self.stream.is_encrypted() => Err(io::Error::other(
                "it asks for the password in clear; ssl-mode=REQUIRED hides it",
            )),
            _ => Ok(()),
        }
    }

    fn finish_login(
        &mut self,
        password: &[u8],
        mut nonce: Vec<u8>,
        procedure: &mut AuthProc,
        deadline: Instant,
    ) -> io::Result<()> {
        let bad = |e: &dyn std::fmt::Display| io::Error::other(format!("login: {e}"));
        let encrypted = self.stream.is_encrypted();
        loop {
            let packet = self.read_login_packet(deadline)?;
            let answer = match packet.first() {
                Some(0x00) => return Ok(()),
                Some(0xff) => {
                    let error = self.error(&packet);
                    let kind = match error.code.as_str() {
                        "1045" => io::ErrorKind::PermissionDenied,
                        _ => io::ErrorKind::Other,
                    };
                    return Err(io::Error::new(kind, error.to_string()));
                }
                Some(0xfe) => {
                    let rest = &packet[1..];
                    let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
                    let plugin = AuthPlugin::from_bytes(&rest[..end]);
                    self.check_plugin(&plugin)?;
                    nonce = rest.get(end + 1..).unwrap_or_default().to_vec();
                    nonce.truncate(20);
                    *procedure = plugin.init().map_err(|e| bad(&e))?;
                    let context = LoginContext { password, nonce: &nonce, encrypted };
                    procedure.run(context, &nonce).map_err(|e| bad(&e))?
                }
                Some(0x01) => {
                    let context = LoginContext { password, nonce: &nonce, encrypted };
                    procedure.run(context, &packet[1..]).map_err(|e| bad(&e))?
                }
                _ => return Err(io::Error::other("it asks for a login that Isolde cannot do")),
            };
            if let Some(data) = answer.data() {
                let data = data.to_vec();
                self.write_packet(&data)?;
            }
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

    fn read_login_packet(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        loop {
            if let Some(packet) = self.next_packet() {
                return Ok(packet);
            }
            await_login(self.stream.socket(), deadline)?;
            self.read_some()?;
        }
    }

    /// A whole packet, joined where it is longer than 16 MB. Nothing is copied
    /// before its last part is there.
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
        let (class, effect) = self.profile.classify(&code, None);
        let message = String::from_utf8_lossy(text).into_owned();
        DbError { code, sqlstate: state, message, class, effect }
    }

    fn lost(&mut self, why: &str) -> Reply {
        self.broken = Some(why.to_string());
        Reply::new(Outcome::Error(DbError::lost(why)), Some(TxStatus::Idle))
    }
}

impl MySqlSession {
    /// Whatever the server still has to say on this connection is of no use.
    pub fn hang_up(&mut self) {
        let _ = self.stream.socket().shutdown(std::net::Shutdown::Both);
    }
}

impl Session for MySqlSession {
    fn id(&self) -> SessionId {
        self.id
    }

    fn is_alive(&self) -> bool {
        // Nothing is expected: what can be read is an end, or news of one.
        self.broken.is_none() && matches!(self.stream.readable(Duration::ZERO), Ok(false))
    }

    fn start(&mut self, sql: &str) {
        self.result = None;
        self.received = 0;
        self.counts_rows = sql::kind(sql) == sql::Kind::Write;
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

fn ok_packet(packet: &[u8]) -> (u64, u16) {
    let mut rest = packet.get(1..).unwrap_or_default();
    let affected = length_encoded(&mut rest).unwrap_or(0);
    let _insert_id = length_encoded(&mut rest);
    let status = rest.get(..2).map_or(0, |s| u16::from_le_bytes([s[0], s[1]]));
    (affected, status)
}

fn length_encoded(rest: &mut &[u8]) -> Option<u64> {
    let (first, tail) = rest.split_first()?;
    let size = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => {
            *rest = tail;
            return Some(u64::from(*small));
        }
    };
    let bytes = tail.get(..size)?;
    *rest = &tail[size..];
    Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

fn row(columns: &[Column], packet: &[u8]) -> Vec<Value> {
    let mut rest = packet;
    columns
        .iter()
        .map(|column| {
            if rest.first() == Some(&0xfb) {
                rest = &rest[1..];
                return Value::Null;
            }
            let length = usize::try_from(length_encoded(&mut rest).unwrap_or(0)).unwrap_or(0);
            let (bytes, tail) = rest.split_at(length.min(rest.len()));
            rest = tail;
            value(column, bytes)
        })
        .collect()
}

fn value(column: &Column, bytes: &[u8]) -> Value {
    use ColumnType::*;
    let text = || String::from_utf8_lossy(bytes).into_owned();
    match column.column_type() {
        MYSQL_TYPE_TINY | MYSQL_TYPE_SHORT | MYSQL_TYPE_LONG | MYSQL_TYPE_INT24
        | MYSQL_TYPE_LONGLONG | MYSQL_TYPE_YEAR => {
            let text = text();
            text.parse().map_or(Value::Decimal(text), Value::Int)
        }
        MYSQL_TYPE_FLOAT | MYSQL_TYPE_DOUBLE => {
            let text = text();
            text.parse().map_or(Value::Text(text), Value::Float)
        }
        MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => Value::Decimal(text()),
        MYSQL_TYPE_BIT => Value::Bytes(bytes.to_vec()),
        MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_BLOB
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_VARCHAR
        | MYSQL_TYPE_GEOMETRY
            if column.character_set() == BINARY_CHARSET =>
        {
            Value::Bytes(bytes.to_vec())
        }
        _ => Value::Text(text()),
    }
}

#[cfg(test)]
mod tests;

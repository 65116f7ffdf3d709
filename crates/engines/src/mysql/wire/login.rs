//! Logging in: the handshake, encryption and password authentication.

use super::MySqlSession;
use crate::connect::address::Login;
use crate::connect::poll::{LOGIN_LIMIT, await_login};
use crate::connect::tls::{Mode, Tls};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context};
use mysql_common::collations::CollationId;
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;
use std::io;
use std::time::Instant;

const LARGEST_PACKET: u32 = 1 << 24;
/// The same value as in the handshake response: servers compare them.
const UTF8MB4: u8 = CollationId::UTF8MB4_GENERAL_CI as u8;

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

/// Refuses a greeting that announces 128 bytes of authentication data or more:
/// mysql_common takes the length for a signed number, with which its arithmetic
/// overflows. Servers announce 21.
fn check_greeting(greeting: &[u8]) -> io::Result<()> {
    // The length follows 20 bytes after the version, which ends with a zero.
    let version_end = greeting.iter().skip(1).position(|b| *b == 0);
    match version_end.and_then(|end| greeting.get(1 + end + 1 + 20)) {
        Some(128..) => Err(io::Error::other("its greeting is malformed")),
        _ => Ok(()),
    }
}

impl MySqlSession {
    pub(super) fn authenticate(&mut self, login: &Login<'_>, tls: Option<&Tls>) -> io::Result<()> {
        let deadline = Instant::now() + LOGIN_LIMIT;
        let first = self.read_login_packet(deadline)?;
        if first.first() == Some(&0xff) {
            return Err(io::Error::other(self.error(&first).to_string()));
        }
        check_greeting(&first)?;
        let hello: HandshakePacket<'_> = ParseBuf(&first).parse(())?;
        self.id = u64::from(hello.connection_id());
        self.server_version = hello.server_version_str().into_owned();
        let password = login.password();
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
                self.encrypt(tls, &login.address.host, wanted, deadline)?;
            } else if tls.mode >= Mode::Require {
                return Err(io::Error::other("it does not offer TLS, which ssl-mode requires"));
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
            Some(login.address.user.as_bytes().to_vec()),
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

    /// Switches to encryption; no unencrypted bytes may be left to read.
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
            return Err(io::Error::other("it has sent more unencrypted data than it should"));
        }
        self.stream.encrypt(tls, host, deadline)
    }

    /// Refuses to send an unencrypted password, which could be eavesdropped.
    fn check_plugin(&self, plugin: &AuthPlugin<'_>) -> io::Result<()> {
        match plugin {
            AuthPlugin::MysqlClearPassword if !self.stream.is_encrypted() => {
                Err(io::Error::other("it requires an unencrypted password; use ssl-mode=REQUIRED"))
            }
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
                _ => {
                    return Err(io::Error::other(
                        "it requires an authentication method that Isolde does not support",
                    ));
                }
            };
            if let Some(data) = answer.data() {
                let data = data.to_vec();
                self.write_packet(&data)?;
            }
        }
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
}

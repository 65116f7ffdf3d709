//! Logging in: encryption and password authentication.

use super::PgSession;
use crate::connect::address::Login;
use crate::connect::poll::await_login;
use crate::connect::tls::{Mode, Tls};
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use std::io::{self, Read};
use std::time::Instant;

impl PgSession {
    /// Requests encryption. The answer is one unencrypted byte; unencrypted
    /// bytes after it must not be accepted as the server's.
    pub(super) fn encrypt(&mut self, tls: &Tls, host: &str, deadline: Instant) -> io::Result<()> {
        self.write(|out| {
            frontend::ssl_request(out);
            Ok(())
        })?;
        await_login(self.stream.socket(), deadline)?;
        let mut answer = [0u8];
        self.stream.socket().read_exact(&mut answer)?;
        match answer[0] {
            b'S' => self.stream.encrypt(tls, host, deadline),
            _ if tls.mode >= Mode::Require => {
                Err(io::Error::other("it does not offer TLS, which sslmode requires"))
            }
            // A server that does not know the request answers with an error.
            b'E' => Err(io::Error::other("it does not know TLS")),
            _ => Ok(()),
        }
    }

    pub(super) fn authenticate(&mut self, login: &Login<'_>, deadline: Instant) -> io::Result<()> {
        let mut parameters = vec![
            ("user", login.address.user.as_str()),
            ("database", login.database.unwrap_or("postgres")),
            ("application_name", "isolde"),
            ("client_encoding", "UTF8"),
        ];
        for (name, value) in login.settings {
            parameters.retain(|(known, _)| *known != name.as_str());
            parameters.push((name, value));
        }
        self.write(|out| frontend::startup_message(parameters, out))?;
        let password = login.password();
        let mut scram: Option<sasl::ScramSha256> = None;
        loop {
            match self.read_message(deadline)? {
                Message::AuthenticationOk => {}
                Message::AuthenticationCleartextPassword => {
                    self.write(|out| frontend::password_message(password, out))?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(login.address.user.as_bytes(), password, body.salt());
                    self.write(|out| frontend::password_message(hash.as_bytes(), out))?;
                }
                Message::AuthenticationSasl(_) => {
                    let channel = sasl::ChannelBinding::unsupported();
                    let started = sasl::ScramSha256::new(password, channel);
                    self.write(|out| {
                        frontend::sasl_initial_response(sasl::SCRAM_SHA_256, started.message(), out)
                    })?;
                    scram = Some(started);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let scram = scram.as_mut().ok_or_else(|| io::Error::other("unasked SASL"))?;
                    scram.update(body.data())?;
                    let message = scram.message().to_vec();
                    self.write(|out| frontend::sasl_response(&message, out))?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let scram = scram.as_mut().ok_or_else(|| io::Error::other("unasked SASL"))?;
                    scram.finish(body.data())?;
                }
                Message::BackendKeyData(body) => {
                    self.pid = u64::try_from(body.process_id()).unwrap_or_default();
                }
                Message::ErrorResponse(body) => {
                    let error = self.db_error(body.fields())?;
                    let kind = match error.code.as_str() {
                        "28P01" => io::ErrorKind::PermissionDenied,
                        _ => io::ErrorKind::Other,
                    };
                    return Err(io::Error::new(kind, error.to_string()));
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ParameterStatus(_) | Message::NoticeResponse(_) => {}
                _ => {
                    return Err(io::Error::other(
                        "it requires an authentication method that Isolde does not support",
                    ));
                }
            }
        }
    }

    /// The next message during the login.
    fn read_message(&mut self, deadline: Instant) -> io::Result<Message> {
        loop {
            if let Some(message) = self.next_message()? {
                return Ok(message);
            }
            await_login(self.stream.socket(), deadline)?;
            self.read_some()?;
        }
    }
}

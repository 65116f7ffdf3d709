//! The bytes between a client and a server: in clear, or by TLS. Nothing here
//! waits longer than the socket makes it, because replies are polled for.

use crate::connect::poll::{LOGIN_LIMIT, await_login, wait_readable};
use crate::connect::tls::Tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Error};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Stream {
    /// Connects, in clear. Whatever goes wrong, nobody is there to talk to.
    pub fn connect(host: &str, port: u16) -> io::Result<Stream> {
        let nobody = |why: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::ConnectionRefused, why.to_string())
        };
        let mut last = nobody(&"the host has no address");
        for address in (host, port).to_socket_addrs().map_err(|e| nobody(&e))? {
            match TcpStream::connect_timeout(&address, LOGIN_LIMIT) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    // A server that stands still stops reading, too.
                    socket.set_write_timeout(Some(LOGIN_LIMIT))?;
                    return Ok(Stream { socket, tls: None });
                }
                Err(error) => last = nobody(&error),
            }
        }
        Err(last)
    }

    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Goes over to TLS: all bytes from here on are encrypted.
    pub fn encrypt(&mut self, tls: &Tls, host: &str, deadline: Instant) -> io::Result<()> {
        // A name that no certificate can have matters only where it is compared.
        let name = match ServerName::try_from(host.to_string()) {
            Ok(name) => name,
            Err(_) => ServerName::from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        let mut connection = ClientConnection::new(Arc::clone(&tls.config), name)
            .map_err(|e| io::Error::other(format!("TLS: {e}")))?;
        connection.set_buffer_limit(None);
        while connection.is_handshaking() {
            send(&mut connection, &mut self.socket)?;
            if !connection.is_handshaking() {
                break;
            }
            await_login(&self.socket, deadline)?;
            if connection.read_tls(&mut self.socket)? == 0 {
                return Err(closed());
            }
            if let Err(error) = connection.process_new_packets() {
                // It should hear why.
                let _ = send(&mut connection, &mut self.socket);
                return Err(failed(&error, host));
            }
        }
        send(&mut connection, &mut self.socket)?;
        self.tls = Some(Box::new(connection));
        Ok(())
    }

    /// Whether [`Stream::read_into`] has something to read within `patience`.
    /// Nothing that has arrived is ever left inside of the encryption, so the
    /// socket tells.
    pub fn readable(&self, patience: Duration) -> io::Result<bool> {
        wait_readable(&self.socket, patience)
    }

    /// Reads once from the socket and hands on all that this brings, which may
    /// be nothing when it was half a record or one that is TLS's own. Answers
    /// how many bytes were handed on.
    pub fn read_into(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        let mut chunk = [0u8; 16384];
        let Some(tls) = &mut self.tls else {
            let count = self.socket.read(&mut chunk)?;
            take(&chunk[..count]);
            return if count == 0 { Err(closed()) } else { Ok(count) };
        };
        if tls.read_tls(&mut self.socket)? == 0 {
            return Err(closed());
        }
        tls.process_new_packets().map_err(|e| io::Error::other(format!("TLS: {e}")))?;
        let mut total = 0;
        loop {
            match tls.reader().read(&mut chunk) {
                // The server has said that it ends; what came before counts.
                Ok(0) if total == 0 => return Err(closed()),
                Ok(0) => return Ok(total),
                Ok(count) => {
                    take(&chunk[..count]);
                    total += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total),
                Err(error) => return Err(error),
            }
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return self.socket.write_all(bytes) };
        tls.writer().write_all(bytes)?;
        send(tls, &mut self.socket)
    }
}

fn send(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

fn failed(error: &Error, host: &str) -> io::Error {
    use rustls::CertificateError::*;
    let hint = match error {
        Error::InvalidCertificate(UnknownIssuer) => {
            " (nobody that is trusted has signed it; sslrootcert or ssl-ca names a file)"
        }
        Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            &format!(" (it is not the certificate of {host})")
        }
        _ => "",
    };
    io::Error::other(format!("TLS: {error}{hint}"))
}

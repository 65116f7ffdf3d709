//! The bytes between a client and a server, encrypted or not. Nothing here
//! blocks for longer than the socket does, because replies are polled for.

use crate::connect::poll::{LOGIN_LIMIT, wait_readable};
use crate::connect::tls::{self, Encryption, Tls};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A connection to a server.
pub struct Stream {
    socket: TcpStream,
    encryption: Option<Encryption>,
}

impl Stream {
    /// Connects, unencrypted. Any failure is reported as a refused connection:
    /// there is no server to talk to.
    pub fn connect(host: &str, port: u16) -> io::Result<Stream> {
        let refused = |reason: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::ConnectionRefused, reason.to_string())
        };
        let mut last = refused(&"the host has no address");
        for address in (host, port).to_socket_addrs().map_err(|e| refused(&e))? {
            match TcpStream::connect_timeout(&address, LOGIN_LIMIT) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    // A server that hangs stops reading, too.
                    socket.set_write_timeout(Some(LOGIN_LIMIT))?;
                    return Ok(Stream { socket, encryption: None });
                }
                Err(error) => last = refused(&error),
            }
        }
        Err(last)
    }

    /// A connection on which `input` has arrived and nothing will follow, and its
    /// other end, which must outlive the connection. The input must fit into the
    /// buffer of a socket. For fuzzing the wire clients.
    pub fn with_input(input: &[u8]) -> io::Result<(Stream, TcpStream)> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let socket = TcpStream::connect(listener.local_addr()?)?;
        let (mut peer, _) = listener.accept()?;
        peer.set_nonblocking(true)?;
        peer.write_all(input)?;
        peer.shutdown(Shutdown::Write)?;
        Ok((Stream { socket, encryption: None }, peer))
    }

    pub fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Switches to TLS: all bytes from here on are encrypted.
    pub fn encrypt(&mut self, tls: &Tls, host: &str, deadline: Instant) -> io::Result<()> {
        self.encryption = Some(Encryption::start(tls, host, &mut self.socket, deadline)?);
        Ok(())
    }

    /// Whether [`Stream::read_into`] has something to read within `patience`.
    /// All bytes that have arrived are decrypted at once, so polling the socket
    /// is enough.
    pub fn readable(&self, patience: Duration) -> io::Result<bool> {
        wait_readable(&self.socket, patience)
    }

    /// Reads once from the socket and passes on the bytes, of which there may
    /// be none on an encrypted connection. Returns their number.
    pub fn read_into(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        if let Some(encryption) = &mut self.encryption {
            return encryption.read_into(&mut self.socket, &mut take);
        }
        let mut chunk = [0u8; 16384];
        let count = self.socket.read(&mut chunk)?;
        take(&chunk[..count]);
        if count == 0 { Err(tls::closed()) } else { Ok(count) }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.encryption {
            Some(encryption) => encryption.write_all(&mut self.socket, bytes),
            None => self.socket.write_all(bytes),
        }
    }
}

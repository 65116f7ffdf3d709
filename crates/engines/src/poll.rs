//! Waits for a socket with a precision that a lock probe needs, and the limits
//! that both wire clients keep: no peer, however broken, may take all time or
//! all memory.

use crate::engine::EngineError;

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// How long a server may take to take a connection and to log it in.
pub const LOGIN_LIMIT: Duration = Duration::from_secs(10);

/// No reply to a test's statement is this long.
pub const LONGEST_REPLY: usize = 256 << 20;

/// What a failed login says of the server at `place`.
pub fn not_logged_in(place: &str, error: &io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::TimedOut => EngineError::Hangs(format!("{place}: {error}")),
        _ => EngineError::Unreachable(format!("{place}: {error}")),
    }
}

/// Waits until a server that logs us in has sent more.
pub fn await_login(stream: &TcpStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if !left.is_zero() && wait_readable(stream, left)? {
        return Ok(());
    }
    let text = format!("it has not logged us in within {LOGIN_LIMIT:?}");
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
}

/// Refuses a reply that is longer than any test's.
pub fn check_length(bytes: usize) -> io::Result<()> {
    if bytes <= LONGEST_REPLY {
        return Ok(());
    }
    let text = format!("its reply of {bytes} bytes or more is longer than Isolde takes");
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Whether something can be read (or the peer has closed) within `patience`.
pub fn wait_readable(stream: &TcpStream, patience: Duration) -> io::Result<bool> {
    let mut fd = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(patience.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(patience.subsec_nanos() as i32),
    };
    loop {
        // SAFETY: one descriptor that `stream` keeps open, a valid time, and
        // no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut fd, 1, &raw const time, std::ptr::null()) };
        if ready >= 0 {
            return Ok(ready > 0);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

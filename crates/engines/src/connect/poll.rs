//! Waits for a socket with a precision that a lock probe needs, and the limits
//! that both wire clients keep: no peer, however broken, may take all time or
//! all memory.

use crate::connect::tls::{Mode, Tls};
use crate::engine::EngineError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
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

/// An attempt to log in that another one, with or without encryption, may
/// better: there is a server, and it has neither hung nor refused the password.
pub fn may_try_again(error: &io::Error) -> bool {
    let final_ones = [
        io::ErrorKind::TimedOut,
        io::ErrorKind::PermissionDenied,
        // Nobody listens, however we would talk.
        io::ErrorKind::ConnectionRefused,
    ];
    !final_ones.contains(&error.kind())
}

/// Logs in as the mode of encryption says: `attempt` is told how.
pub fn by_mode<T>(
    tls: Option<&Tls>,
    attempt: impl Fn(Option<&Tls>) -> io::Result<T>,
) -> io::Result<T> {
    let (first, second) = match tls {
        Some(wanted) if wanted.mode == Mode::Allow => (None, Some(tls)),
        Some(wanted) if wanted.mode == Mode::Prefer => (tls, Some(None)),
        _ => (tls, None),
    };
    let error = match (attempt(first), second) {
        (Err(error), Some(second)) if may_try_again(&error) => match attempt(second) {
            Ok(made) => return Ok(made),
            Err(_) => error,
        },
        (outcome, _) => return outcome,
    };
    Err(error)
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
    let time = Timespec::try_from(patience).ok();
    loop {
        let mut socket = [PollFd::new(stream, PollFlags::IN)];
        match poll(&mut socket, time.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Which of these can be read (or have been closed) within `patience`: as soon
/// as one can, all that can are told.
pub fn which_readable(sockets: &[BorrowedFd<'_>], patience: Duration) -> io::Result<Vec<bool>> {
    let time = Timespec::try_from(patience).ok();
    let mut polled: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::from_borrowed_fd(*socket, PollFlags::IN)).collect();
    match poll(&mut polled, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {
            Ok(polled.iter().map(|socket| !socket.revents().is_empty()).collect())
        }
        Err(error) => Err(error.into()),
    }
}

//! Waits for a socket with the precision that polling for lock waits needs, and
//! the limits of both wire clients: no peer, however broken, may take unlimited
//! time or memory.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Time limit for connecting and for the login.
pub const LOGIN_LIMIT: Duration = Duration::from_secs(10);

/// The longest accepted reply; no test's statement needs more.
pub const LONGEST_REPLY: usize = 256 << 20;

/// Waits until the server has sent more during the login.
pub fn await_login(stream: &TcpStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if !left.is_zero() && wait_readable(stream, left)? {
        return Ok(());
    }
    let text = format!("the login has not completed within {LOGIN_LIMIT:?}");
    Err(io::Error::new(io::ErrorKind::TimedOut, text))
}

/// Refuses a reply that is longer than the limit.
pub fn check_length(bytes: usize) -> io::Result<()> {
    if bytes <= LONGEST_REPLY {
        return Ok(());
    }
    let text = format!("its reply of {bytes} bytes or more exceeds the limit");
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Whether the socket is readable (or closed by the peer) within `patience`.
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

/// Which of the sockets are readable (or closed) within `patience`. Returns as
/// soon as one is.
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

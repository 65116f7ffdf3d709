//! Waits for a socket with a precision that a lock probe needs.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

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

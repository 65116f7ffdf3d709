//! Logs in to a server as its encryption mode requires: which attempts are made,
//! and the error when all of them fail.

use crate::connect::tls::{Mode, Tls};
use crate::engine::EngineError;
use std::io;

/// The error for a failed login at `place`.
pub fn login_error(place: &str, error: &io::Error) -> EngineError {
    match error.kind() {
        io::ErrorKind::TimedOut => EngineError::Hangs(format!("{place}: {error}")),
        _ => EngineError::Unreachable(format!("{place}: {error}")),
    }
}

/// Whether a second attempt, with or without encryption, may succeed: there is
/// a server, and it has neither hung nor refused the password.
pub fn may_try_again(error: &io::Error) -> bool {
    let final_ones = [
        io::ErrorKind::TimedOut,
        io::ErrorKind::PermissionDenied,
        // No server listens, with or without encryption.
        io::ErrorKind::ConnectionRefused,
    ];
    !final_ones.contains(&error.kind())
}

/// Logs in as the encryption mode requires; `attempt` gets the encryption to
/// use.
pub fn connect_by_mode<T>(
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

//! Stands in for TLS in a build without it.

use super::{Mode, TlsOptions};
use crate::engine::{EngineError, EngineResult};
use std::convert::Infallible;
use std::io;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Instant;

const NO_TLS: &str = "this build has no TLS; rebuild with --features tls";

/// There is no value of this type: no connection of this build is encrypted.
#[derive(Clone)]
pub struct Tls {
    pub mode: Mode,
    never: Infallible,
}

impl Tls {
    /// None for the modes that accept an unencrypted connection, which is what
    /// the databases' own clients do in a build without TLS.
    pub fn new(options: &TlsOptions, _usual: Option<PathBuf>) -> EngineResult<Option<Tls>> {
        match options.effective_mode() {
            Mode::Disable | Mode::Allow | Mode::Prefer => Ok(None),
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => {
                Err(EngineError::Refused(NO_TLS.into()))
            }
        }
    }
}

/// There is no value of this type either.
pub struct Encryption(Infallible);

impl Encryption {
    pub fn start(tls: &Tls, _: &str, _: &mut TcpStream, _: Instant) -> io::Result<Encryption> {
        match tls.never {}
    }

    pub fn read_into(&mut self, _: &mut TcpStream, _: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        match self.0 {}
    }

    pub fn write_all(&mut self, _: &mut TcpStream, _: &[u8]) -> io::Result<()> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_require_encryption_are_refused_without_tls() {
        let open = |mode| Tls::new(&TlsOptions { mode, ..TlsOptions::default() }, None);
        assert!(open(None).is_ok_and(|tls| tls.is_none()));
        assert!(open(Some(Mode::Disable)).is_ok_and(|tls| tls.is_none()));
        let error = open(Some(Mode::Require)).err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some(NO_TLS));
    }
}

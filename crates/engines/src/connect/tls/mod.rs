//! Encryption of connections: PostgreSQL's `sslmode` and MySQL's `ssl-mode`.
//!
//! `rustls` implements it. A build without the feature `tls` has `disabled`
//! instead, which connects unencrypted and refuses the modes that require
//! encryption.

#[cfg(not(feature = "tls"))]
mod disabled;
#[cfg(feature = "tls")]
mod rustls;

#[cfg(not(feature = "tls"))]
pub use disabled::{Encryption, Tls};
#[cfg(feature = "tls")]
pub use rustls::{Encryption, Tls};

use std::io;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Disable,
    /// Encrypted only if the server refuses an unencrypted connection.
    Allow,
    /// Unencrypted only if the server has no encryption.
    #[default]
    Prefer,
    Require,
    /// The certificate must be signed by a trusted authority.
    VerifyCa,
    /// In addition, the certificate must be for this host.
    VerifyFull,
}

impl Mode {
    /// The names of the modes in PostgreSQL's `sslmode`.
    pub const POSTGRES: [(&'static str, Mode); 6] = [
        ("disable", Mode::Disable),
        ("allow", Mode::Allow),
        ("prefer", Mode::Prefer),
        ("require", Mode::Require),
        ("verify-ca", Mode::VerifyCa),
        ("verify-full", Mode::VerifyFull),
    ];
    /// The names of the modes in MySQL's `ssl-mode`.
    pub const MYSQL: [(&'static str, Mode); 5] = [
        ("DISABLED", Mode::Disable),
        ("PREFERRED", Mode::Prefer),
        ("REQUIRED", Mode::Require),
        ("VERIFY_CA", Mode::VerifyCa),
        ("VERIFY_IDENTITY", Mode::VerifyFull),
    ];
}

/// The encryption that a URL asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    pub mode: Option<Mode>,
    /// A file with the certificates of trusted authorities, or `system`.
    pub authorities: Option<String>,
    /// Files with the client's own certificate and its key.
    pub certificate: Option<String>,
    pub key: Option<String>,
}

impl TlsOptions {
    /// The mode that is in effect. As in the databases' own clients, naming
    /// authorities means that the certificate is verified.
    fn effective_mode(&self) -> Mode {
        let verifies = matches!(self.mode, None | Some(Mode::Require));
        match self.authorities.is_some() && verifies {
            true => Mode::VerifyCa,
            false => self.mode.unwrap_or_default(),
        }
    }
}

/// The error of a connection that the server has closed.
pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

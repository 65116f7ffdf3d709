//! TLS by rustls: the configuration, the verification of certificates, and the
//! encrypted connection itself.

use super::{Mode, TlsOptions, closed};
use crate::connect::poll::await_login;
use crate::engine::{EngineError, EngineResult};
use ::rustls::client::WebPkiServerVerifier;
use ::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use ::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use ::rustls::pki_types::pem::PemObject;
use ::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use ::rustls::server::ParsedCertificate;
use ::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A configuration that is ready to connect with.
#[derive(Clone)]
pub struct Tls {
    pub mode: Mode,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// None for an unencrypted connection. `usual` is the file of authorities
    /// that the database's own clients use by default.
    pub fn new(options: &TlsOptions, usual: Option<PathBuf>) -> EngineResult<Option<Tls>> {
        let refused = |what: String| EngineError::Refused(format!("TLS: {what}"));
        let mode = options.effective_mode();
        if mode == Mode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        let roots = match mode {
            Mode::VerifyCa | Mode::VerifyFull => {
                authorities(options.authorities.as_deref(), usual).map_err(refused)?
            }
            _ => Vec::new(),
        };
        let verifier = Verifier::new(mode, roots, &provider).map_err(refused)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| refused(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&options.certificate, &options.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates(Path::new(certificate)).map_err(refused)?;
                let private = PrivateKeyDer::from_pem_file(key)
                    .map_err(|e| refused(format!("cannot read the key {key}: {e}")))?;
                builder.with_client_auth_cert(chain, private).map_err(|e| refused(e.to_string()))?
            }
            _ => {
                return Err(refused(
                    "a client certificate needs its key, and a key its certificate".into(),
                ));
            }
        };
        Ok(Some(Tls { mode, config: Arc::new(config) }))
    }
}

/// The encrypted side of a connection, over a socket that it does not own.
pub struct Encryption(Box<ClientConnection>);

impl Encryption {
    /// Performs the handshake. All bytes after it are encrypted.
    pub fn start(
        tls: &Tls,
        host: &str,
        socket: &mut TcpStream,
        deadline: Instant,
    ) -> io::Result<Encryption> {
        // A name that no certificate can contain matters only where names are
        // compared, and there the comparison fails.
        let name = match ServerName::try_from(host.to_string()) {
            Ok(name) => name,
            Err(_) => ServerName::from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        let mut connection = ClientConnection::new(Arc::clone(&tls.config), name)
            .map_err(|e| io::Error::other(format!("TLS: {e}")))?;
        connection.set_buffer_limit(None);
        while connection.is_handshaking() {
            send(&mut connection, socket)?;
            if !connection.is_handshaking() {
                break;
            }
            await_login(socket, deadline)?;
            if connection.read_tls(socket)? == 0 {
                return Err(closed());
            }
            if let Err(error) = connection.process_new_packets() {
                // Sends the server the alert with the reason.
                let _ = send(&mut connection, socket);
                return Err(failed(&error, host));
            }
        }
        send(&mut connection, socket)?;
        Ok(Encryption(Box::new(connection)))
    }

    /// Reads once from the socket and passes on all decrypted bytes. There may
    /// be none, for half a record or a record of TLS itself. Returns their
    /// number.
    pub fn read_into(
        &mut self,
        socket: &mut TcpStream,
        take: &mut dyn FnMut(&[u8]),
    ) -> io::Result<usize> {
        if self.0.read_tls(socket)? == 0 {
            return Err(closed());
        }
        self.0.process_new_packets().map_err(|e| io::Error::other(format!("TLS: {e}")))?;
        let mut chunk = [0u8; 16384];
        let mut total = 0;
        loop {
            match self.0.reader().read(&mut chunk) {
                // The server has announced the end; the bytes before it count.
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

    pub fn write_all(&mut self, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)?;
        send(&mut self.0, socket)
    }
}

fn send(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}

fn failed(error: &Error, host: &str) -> io::Error {
    use ::rustls::CertificateError::*;
    let hint = match error {
        Error::InvalidCertificate(UnknownIssuer) => {
            " (no trusted authority has signed it; sslrootcert or ssl-ca names a file)"
        }
        Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            &format!(" (it is not the certificate of {host})")
        }
        _ => "",
    };
    io::Error::other(format!("TLS: {error}{hint}"))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot read {}: {e}", file.display());
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|e| failed(&e))?.collect();
    let found = found.map_err(|e| failed(&e))?;
    match found.is_empty() {
        true => Err(failed(&"it contains no certificate")),
        false => Ok(found),
    }
}

fn authorities(
    named: Option<&str>,
    usual: Option<PathBuf>,
) -> Result<Vec<CertificateDer<'static>>, String> {
    match (named, usual.filter(|file| file.exists())) {
        (Some(file), _) if file != "system" => certificates(Path::new(file)),
        (None, Some(file)) => certificates(&file),
        _ => {
            let found = rustls_native_certs::load_native_certs();
            match found.certs.is_empty() {
                true => Err(
                    "this machine has no list of trusted authorities; name a file of certificates"
                        .into(),
                ),
                false => Ok(found.certs),
            }
        }
    }
}

#[derive(Debug)]
struct Verifier {
    mode: Mode,
    roots: Vec<CertificateDer<'static>>,
    /// None if there are no authorities to verify against.
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(
        mode: Mode,
        roots: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let chain = match store.is_empty() {
            true => None,
            false => {
                let provider = Arc::clone(provider);
                let built = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider);
                Some(built.build().map_err(|e| e.to_string())?)
            }
        };
        Ok(Verifier { mode, roots, chain, provider: Arc::clone(provider) })
    }

    fn verifies(&self) -> bool {
        self.mode >= Mode::VerifyCa
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.verifies() {
            return Ok(ServerCertVerified::assertion());
        }
        // A self-signed certificate that is itself among the authorities.
        if self.roots.iter().any(|root| root.as_ref() == certificate.as_ref()) {
            if self.mode == Mode::VerifyFull {
                ::rustls::client::verify_server_name(
                    &ParsedCertificate::try_from(certificate)?,
                    name,
                )?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let Some(chain) = &self.chain else {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        match chain.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is checked last, so that the chain is valid here.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.mode == Mode::VerifyCa => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !self.verifies() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !self.verifies() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

//! Whether a connection is encrypted, and whom it trusts: PostgreSQL's
//! `sslmode` and MySQL's `ssl-mode`, by rustls.

use crate::engine::{EngineError, EngineResult};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Disable,
    /// Encrypted only if the server refuses a connection in clear.
    Allow,
    /// In clear only if the server has no encryption.
    #[default]
    Prefer,
    Require,
    /// The certificate was signed by an authority that is trusted.
    VerifyCa,
    /// And it is this host's.
    VerifyFull,
}

impl Mode {
    /// Names as PostgreSQL and as MySQL have them.
    pub const POSTGRES: [(&'static str, Mode); 6] = [
        ("disable", Mode::Disable),
        ("allow", Mode::Allow),
        ("prefer", Mode::Prefer),
        ("require", Mode::Require),
        ("verify-ca", Mode::VerifyCa),
        ("verify-full", Mode::VerifyFull),
    ];
    pub const MYSQL: [(&'static str, Mode); 5] = [
        ("DISABLED", Mode::Disable),
        ("PREFERRED", Mode::Prefer),
        ("REQUIRED", Mode::Require),
        ("VERIFY_CA", Mode::VerifyCa),
        ("VERIFY_IDENTITY", Mode::VerifyFull),
    ];
}

/// What a URL says of encryption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub mode: Option<Mode>,
    /// A file with the certificates of trusted authorities, or `system`.
    pub authorities: Option<String>,
    /// Files with the client's own certificate and its key.
    pub certificate: Option<String>,
    pub key: Option<String>,
}

/// The same, ready to connect.
#[derive(Clone)]
pub struct Tls {
    pub mode: Mode,
    pub config: Arc<ClientConfig>,
}

impl Tls {
    /// None where the connection shall be in clear. `usual` is the file of
    /// authorities that the database's own clients take without being told.
    pub fn new(wish: &Wish, usual: Option<PathBuf>) -> EngineResult<Option<Tls>> {
        let refused = |what: String| EngineError::Refused(format!("TLS: {what}"));
        let mut mode = wish.mode.unwrap_or_default();
        if mode == Mode::Disable {
            return Ok(None);
        }
        // As the databases' own clients do: authorities are not named for nothing.
        if wish.authorities.is_some() && matches!(wish.mode, None | Some(Mode::Require)) {
            mode = Mode::VerifyCa;
        }
        let provider = Arc::new(ring::default_provider());
        let roots = match mode {
            Mode::VerifyCa | Mode::VerifyFull => {
                authorities(wish.authorities.as_deref(), usual).map_err(refused)?
            }
            _ => Vec::new(),
        };
        let verifier = Verifier::new(mode, roots, &provider).map_err(refused)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| refused(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&wish.certificate, &wish.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let chain = certificates(Path::new(certificate)).map_err(refused)?;
                let private = PrivateKeyDer::from_pem_file(key)
                    .map_err(|e| refused(format!("cannot read the key {key}: {e}")))?;
                builder.with_client_auth_cert(chain, private).map_err(|e| refused(e.to_string()))?
            }
            _ => {
                return Err(refused(
                    "a certificate needs its key, and a key its certificate".into(),
                ));
            }
        };
        Ok(Some(Tls { mode, config: Arc::new(config) }))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |e: &dyn std::fmt::Display| format!("cannot read {}: {e}", file.display());
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|e| failed(&e))?.collect();
    let found = found.map_err(|e| failed(&e))?;
    match found.is_empty() {
        true => Err(failed(&"there is no certificate in it")),
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
                true => Err("this machine has no list of trusted authorities; name a file".into()),
                false => Ok(found.certs),
            }
        }
    }
}

#[derive(Debug)]
struct Verifier {
    mode: Mode,
    roots: Vec<CertificateDer<'static>>,
    /// None where nothing is verified.
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
        // A server that signed its own certificate is trusted by that one.
        if self.roots.iter().any(|root| root.as_ref() == certificate.as_ref()) {
            if self.mode == Mode::VerifyFull {
                rustls::client::verify_server_name(
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
            // The name is looked at last.
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

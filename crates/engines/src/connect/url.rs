//! `scheme://user:password@host:port/database`, parsed here so that the
//! password stays out of everything that is printed or written.

use crate::connect::tls::TlsOptions;
use crate::connect::url_parameters;
use crate::secret::Secret;
use std::fmt;

#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub scheme: String,
    pub user: Option<String>,
    pub password: Option<Secret>,
    /// A password that the user gave apart from the URL.
    pub separate_password: Option<Secret>,
    pub host: String,
    pub port: Option<u16>,
    /// The database to log in to; Isolde works in one of its own.
    pub database: Option<String>,
    /// Whether the connection is encrypted, and which authorities it trusts.
    pub tls: TlsOptions,
}

/// The text is not shown: it may be the rest of a password.
const NOT_A_PORT: &str = "the port is not a number; in a password write / as %2F, # as %23, \
                          ? as %3F and @ as %40";

const NOT_A_FRAGMENT: &str = "a URL of a database has no #; in a password write it as %23";

impl ServerUrl {
    pub fn parse(text: &str) -> Result<ServerUrl, String> {
        let (scheme, rest) = text.split_once("://").ok_or("a URL needs a scheme and ://")?;
        let scheme = scheme.to_ascii_lowercase();
        if rest.contains('#') {
            return Err(NOT_A_FRAGMENT.into());
        }
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // The last @: a password may contain one.
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (user, password) = match login.map(|l| l.split_once(':').unwrap_or((l, ""))) {
            Some((user, password)) => (some_text(user)?, some_text(password)?.map(Secret::new)),
            None => (None, None),
        };
        let (host, port) = host_and_port(place)?;
        let database = some_text(path.trim_end_matches('/'))?;
        let tls = url_parameters::parse(&scheme, parameters, percent_decode)?;
        let separate_password = None;
        Ok(ServerUrl { scheme, user, password, separate_password, host, port, database, tls })
    }

    /// The password that was given for it, if any.
    pub fn secret(&self) -> Option<Secret> {
        self.password.clone().or_else(|| self.separate_password.clone())
    }
}

/// A message of another program about the user's input, with passwords of URLs
/// in it hidden.
pub fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, behind) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = behind.find(|c: char| c.is_whitespace() || "'\"`".contains(c));
        let (url, tail) = behind.split_at(end.unwrap_or(behind.len()));
        match url
            .rsplit_once('@')
            .and_then(|(login, place)| Some((login.split_once(':')?.0, place)))
        {
            Some((user, place)) => shown.push_str(&format!("{user}:***@{place}")),
            None => shown.push_str(url),
        }
        rest = tail;
    }
    shown + rest
}

fn host_and_port(place: &str) -> Result<(String, Option<u16>), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|p| p.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None | Some("") => None,
        Some(p) => Some(p.parse().map_err(|_| NOT_A_PORT.to_string())?),
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok((host.into(), port))
}

fn some_text(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() { Ok(None) } else { percent_decode(text).map(Some) }
}

fn percent_decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok());
        let byte = code.and_then(|h| u8::from_str_radix(h, 16).ok());
        bytes.push(byte.ok_or("a % in a URL must be followed by two hex digits")?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| "the URL is not UTF-8".into())
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme)?;
        if let Some(user) = &self.user {
            let hidden = if self.password.is_some() { ":***" } else { "" };
            write!(f, "{user}{hidden}@")?;
        }
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(database) = &self.database {
            write!(f, "/{database}")?;
        }
        f.write_str(&url_parameters::show(&self.scheme, &self.tls))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_read_but_never_shown() {
        let url = ServerUrl::parse("postgres://me:s%40cr@et@db.example:5433/app").unwrap();
        assert_eq!(url.password, Some(Secret::new("s@cr@et")));
        assert_eq!((url.host.as_str(), url.port), ("db.example", Some(5433)));
        for shown in [url.to_string(), format!("{url:?}")] {
            assert!(!shown.contains("cr@et") && shown.contains("me:***@db.example:5433/app"));
        }
    }

    #[test]
    fn passwords_of_urls_in_a_text_are_hidden() {
        let text = "unexpected argument 'mysql://me:s3c/r@et@h:1/d?x=1' and pg://h:1/ or x://a@b";
        let shown = "unexpected argument 'mysql://me:***@h:1/d?x=1' and pg://h:1/ or x://a@b";
        assert_eq!(without_passwords(text), shown);
        assert_eq!(without_passwords("no url: a@b:c"), "no url: a@b:c");
    }

    #[test]
    fn url_parameters_select_the_encryption_mode() {
        use crate::connect::tls::Mode;
        let pg = ServerUrl::parse("postgres://h/d?sslmode=verify-full&sslrootcert=/a%20b").unwrap();
        assert_eq!(pg.tls.mode, Some(Mode::VerifyFull));
        assert_eq!(pg.tls.authorities.as_deref(), Some("/a b"));
        assert_eq!(pg.to_string(), "postgres://h/d?sslmode=verify-full&sslrootcert=/a b");
        for name in ["ssl-mode", "sslMode", "ssl_mode", "sslmode"] {
            let url = ServerUrl::parse(&format!("mysql://h?{name}=verify_identity")).unwrap();
            assert_eq!(url.tls.mode, Some(Mode::VerifyFull), "{name}");
        }
        assert_eq!(ServerUrl::parse("mysql://h/").unwrap().tls, TlsOptions::default());
    }

    #[test]
    fn an_unknown_url_parameter_is_refused() {
        let said = ServerUrl::parse("postgres://h/?connect_timeout=3").unwrap_err();
        assert!(said.contains("`connect_timeout`") && said.contains("sslrootcert"), "{said}");
        let said = ServerUrl::parse("mysql://h/?ssl-mode=maybe").unwrap_err();
        assert!(said.contains("VERIFY_IDENTITY"), "{said}");
        let said = ServerUrl::parse("mysql://u:pa?s3cret@h/").unwrap_err();
        assert!(said.contains("%3F") && !said.contains("s3cret"), "{said}");
        assert!(ServerUrl::parse("mysql://u:pa#s3cret@h/").unwrap_err().contains("%23"));
    }

    #[test]
    fn omitted_parts_of_a_url_have_defaults() {
        let url = ServerUrl::parse("mysql://").unwrap();
        assert_eq!(url.host, "127.0.0.1");
        assert_eq!((url.user, url.port, url.database), (None, None, None));
        assert_eq!(ServerUrl::parse("mysql://[::1]:3307").unwrap().host, "::1");
    }

    #[test]
    fn an_invalid_url_is_refused_with_a_reason() {
        assert!(ServerUrl::parse("postgres:/x").is_err());
        let cut = ServerUrl::parse("postgres://me:s3cr/et@h/").unwrap_err();
        assert!(cut.contains("not a number") && !cut.contains("s3cr"));
        assert!(ServerUrl::parse("postgres://u:%zz@h/").is_err());
    }
}

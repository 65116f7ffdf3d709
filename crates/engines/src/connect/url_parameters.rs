//! The parameters after the `?` of a URL. Only those that Isolde uses are
//! accepted: an ignored parameter may be the one that mattered.

use crate::connect::tls::{Mode, TlsOptions};

struct Names {
    mode: &'static str,
    authorities: &'static str,
    certificate: &'static str,
    key: &'static str,
    modes: &'static [(&'static str, Mode)],
}

const POSTGRES: Names = Names {
    mode: "sslmode",
    authorities: "sslrootcert",
    certificate: "sslcert",
    key: "sslkey",
    modes: &Mode::POSTGRES,
};

const MYSQL: Names = Names {
    mode: "ssl-mode",
    authorities: "ssl-ca",
    certificate: "ssl-cert",
    key: "ssl-key",
    modes: &Mode::MYSQL,
};

fn names(scheme: &str) -> &'static Names {
    let postgres = scheme.starts_with("postgres") || scheme.starts_with("cockroach");
    if postgres { &POSTGRES } else { &MYSQL }
}

/// `sslMode` and `ssl_mode` are `ssl-mode`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Parses the parameters; `text` is not decoded yet, which `decode` does.
pub fn parse(
    scheme: &str,
    text: &str,
    decode: impl Fn(&str) -> Result<String, String>,
) -> Result<TlsOptions, String> {
    let known = names(scheme);
    let mut options = TlsOptions::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let all = [known.mode, known.authorities, known.certificate, known.key];
        let Some(found) = all.iter().position(|k| plain(k) == plain(name)) else {
            // Only a name that cannot be the rest of a password is shown.
            let harmless = !text.contains('@')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            let name = if harmless { format!("`{name}`") } else { "the text after the ?".into() };
            return Err(format!(
                "{name} is not a supported parameter of a {scheme} URL; supported are {} \
                 (a ? in a password is written %3F)",
                all.join(", ")
            ));
        };
        let value = decode(value)?;
        match found {
            0 => options.mode = Some(mode(known, &value)?),
            1 => options.authorities = Some(value),
            2 => options.certificate = Some(value),
            _ => options.key = Some(value),
        }
    }
    Ok(options)
}

fn mode(known: &Names, value: &str) -> Result<Mode, String> {
    let found = known.modes.iter().find(|(name, _)| plain(name) == plain(value));
    found.map(|(_, mode)| *mode).ok_or_else(|| {
        let all: Vec<&str> = known.modes.iter().map(|(name, _)| *name).collect();
        format!("`{value}` is not a valid {}; use one of {}", known.mode, all.join(", "))
    })
}

/// The parameters as they are written in a URL, with the `?`.
pub fn show(scheme: &str, options: &TlsOptions) -> String {
    let known = names(scheme);
    let mode = options.mode.and_then(|m| known.modes.iter().find(|(_, mode)| *mode == m));
    let parts = [
        (known.mode, mode.map(|(name, _)| name.to_string())),
        (known.authorities, options.authorities.clone()),
        (known.certificate, options.certificate.clone()),
        (known.key, options.key.clone()),
    ];
    let shown: Vec<String> =
        parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
    if shown.is_empty() { String::new() } else { format!("?{}", shown.join("&")) }
}

//! What stands behind the `?` of a URL. Only what Isolde heeds is taken: a
//! parameter that is passed by in silence may be the one that mattered.

use crate::connect::tls::{Mode, Wish};

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

/// `text` is not decoded yet; `decode` does it.
pub fn parse(
    scheme: &str,
    text: &str,
    decode: impl Fn(&str) -> Result<String, String>,
) -> Result<Wish, String> {
    let known = names(scheme);
    let mut wish = Wish::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let all = [known.mode, known.authorities, known.certificate, known.key];
        let Some(found) = all.iter().position(|k| plain(k) == plain(name)) else {
            // Only what cannot be the rest of a password is shown.
            let harmless = !text.contains('@')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
            let name =
                if harmless { format!("`{name}`") } else { "what stands behind the ?".into() };
            return Err(format!(
                "{name} is no parameter that Isolde knows in a {scheme} URL; it knows {} \
                 (a ? in a password is written %3F)",
                all.join(", ")
            ));
        };
        let value = decode(value)?;
        match found {
            0 => wish.mode = Some(mode(known, &value)?),
            1 => wish.authorities = Some(value),
            2 => wish.certificate = Some(value),
            _ => wish.key = Some(value),
        }
    }
    Ok(wish)
}

fn mode(known: &Names, value: &str) -> Result<Mode, String> {
    let found = known.modes.iter().find(|(name, _)| plain(name) == plain(value));
    found.map(|(_, mode)| *mode).ok_or_else(|| {
        let all: Vec<&str> = known.modes.iter().map(|(name, _)| *name).collect();
        format!("`{value}` is no {}; say one of {}", known.mode, all.join(", "))
    })
}

/// As it stands in a URL again, with its `?`.
pub fn show(scheme: &str, wish: &Wish) -> String {
    let known = names(scheme);
    let mode = wish.mode.and_then(|m| known.modes.iter().find(|(_, mode)| *mode == m));
    let parts = [
        (known.mode, mode.map(|(name, _)| name.to_string())),
        (known.authorities, wish.authorities.clone()),
        (known.certificate, wish.certificate.clone()),
        (known.key, wish.key.clone()),
    ];
    let shown: Vec<String> =
        parts.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
    if shown.is_empty() { String::new() } else { format!("?{}", shown.join("&")) }
}

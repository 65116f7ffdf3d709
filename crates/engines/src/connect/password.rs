//! The password for a user's server whose URL has none: from `--password-file`,
//! the environment, or PostgreSQL's password file, in this order, as in the
//! databases' own clients.

use crate::engine::EngineError;
use crate::secret::Secret;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PasswordLookup {
    pub password: Option<Secret>,
    /// Why a source was skipped, for the message of a failed login.
    pub remark: Option<String>,
}

impl PasswordLookup {
    /// Adds the remark to the error of a failed login.
    pub fn remark_on(&self, error: EngineError) -> EngineError {
        match (&self.remark, error) {
            (Some(remark), EngineError::Unreachable(text)) => {
                EngineError::Unreachable(format!("{text} ({remark})"))
            }
            (_, error) => error,
        }
    }
}

impl From<Secret> for PasswordLookup {
    fn from(password: Secret) -> PasswordLookup {
        Some(password).into()
    }
}

impl From<Option<Secret>> for PasswordLookup {
    fn from(password: Option<Secret>) -> PasswordLookup {
        PasswordLookup { password, remark: None }
    }
}

/// The key by which a line of PostgreSQL's password file is found.
pub struct PgpassKey<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

pub fn for_postgres(place: &PgpassKey<'_>) -> PasswordLookup {
    match variable("PGPASSWORD") {
        Some(password) => Some(Secret::new(password)).into(),
        None => match password_file() {
            Some(file) => from_password_file(&file, place),
            None => PasswordLookup::default(),
        },
    }
}

pub fn for_mysql() -> PasswordLookup {
    variable("MYSQL_PWD").map(Secret::new).into()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn password_file() -> Option<PathBuf> {
    let named = variable("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| std::env::home_dir().map(|home| home.join(".pgpass")))
}

fn from_password_file(file: &Path, place: &PgpassKey<'_>) -> PasswordLookup {
    let Ok(about) = fs::metadata(file) else { return PasswordLookup::default() };
    let passed_by = |why: &str| PasswordLookup {
        password: None,
        remark: Some(format!("{} is not used: {why}", file.display())),
    };
    if !about.is_file() {
        return passed_by("it is not a regular file");
    }
    if about.permissions().mode() & 0o077 != 0 {
        return passed_by("others may read it (chmod 600)");
    }
    match fs::read_to_string(file) {
        Ok(text) => look_up(&text, place).into(),
        Err(error) => passed_by(&error.to_string()),
    }
}

/// `host:port:database:user:password`, where each of the first four may be `*`.
/// The first line that matches counts.
fn look_up(text: &str, place: &PgpassKey<'_>) -> Option<Secret> {
    let wanted =
        [place.host, &place.port.to_string(), place.database, place.user].map(String::from);
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, keys) = fields.split_last().filter(|_| fields.len() == 5)?;
        let fits = keys.iter().zip(&wanted).all(|(key, wanted)| key == "*" || key == wanted);
        fits.then(|| Secret::new(password.clone()))
    })
}

/// Splits a line at its colons; a backslash escapes the next character.
/// Everything after the fourth colon is the password, including colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let count = fields.len();
        let last = &mut fields[count - 1];
        match c {
            '\\' => last.extend(characters.next()),
            ':' if count < 5 => fields.push(String::new()),
            c => last.push(c),
        }
    }
    fields
}

/// The first line of a file that contains nothing but a password.
pub fn from_file(file: &Path) -> Result<Secret, String> {
    let failed = |e: &dyn std::fmt::Display| {
        format!("cannot read the password file {}: {e}", file.display())
    };
    let text = fs::read_to_string(file).map_err(|e| failed(&e))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line)),
        _ => Err(failed(&"its first line is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: PgpassKey<'_> =
        PgpassKey { host: "db.example", port: 5433, database: "app", user: "me" };

    #[test]
    fn the_first_matching_pgpass_line_counts() {
        let text = "# db.example:5433:app:me:comment\n\
                    other:*:*:*:no\ndb.example:5432:*:me:no\ndb.example:5433:app:you:no\n\
                    too:few:fields\n*:5433:*:me:pa\\:ss\\\\wo:rd\n*:*:*:*:late\n";
        assert_eq!(look_up(text, &PLACE), Some(Secret::new("pa:ss\\wo:rd")));
        assert_eq!(look_up("a\\:b:1:d:u:p\n", &PLACE), None);
        let colon = PgpassKey { host: "a:b", port: 1, database: "d", user: "u" };
        assert_eq!(look_up("a\\:b:1:d:u:p\n", &colon), Some(Secret::new("p")));
    }

    #[test]
    fn a_pgpass_file_that_others_can_read_is_skipped_with_a_remark() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "*:*:*:*:word\n").unwrap();
        let mode = |mode| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            from_password_file(file.path(), &PLACE)
        };
        assert_eq!(mode(0o600).password, Some(Secret::new("word")));
        for open in [0o640, 0o604, 0o644] {
            let found = mode(open);
            assert_eq!(found.password, None);
            assert!(found.remark.unwrap().contains("chmod 600"));
        }
        assert_eq!(from_password_file(Path::new("/nowhere"), &PLACE), PasswordLookup::default());
    }

    #[test]
    fn a_file_with_nothing_but_a_password_gives_its_first_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "pa ss:wo#rd\nmore\n").unwrap();
        assert_eq!(from_file(file.path()), Ok(Secret::new("pa ss:wo#rd")));
        fs::write(file.path(), "\n").unwrap();
        assert!(from_file(file.path()).unwrap_err().contains("empty"));
        assert!(from_file(Path::new("/nowhere")).unwrap_err().contains("/nowhere"));
    }
}

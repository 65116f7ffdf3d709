//! The command that connects a database's own client to Isolde's database. The
//! password is never among its arguments, which process lists show: it is
//! passed in the client's environment.

use crate::engine::Engine;
use crate::secret::Secret;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCommand {
    pub program: String,
    pub arguments: Vec<String>,
    /// The package to install when the program is missing.
    pub package: &'static str,
    /// The environment variable for the client's password, and the password.
    pub password: Option<(&'static str, Secret)>,
    /// Isolde has generated the password, so the line to copy may contain it.
    pub shows_password: bool,
}

impl ClientCommand {
    /// None for engines that no client program can reach.
    pub fn of(engine: &dyn Engine) -> Option<ClientCommand> {
        let family = engine.info().engine.split('+').next().unwrap_or_default().to_string();
        if let Some(file) = engine.database_file() {
            return Some(ClientCommand {
                program: "sqlite3".into(),
                arguments: vec!["-box".into(), file.display().to_string()],
                package: "sqlite3",
                password: None,
                shows_password: false,
            });
        }
        let place = engine.client()?;
        let port = place.port.to_string();
        let shows_password = place.private;
        let by = |variable: &'static str| place.password.clone().map(|p| (variable, p));
        if matches!(family.as_str(), "postgres" | "cockroach") {
            let arguments = ["-X", "-h", &place.host, "-p", &port, "-U", &place.user];
            let mut arguments: Vec<String> = arguments.map(String::from).into();
            arguments.push(place.database.clone());
            return Some(ClientCommand {
                program: "psql".into(),
                arguments,
                package: "postgresql-client",
                password: by("PGPASSWORD"),
                shows_password,
            });
        }
        // Each client works with the other's server; the server's own is
        // preferred.
        let names = if family == "mariadb" { ["mariadb", "mysql"] } else { ["mysql", "mariadb"] };
        let program = names.iter().find(|n| on_path(n).is_some()).unwrap_or(&names[0]);
        let arguments =
            ["--no-defaults", "-h", &place.host, "-P", &port, "-u", &place.user, &place.database];
        Some(ClientCommand {
            program: (*program).into(),
            arguments: arguments.map(String::from).into(),
            package: if family == "mariadb" { "mariadb-client" } else { "mysql-client" },
            password: by("MYSQL_PWD"),
            shows_password,
        })
    }

    /// The same client, with a session's name as its prompt.
    pub fn named(&self, session: &str) -> ClientCommand {
        let mut named = self.clone();
        let prompt = match self.program.as_str() {
            "psql" => vec![
                format!("--set=PROMPT1={session}%x> "),
                format!("--set=PROMPT2={session}...> "),
            ],
            "sqlite3" => {
                // With concurrent sessions it should wait for a lock, as a
                // server would.
                let prompt = format!(".prompt \"{session}> \" \"{session}...> \"");
                vec!["-cmd".into(), prompt, "-cmd".into(), ".timeout 600000".into()]
            }
            _ => vec![format!("--prompt={session}> ")],
        };
        // --no-defaults must be the first argument, and the database the last.
        let at = usize::from(self.arguments.first().is_some_and(|a| a.starts_with('-')));
        named.arguments.splice(at..at, prompt);
        named
    }

    pub fn is_installed(&self) -> bool {
        on_path(&self.program).is_some()
    }

    pub fn missing(&self) -> String {
        format!("the client `{}` is not installed here (package {})", self.program, self.package)
    }

    /// A line to copy into a shell. If the password may be shown, it precedes
    /// the program, so that it is set in the program's environment.
    pub fn line(&self) -> String {
        match &self.password {
            Some((variable, password)) if self.shows_password => {
                format!("{variable}={} {}", quoted(password.reveal()), self.text())
            }
            _ => self.text(),
        }
    }

    /// Program and arguments, quoted for a shell.
    pub fn text(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(|w| quoted(w)).collect::<Vec<_>>().join(" ")
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("-h"), "-h");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_sessions_prompt_goes_before_the_database() {
        let command = ClientCommand {
            program: "mariadb".into(),
            arguments: vec!["--no-defaults".into(), "-h".into(), "h".into(), "isolde".into()],
            package: "mariadb-client",
            password: Some(("MYSQL_PWD", Secret::new("it's"))),
            shows_password: true,
        };
        let named = command.named("s1");
        assert_eq!(named.text(), "mariadb --no-defaults '--prompt=s1> ' -h h isolde");
        assert_eq!(named.line(), format!(r"MYSQL_PWD='it'\''s' {}", named.text()));
        let users = ClientCommand { shows_password: false, ..named };
        assert_eq!(users.line(), users.text());
    }
}

//! Targets that a user can name on the command line, and how each becomes an
//! engine.
//!
//! What an engine is stands in the catalogue; an entry in [`ENGINES`] says how it
//! is started or reached.

use crate::connect::url::ServerUrl;
use crate::driver::shipped;
use crate::driver::{DriverCommand, DriverEngine};
use crate::engine::{Engine, EngineError, EngineResult};
use crate::fetch::install::Cache;
use crate::mysql::{self, dolt, tidb};
pub use crate::named_engine::NamedEngine;
use crate::postgres::{self, cockroach};
use crate::secret::Secret;
use crate::server::abandoned::AdminConnection;
use crate::server::via::Runtime;
use crate::sqlite;
use isolde_catalog::{EngineDescription, engines};
use std::fmt;
use std::path::Path;

type Opened = EngineResult<Box<dyn Engine>>;
type AdminResult = EngineResult<Box<dyn AdminConnection>>;

/// An engine that a user can name.
pub struct Entry {
    pub engine: &'static EngineDescription,
    pub about: &'static str,
    open: fn(&NamedEngine, &Cache) -> Opened,
    /// Connects to a user's server; none for engines without a server.
    open_url: Option<fn(&ServerUrl, &str) -> Opened>,
    /// Logs in to a user's server to list and drop databases.
    admin: Option<fn(&ServerUrl) -> AdminResult>,
}

pub static ENGINES: &[Entry] = &[
    Entry {
        engine: &engines::sqlite::DESCRIPTION,
        about: "in process, always available",
        open: open_sqlite,
        open_url: None,
        admin: None,
    },
    Entry {
        engine: &engines::postgres::DESCRIPTION,
        about: "private server",
        open: postgres::open_private,
        open_url: Some(postgres::open_url),
        admin: Some(postgres::admin),
    },
    Entry {
        engine: &engines::mariadb::DESCRIPTION,
        about: "private server",
        open: mysql::open_mariadb,
        open_url: Some(mysql::open_url),
        admin: Some(mysql::admin),
    },
    Entry {
        engine: &engines::mysql::DESCRIPTION,
        about: "private server",
        open: mysql::open_mysql,
        open_url: Some(mysql::open_url),
        admin: Some(mysql::admin),
    },
    Entry {
        engine: &engines::tidb::DESCRIPTION,
        about: "private server, embedded store",
        open: tidb::open_private,
        open_url: Some(tidb::open_url),
        admin: Some(mysql::tidb_admin),
    },
    Entry {
        engine: &engines::dolt::DESCRIPTION,
        about: "private server",
        open: dolt::open_private,
        open_url: Some(dolt::open_url),
        admin: Some(mysql::admin),
    },
    Entry {
        engine: &engines::cockroach::DESCRIPTION,
        about: "through its URL; profile untested",
        open: cockroach::no_private_server,
        open_url: Some(postgres::open_cockroach_url),
        admin: Some(postgres::cockroach_admin),
    },
    Entry {
        engine: &engines::turso::DESCRIPTION,
        about: "driver in a separate process",
        open: shipped::open_turso,
        open_url: None,
        admin: None,
    },
    Entry {
        engine: &engines::duckdb::DESCRIPTION,
        about: "driver in a separate process",
        open: shipped::open_duckdb,
        open_url: None,
        admin: None,
    },
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Named(NamedEngine),
    Url(ServerUrl),
    SqliteFile(String),
    Driver(String),
}

pub struct Options {
    pub cache: Cache,
    /// Start servers in containers instead of from the machine and the cache.
    pub via: Option<Runtime>,
}

impl Target {
    pub fn parse(text: &str) -> Result<Target, String> {
        let text = text.trim();
        if let Some(command) = text.strip_prefix("driver:") {
            return match command.trim() {
                "" => Err("driver: needs a command, such as driver:'python3 my_driver.py'".into()),
                command => Ok(Target::Driver(command.into())),
            };
        }
        if let Some(file) = text.strip_prefix("sqlite:") {
            let file = file.strip_prefix("//").unwrap_or(file);
            return match file {
                "" => Err("sqlite: needs a file name, such as sqlite:/tmp/new.db".into()),
                file => Ok(Target::SqliteFile(file.into())),
            };
        }
        if text.contains("://") {
            let mut url = ServerUrl::parse(text)?;
            let known =
                |s: &str| ENGINES.iter().any(|e| e.engine.name == s && e.open_url.is_some());
            if url.scheme == "postgresql" {
                url.scheme = "postgres".into();
            }
            if url.scheme == "cockroachdb" {
                url.scheme = "cockroach".into();
            }
            if !known(&url.scheme) {
                let names: Vec<&str> = ENGINES
                    .iter()
                    .filter(|e| e.open_url.is_some())
                    .map(|e| e.engine.name)
                    .collect();
                return Err(format!("`{}://` is not one of {}", url.scheme, names.join(", ")));
            }
            return Ok(Target::Url(url));
        }
        Target::parse_name(text)
    }

    fn parse_name(text: &str) -> Result<Target, String> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) if !version.is_empty() => (name, Some(version.to_string())),
            Some(_) => return Err(format!("`{text}` lacks a version after the @")),
            None => (text, None),
        };
        let (engine, mode) = match name.split_once('+') {
            Some((engine, mode)) => (engine, Some(mode.to_string())),
            None => (name, None),
        };
        let engine = match engine.to_ascii_lowercase().as_str() {
            "postgresql" | "pg" => "postgres".to_string(),
            "cockroachdb" => "cockroach".to_string(),
            other => other.to_string(),
        };
        let Some(entry) = ENGINES.iter().find(|e| e.engine.name == engine) else {
            let names: Vec<&str> = ENGINES.iter().map(|e| e.engine.name).collect();
            // A text with a colon may be a mistyped URL with a password in it.
            let text = if text.contains(':') { "this" } else { text };
            return Err(format!(
                "`{text}` is not a target; name an engine ({}), a URL, or driver:COMMAND",
                names.join(", ")
            ));
        };
        if let Some(mode) = &mode
            && !entry.engine.modes.iter().any(|(m, _)| m == mode)
        {
            let modes: Vec<String> =
                entry.engine.modes.iter().map(|(m, _)| format!("{engine}+{m}")).collect();
            let known = if modes.is_empty() { "none".into() } else { modes.join(", ") };
            return Err(format!("`{engine}` has no mode `{mode}`; its modes: {known}"));
        }
        Ok(Target::Named(NamedEngine { engine, mode, version, server_options: Vec::new() }))
    }

    /// The same target on a private server with these options. Only a server
    /// that Isolde starts can have them: a user's server is never restarted.
    pub fn with_server_options(&self, wanted: &[String]) -> Result<Target, String> {
        let refused = |why: &str| {
            Err(format!("this needs a server started with {}, and {why}", wanted.join(" ")))
        };
        match self {
            _ if wanted.is_empty() => Ok(self.clone()),
            Target::Named(named) if ["mariadb", "mysql"].contains(&named.engine.as_str()) => {
                Ok(Target::Named(NamedEngine { server_options: wanted.to_vec(), ..named.clone() }))
            }
            Target::Named(named) => {
                refused(&format!("options are for mariadb and mysql, not {}", named.engine))
            }
            Target::Url(url) => {
                refused(&format!("{url} was not started by Isolde; name an engine instead"))
            }
            _ => refused("this target has no server"),
        }
    }

    /// Starts or connects to the target.
    pub fn open(&self, options: &Options) -> EngineResult<Box<dyn Engine>> {
        match self {
            Target::Named(named) => {
                if let Some(runtime) = options.via
                    && named.engine != "sqlite"
                {
                    if !named.server_options.is_empty() {
                        let message = "--via starts containers without server options";
                        return Err(EngineError::Refused(message.into()));
                    }
                    let open_url =
                        |url: &ServerUrl, name: &str| Target::Url(url.clone()).open_as(name);
                    return crate::server::container::open(runtime, named, &open_url);
                }
                let entry = ENGINES.iter().find(|e| e.engine.name == named.engine);
                let entry = entry.expect("the parser accepts only engines in the table");
                (entry.open)(named, &options.cache)
            }
            Target::Url(_) => self.open_as(&self.to_string()),
            Target::SqliteFile(file) => {
                Ok(Box::new(sqlite::Sqlite::at(Path::new(file), &self.to_string())?))
            }
            Target::Driver(command) => {
                let command = DriverCommand::parse(command)?;
                Ok(Box::new(DriverEngine::start(&command, &self.to_string())?))
            }
        }
    }
}

impl Target {
    /// The same server, with a password that was given apart from its URL. A
    /// password in the URL itself takes precedence.
    pub fn with_password(self, password: Secret) -> Target {
        match self {
            Target::Url(url) => Target::Url(ServerUrl { separate_password: Some(password), ..url }),
            other => other,
        }
    }

    /// Logs in to the server of a URL, to list and drop the databases that
    /// Isolde has left there.
    pub fn admin_connection(&self) -> AdminResult {
        let connection = match self {
            Target::Url(url) => {
                let entry = ENGINES.iter().find(|e| e.engine.name == url.scheme);
                entry.and_then(|e| e.admin).map(|admin| admin(url))
            }
            _ => None,
        };
        let refused = || Err(EngineError::Refused(format!("{self} is not the URL of a server")));
        connection.unwrap_or_else(refused)
    }

    /// Connects to the server of a URL; reports show it under `name`.
    pub fn open_as(&self, name: &str) -> EngineResult<Box<dyn Engine>> {
        let Target::Url(url) = self else {
            return Err(EngineError::Refused(format!("{self} is not a URL")));
        };
        let entry = ENGINES.iter().find(|e| e.engine.name == url.scheme);
        match entry.and_then(|e| e.open_url) {
            Some(open) => open(url, name),
            None => Err(EngineError::Refused(format!("{} has no URLs", url.scheme))),
        }
    }
}

fn open_sqlite(named: &NamedEngine, _: &Cache) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let bundled = rusqlite::version();
    if let Some(version) = &named.version
        && !crate::fetch::version::matches(version, bundled)
    {
        return Err(EngineError::Refused(format!(
            "this Isolde is built with SQLite {bundled}; for {version} use driver: with a program \
             of that version (drivers/sqlite3_driver.py runs the SQLite of your Python)"
        )));
    }
    let wanted = named.mode.as_deref().unwrap_or("");
    let mode = sqlite::Mode::ALL.iter().find(|(name, _)| *name == wanted).map(|(_, m)| *m);
    let mode = mode.expect("the parser has checked the mode");
    Ok(Box::new(sqlite::Sqlite::private(mode, &target)?))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Named(named) => named.fmt(f),
            Target::Url(url) => url.fmt(f),
            Target::SqliteFile(file) => write!(f, "sqlite:{file}"),
            Target::Driver(command) => write!(f, "driver:{command}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_target_reads_back_as_it_was_written() {
        for text in [
            "sqlite",
            "sqlite+wal",
            "postgres@18",
            "turso+mvcc@0.8.3",
            "driver:python3 d.py",
            "sqlite:/tmp/x.db",
        ] {
            assert_eq!(Target::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Target::parse("postgresql://h/d").unwrap().to_string(), "postgres://h/d");
    }

    #[test]
    fn server_options_need_a_private_mysql_or_mariadb() {
        let options = ["--query-cache-type=1".to_string()];
        let with = |text: &str| Target::parse(text).unwrap().with_server_options(&options);
        let Ok(Target::Named(named)) = with("mysql@5.7") else { panic!("refused") };
        assert_eq!(named.server_options, options);
        for text in ["mysql://root@h/", "sqlite", "driver:x"] {
            assert!(with(text).unwrap_err().contains("--query-cache-type=1"), "{text}");
            let plain = Target::parse(text).unwrap();
            assert_eq!(plain.with_server_options(&[]), Ok(plain.clone()));
        }
    }

    #[test]
    fn an_invalid_target_lists_valid_ones() {
        assert!(Target::parse("oracle").unwrap_err().contains("sqlite"));
        assert!(Target::parse("sqlite+fast").unwrap_err().contains("sqlite+wal"));
        assert!(Target::parse("postgres@").unwrap_err().contains("version"));
        assert!(Target::parse("ftp://x").unwrap_err().contains("postgres"));
        assert!(Target::parse("driver:").is_err());
    }
}

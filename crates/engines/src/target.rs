//! What the user may name on the command line, and how it becomes an engine.
//!
//! A new engine is one file, and one line in [`ENGINES`].

use crate::connect::secret::Secret;
use crate::connect::url::ServerUrl;
use crate::driver::shipped;
use crate::driver::{DriverCommand, DriverEngine};
use crate::engine::{Engine, EngineError, EngineResult};
use crate::fetch::install::Cache;
use crate::mysql::{self, dolt, tidb};
use crate::postgres::{self, cockroach};
use crate::server::leftovers::Door;
use crate::server::via::Runtime;
use crate::sqlite;
use std::fmt;
use std::path::Path;

type Opened = EngineResult<Box<dyn Engine>>;
type Entered = EngineResult<Box<dyn Door>>;

/// An engine that can be named.
pub struct Entry {
    pub name: &'static str,
    /// Modes behind a `+`, with what each is.
    pub modes: &'static [(&'static str, &'static str)],
    pub about: &'static str,
    open: fn(&Named, &Options) -> Opened,
    by_url: Option<fn(&ServerUrl, &str) -> Opened>,
    door: Option<fn(&ServerUrl) -> Entered>,
}

pub static ENGINES: &[Entry] = &[
    Entry {
        name: "sqlite",
        modes: &[("wal", "write-ahead log"), ("shared-cache", "one cache, READ UNCOMMITTED")],
        about: "in process, always there",
        open: open_sqlite,
        by_url: None,
        door: None,
    },
    Entry {
        name: "postgres",
        modes: &[],
        about: "private server",
        open: postgres::open_private,
        by_url: Some(postgres::open_url),
        door: Some(postgres::door),
    },
    Entry {
        name: "mariadb",
        modes: &[("snapshot", "innodb_snapshot_isolation=ON"), ("nosnapshot", "the same OFF")],
        about: "private server",
        open: mysql::open_mariadb,
        by_url: Some(mysql::open_url),
        door: Some(mysql::door),
    },
    Entry {
        name: "mysql",
        modes: &[],
        about: "private server",
        open: mysql::open_mysql,
        by_url: Some(mysql::open_url),
        door: Some(mysql::door),
    },
    Entry {
        name: "tidb",
        modes: &[("optimistic", "BEGIN OPTIMISTIC")],
        about: "private server, embedded store",
        open: tidb::open_private,
        by_url: Some(tidb::open_url),
        door: Some(mysql::tidb_door),
    },
    Entry {
        name: "dolt",
        modes: &[],
        about: "private server",
        open: dolt::open_private,
        by_url: Some(dolt::open_url),
        door: Some(mysql::door),
    },
    Entry {
        name: "cockroach",
        modes: &[],
        about: "through its URL; profile untested",
        open: cockroach::no_private_server,
        by_url: Some(cockroach::open_url),
        door: Some(postgres::cockroach_door),
    },
    Entry {
        name: "turso",
        modes: &[("mvcc", "BEGIN CONCURRENT")],
        about: "driver in a process of its own",
        open: shipped::open_turso,
        by_url: None,
        door: None,
    },
    Entry {
        name: "duckdb",
        modes: &[],
        about: "driver in a process of its own",
        open: shipped::open_duckdb,
        by_url: None,
        door: None,
    },
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub engine: String,
    pub mode: Option<String>,
    pub version: Option<String>,
    /// What the private server is started with besides what Isolde gives it.
    pub server_options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Named(Named),
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
            let known = |s: &str| ENGINES.iter().any(|e| e.name == s && e.by_url.is_some());
            if url.scheme == "postgresql" {
                url.scheme = "postgres".into();
            }
            if url.scheme == "cockroachdb" {
                url.scheme = "cockroach".into();
            }
            if !known(&url.scheme) {
                let names: Vec<&str> =
                    ENGINES.iter().filter(|e| e.by_url.is_some()).map(|e| e.name).collect();
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
        let Some(entry) = ENGINES.iter().find(|e| e.name == engine) else {
            let names: Vec<&str> = ENGINES.iter().map(|e| e.name).collect();
            // Something with a colon may be a URL gone wrong, password and all.
            let text = if text.contains(':') { "this" } else { text };
            return Err(format!(
                "`{text}` is not a target; name an engine ({}), a URL, or driver:COMMAND",
                names.join(", ")
            ));
        };
        if let Some(mode) = &mode
            && !entry.modes.iter().any(|(m, _)| m == mode)
        {
            let modes: Vec<String> =
                entry.modes.iter().map(|(m, _)| format!("{engine}+{m}")).collect();
            let known = if modes.is_empty() { "no modes".into() } else { modes.join(", ") };
            return Err(format!("`{engine}` has no mode `{mode}`; it has {known}"));
        }
        Ok(Target::Named(Named { engine, mode, version, server_options: Vec::new() }))
    }

    /// The same target with a server of its own that has these options. Only
    /// a server that Isolde starts can have them: nobody's own is restarted.
    pub fn with_server_options(&self, wanted: &[String]) -> Result<Target, String> {
        let refused = |why: &str| {
            Err(format!("this needs a server started with {}, and {why}", wanted.join(" ")))
        };
        match self {
            _ if wanted.is_empty() => Ok(self.clone()),
            Target::Named(named) if ["mariadb", "mysql"].contains(&named.engine.as_str()) => {
                Ok(Target::Named(Named { server_options: wanted.to_vec(), ..named.clone() }))
            }
            Target::Named(named) => {
                refused(&format!("options are for mariadb and mysql, not {}", named.engine))
            }
            Target::Url(url) => {
                refused(&format!("{url} was not started by Isolde; name an engine instead"))
            }
            _ => refused("there is none here"),
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
                        let message = "a container is started without server options";
                        return Err(EngineError::Refused(message.into()));
                    }
                    return crate::server::container::open(runtime, named);
                }
                let entry = ENGINES.iter().find(|e| e.name == named.engine);
                let entry = entry.expect("the parser knows only engines in the table");
                (entry.open)(named, options)
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
    /// The same server, with a password that was named beside its URL. One in
    /// the URL itself comes first.
    pub fn with_password(self, password: Secret) -> Target {
        match self {
            Target::Url(url) => Target::Url(ServerUrl { password_aside: Some(password), ..url }),
            other => other,
        }
    }

    /// A way into the server behind a URL, to what Isolde has left there.
    pub fn door(&self) -> Entered {
        let door = match self {
            Target::Url(url) => {
                let entry = ENGINES.iter().find(|e| e.name == url.scheme);
                entry.and_then(|e| e.door).map(|door| door(url))
            }
            _ => None,
        };
        door.unwrap_or_else(|| Err(EngineError::Refused(format!("{self} is no URL of a server"))))
    }

    /// Connects to the server behind a URL, under the name that reports show.
    pub fn open_as(&self, name: &str) -> EngineResult<Box<dyn Engine>> {
        let Target::Url(url) = self else {
            return Err(EngineError::Refused(format!("{self} is no URL")));
        };
        let entry = ENGINES.iter().find(|e| e.name == url.scheme);
        match entry.and_then(|e| e.by_url) {
            Some(open) => open(url, name),
            None => Err(EngineError::Refused(format!("{} has no URLs", url.scheme))),
        }
    }
}

fn open_sqlite(named: &Named, _: &Options) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
    let bundled = rusqlite::version();
    if let Some(version) = &named.version
        && !crate::fetch::version::matches(version, bundled)
    {
        return Err(EngineError::Refused(format!(
            "this Isolde carries SQLite {bundled}; for {version} use driver: with a program of \
             that version (drivers/sqlite3_driver.py runs whatever your Python has)"
        )));
    }
    let wanted = named.mode.as_deref().unwrap_or("");
    let mode = sqlite::Mode::ALL.iter().find(|(name, _)| *name == wanted).map(|(_, m)| *m);
    let mode = mode.expect("the parser has checked the mode");
    Ok(Box::new(sqlite::Sqlite::private(mode, &target)?))
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.engine)?;
        if let Some(mode) = &self.mode {
            write!(f, "+{mode}")?;
        }
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
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
    fn targets_are_names_urls_files_and_drivers() {
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
    fn only_a_private_server_of_its_kind_takes_options() {
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
    fn a_wrong_target_says_what_would_be_right() {
        assert!(Target::parse("oracle").unwrap_err().contains("sqlite"));
        assert!(Target::parse("sqlite+fast").unwrap_err().contains("sqlite+wal"));
        assert!(Target::parse("postgres@").unwrap_err().contains("version"));
        assert!(Target::parse("ftp://x").unwrap_err().contains("postgres"));
        assert!(Target::parse("driver:").is_err());
    }
}

//! Decides what a test may skip, and opens engines for tests.
//!
//! SQLite, PostgreSQL and MariaDB are never skipped: a server that is missing
//! or does not start fails the test. `ISOLDE_TEST_QUICK` switches all servers
//! off. Other targets (fetched versions, other engines) are skipped where they
//! are not installed. Each skip is written by name to the file that
//! `ISOLDE_TEST_SKIPPED` names; `./test` prints that list.

use isolde_engines::engine::Engine;
use isolde_engines::fetch::install::{self, Cache};
use isolde_engines::runner::Runner;
use isolde_engines::target::{Options, Target};
use std::path::PathBuf;

/// Versions of servers with locks that are tested when they are in the cache.
pub const FETCHED: [&str; 7] = [
    "mysql@9.7",
    "mysql@8.0.33",
    "mysql@5.7",
    "mariadb@11.8",
    "mariadb@10.2",
    "postgres@18",
    "postgres@12.3",
];

/// Servers that every full run of the tests has.
const REQUIRED_SERVERS: [&str; 2] = ["postgres", "mariadb"];

/// Tools that every full run of the tests has, because `./test` installs them.
const REQUIRED_TOOLS: [&str; 3] = ["python3", "mariadb-test", "isolationtester"];

/// Whether a test can run on a target such as `sqlite+wal`, `postgres` or
/// `mysql@9.7`. Records a skip where it cannot.
pub fn is_available(target: &str) -> bool {
    let installed = |engine: &str, version: Option<&str>| {
        install::find(engine, version, &Cache::open()).is_ok()
    };
    match reason_to_skip(target, is_quick(), installed) {
        None => true,
        Some(reason) => {
            record_skip(target, &reason);
            false
        }
    }
}

/// Those of the targets that a test can run on.
pub fn available<'a>(targets: &[&'a str]) -> Vec<&'a str> {
    targets.iter().copied().filter(|target| is_available(target)).collect()
}

/// Opens a runner on a target, or records a skip. Panics when a target that is
/// available does not start.
pub fn open(target: &str) -> Option<Runner> {
    open_engine(target).map(Runner::new)
}

/// Opens the engine of a target, or records a skip. Panics when a target that
/// is available does not start.
pub fn open_engine(target: &str) -> Option<Box<dyn Engine>> {
    is_available(target).then(|| start_engine(target))
}

/// Opens the engine of a target or URL that must be there.
pub fn start_engine(target: &str) -> Box<dyn Engine> {
    let parsed = Target::parse(target).unwrap_or_else(|e| panic!("{target}: {e}"));
    parsed.open(&options()).unwrap_or_else(|e| panic!("{target}: {e}"))
}

/// Options to open targets with: the machine's servers and the usual cache.
pub fn options() -> Options {
    Options { cache: Cache::open(), via: None }
}

/// The path of a tool, or a recorded skip. Panics when a tool is missing that
/// every full run of the tests has.
pub fn tool(name: &str) -> Option<PathBuf> {
    let found = match name {
        "isolationtester" => isolationtester(),
        name => on_path(name),
    };
    if found.is_none() {
        let required = REQUIRED_TOOLS.contains(&name) && !is_quick();
        assert!(
            !required,
            "{name} is not installed; ./test installs it, ./test --quick does without"
        );
        record_skip(name, "not installed");
    }
    found
}

/// Whether this is a run without servers.
fn is_quick() -> bool {
    std::env::var_os("ISOLDE_TEST_QUICK").is_some()
}

fn reason_to_skip(
    target: &str,
    quick: bool,
    is_installed: impl Fn(&str, Option<&str>) -> bool,
) -> Option<String> {
    let Target::Named(named) = Target::parse(target).unwrap_or_else(|e| panic!("{target}: {e}"))
    else {
        return None;
    };
    let (engine, version) = (named.engine.as_str(), named.version.as_deref());
    if engine == "sqlite" {
        return None;
    }
    if quick {
        return Some("ISOLDE_TEST_QUICK is set".into());
    }
    let required = version.is_none() && REQUIRED_SERVERS.contains(&engine);
    if required || is_installed(engine, version) {
        return None;
    }
    Some(format!("not installed; `isolde fetch {target}` installs it"))
}

/// Prints a skip, and adds it to the list that `./test` prints at its end.
fn record_skip(name: &str, reason: &str) {
    println!("skipped: {name} ({reason})");
    if let Some(path) = std::env::var_os("ISOLDE_TEST_SKIPPED") {
        let mut list = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        let line = format!("{name} ({reason})\n");
        std::io::Write::write_all(&mut list, line.as_bytes()).unwrap();
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The isolationtester of the newest PostgreSQL, as Debian packages it.
fn isolationtester() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let program = "lib/pgxs/src/test/isolation/isolationtester";
    versions.flatten().map(|version| version.path().join(program)).filter(|p| p.exists()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_skipped(target: &str, quick: bool, installed: bool) -> bool {
        reason_to_skip(target, quick, |_, _| installed).is_some()
    }

    #[test]
    fn sqlite_is_never_skipped() {
        for target in ["sqlite", "sqlite+wal", "sqlite+shared-cache"] {
            assert!(!is_skipped(target, false, false), "{target}");
            assert!(!is_skipped(target, true, false), "{target}");
        }
    }

    #[test]
    fn postgres_and_mariadb_are_skipped_in_a_quick_run_only() {
        for target in ["postgres", "mariadb"] {
            assert!(!is_skipped(target, false, false), "a missing {target} must fail its tests");
            assert!(is_skipped(target, true, true), "{target}");
        }
    }

    #[test]
    fn fetched_versions_and_other_engines_are_skipped_where_they_are_missing() {
        for target in ["postgres@18", "mariadb@11.8", "mysql", "mysql@9.7", "tidb", "duckdb@2"] {
            assert!(is_skipped(target, false, false), "{target}");
            assert!(!is_skipped(target, false, true), "{target}");
            assert!(is_skipped(target, true, true), "{target}");
        }
    }
}

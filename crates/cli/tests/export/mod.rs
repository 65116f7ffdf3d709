//! The real tools: isolationtester, mysqltest and Python, on what was exported.

#![allow(dead_code)]

use isolde_core::case::{self, Case};
use isolde_engines::engine::{ClientInfo, Engine};
use isolde_engines::fetch::install::Cache;
use isolde_engines::runner::Runner;
use isolde_engines::target::{self, Target};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub fn runner(target: &str) -> Option<Runner> {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        eprintln!("skipped: ISOLDE_TEST_QUICK is set");
        return None;
    }
    let options = target::Options { cache: Cache::open(), via: None };
    let opened = Target::parse(target).unwrap().open(&options);
    opened.inspect_err(|e| eprintln!("skipped: no {target}: {e}")).ok().map(Runner::new)
}

/// The cases of these folders of the library, by name.
pub fn library(folders: &[&str]) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let files = folders.iter().flat_map(|f| std::fs::read_dir(root.join(f)).unwrap().flatten());
    let mut files: Vec<PathBuf> = files.map(|f| f.path()).collect();
    files.sort();
    files.iter().map(|f| case::parse(&std::fs::read_to_string(f).unwrap()).unwrap()).collect()
}

pub fn isolationtester() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let place = "lib/pgxs/src/test/isolation/isolationtester";
    let found = versions.flatten().map(|v| v.path().join(place)).filter(|p| p.exists()).max();
    if found.is_none() {
        eprintln!("skipped: there is no isolationtester here");
    }
    found
}

/// What it prints, with the settings of PostgreSQL's own driver and the
/// server's defaults for what Isolde has changed.
pub fn isolation_output(program: &Path, client: &ClientInfo, spec: &str) -> String {
    let connection = format!(
        "host={} port={} user={} dbname={}",
        client.host, client.port, client.user, client.database
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("repro.spec");
    std::fs::write(&file, spec).unwrap();
    let output = Command::new("sh")
        .args(["-c", "exec \"$0\" \"$1\" 2>&1"])
        .arg(program)
        .arg(connection)
        .env("PGPASSWORD", client.password.as_ref().map_or("", |p| p.reveal()))
        .env("PGDATESTYLE", "Postgres, MDY")
        .env("PGISOLATIONTIMEOUT", "5")
        .env(
            "PGOPTIONS",
            "-c client_min_messages=notice -c deadlock_timeout=1s -c log_lock_waits=off",
        )
        .stdin(Stdio::from(std::fs::File::open(&file).unwrap()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// MySQL's test client, with the includes of Debian's mariadb-test.
pub struct MysqlTest {
    port: u16,
}

const SUITE: &str = "/usr/share/mysql/mysql-test/";

impl MysqlTest {
    /// As mtr has it: root without a password, and a database `test`.
    pub fn on(engine: &mut dyn Engine) -> Option<MysqlTest> {
        let there = Command::new("mariadb-test").arg("--version").output();
        if there.is_err() || !Path::new(SUITE).exists() {
            eprintln!("skipped: there is no mariadb-test here");
            return None;
        }
        let client = engine.client()?;
        engine.control("create user if not exists root@'127.0.0.1' identified by ''").unwrap();
        engine.control("grant all on *.* to root@'127.0.0.1'").unwrap();
        Some(MysqlTest { port: client.port })
    }

    /// Err has what it said.
    pub fn run(&self, engine: &mut dyn Engine, test: &str, result: &str) -> Result<(), String> {
        for sql in ["drop database if exists test", "create database test"] {
            engine.control(sql).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let (script, expected) = (dir.path().join("repro.test"), dir.path().join("repro.result"));
        std::fs::write(&script, test).unwrap();
        std::fs::write(&expected, result).unwrap();
        let output = Command::new("mariadb-test")
            .args(["--no-defaults", "--host=127.0.0.1", "--protocol=tcp", "--user=root"])
            .args(["--database=test", &format!("--basedir={SUITE}"), "--silent"])
            .arg(format!("--port={}", self.port))
            .arg(format!("--result-file={}", expected.display()))
            .arg(format!("--logdir={}", dir.path().display()))
            .stdin(Stdio::from(std::fs::File::open(&script).unwrap()))
            .env_remove("MYSQL_PWD")
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(said(&output)),
        }
    }
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// The program's exit code and what it printed.
pub fn python(program: &str, packages: Option<&Path>) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("repro.py");
    std::fs::write(&file, program).unwrap();
    let mut command = Command::new("python3");
    if let Some(packages) = packages {
        command.env("PYTHONPATH", packages);
    }
    let output = command.arg(&file).output().unwrap();
    (output.status.code(), said(&output))
}

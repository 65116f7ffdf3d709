//! The tools that run exported reproductions: isolationtester, mysqltest and
//! Python.

use crate::program::all_output;
use crate::servers::tool;
use isolde_engines::engine::{ClientInfo, Engine};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What isolationtester prints for a spec.
///
/// It has the settings that pg_isolation_regress gives it, and the server's
/// defaults for the settings that Isolde's private servers change.
pub fn isolation_output(
    program: &Path,
    client: &ClientInfo,
    spec: &str,
    name: &str,
    step_limit: Duration,
) -> String {
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
        .env("PGAPPNAME", format!("isolation/{name}"))
        .env("PGTZ", "PST8PDT")
        .env("PGDATESTYLE", "Postgres, MDY")
        .env("PGCLIENTENCODING", "UTF8")
        .env("PGISOLATIONTIMEOUT", step_limit.as_secs().to_string())
        .env(
            "PGOPTIONS",
            "-c intervalstyle=postgres_verbose -c client_min_messages=notice \
             -c deadlock_timeout=1s -c log_lock_waits=off",
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
    /// Prepares a server as mtr does: root without a password, and a database
    /// `test`. Records a skip where mysqltest is missing.
    pub fn on(engine: &mut dyn Engine) -> Option<MysqlTest> {
        tool("mariadb-test")?;
        let client = engine.client()?;
        engine.control("create user if not exists root@'127.0.0.1' identified by ''").unwrap();
        engine.control("grant all on *.* to root@'127.0.0.1'").unwrap();
        Some(MysqlTest { port: client.port })
    }

    /// Runs a test script against its expected result. An error is what
    /// mysqltest printed.
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
            false => Err(all_output(&output)),
        }
    }
}

/// Runs a Python program. Returns its exit code and what it printed.
pub fn python(program: &str, packages: Option<&Path>) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("repro.py");
    std::fs::write(&file, program).unwrap();
    let mut command = Command::new("python3");
    if let Some(packages) = packages {
        command.env("PYTHONPATH", packages);
    }
    let output = command.arg(&file).output().unwrap();
    (output.status.code(), all_output(&output))
}

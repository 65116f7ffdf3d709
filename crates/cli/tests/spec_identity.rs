//! Isolde's output of every spec in `specs/` against the real
//! isolationtester's, on one server, byte for byte.
//!
//! Skipped with a line that says so where isolationtester or a server of
//! PostgreSQL is missing, and with ISOLDE_TEST_QUICK set.

use isolde_engines::engine::{ClientInfo, Engine};
use isolde_engines::fetch::install::Cache;
use isolde_engines::spec::{self, Options};
use isolde_engines::target::{self, Target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn isolationtester() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let place = "lib/pgxs/src/test/isolation/isolationtester";
    let mut found: Vec<PathBuf> =
        versions.flatten().map(|v| v.path().join(place)).filter(|p| p.exists()).collect();
    found.sort();
    found.pop()
}

fn specs() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs");
    let files = std::fs::read_dir(dir).unwrap().flatten().map(|f| f.path());
    let mut specs: Vec<PathBuf> =
        files.filter(|p| p.extension().is_some_and(|e| e == "spec")).collect();
    specs.sort();
    specs
}

/// What pg_isolation_regress gives it, and the defaults that Isolde's private
/// servers have changed for its other uses.
fn original(program: &Path, client: &ClientInfo, name: &str, text: &Path) -> String {
    let connection = format!(
        "host={} port={} user={} dbname={}",
        client.host, client.port, client.user, client.database
    );
    let output = Command::new("sh")
        .args(["-c", "exec \"$0\" \"$1\" 2>&1"])
        .arg(program)
        .arg(connection)
        .env("PGPASSWORD", client.password.as_ref().map_or("", |p| p.reveal()))
        .env("PGAPPNAME", format!("isolation/{name}"))
        .env("PGTZ", "PST8PDT")
        .env("PGDATESTYLE", "Postgres, MDY")
        .env("PGCLIENTENCODING", "UTF8")
        .env("PGISOLATIONTIMEOUT", "2")
        .env(
            "PGOPTIONS",
            "-c intervalstyle=postgres_verbose -c client_min_messages=notice \
             -c deadlock_timeout=1s -c log_lock_waits=off",
        )
        .stdin(Stdio::from(std::fs::File::open(text).unwrap()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn ours(engine: &mut dyn Engine, name: &str, text: &str) -> String {
    let parsed = isolde_core::spec::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut options = Options::new(name);
    options.step_limit = std::time::Duration::from_secs(2);
    let mut output = String::new();
    spec::run(engine, &parsed, &options, &mut |piece| output.push_str(piece)).unwrap();
    output
}

fn printed(mut isolde: Command, path: &Path) -> String {
    let output = isolde.arg("spec").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_output_is_isolationtesters_byte_for_byte() {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        return eprintln!("skipped: ISOLDE_TEST_QUICK is set");
    }
    let Some(program) = isolationtester() else {
        return eprintln!("skipped: there is no isolationtester here");
    };
    let options = target::Options { cache: Cache::open(), via: None };
    let mut engine = match Target::parse("postgres").unwrap().open(&options) {
        Ok(engine) => engine,
        Err(error) => return eprintln!("skipped: no PostgreSQL: {error}"),
    };
    let client = engine.client().expect("a server has an address");
    let chosen = std::env::var("ISOLDE_TEST_SPEC").unwrap_or_default();
    let mut different = Vec::new();
    let mut compared = 0;
    for path in specs().iter().filter(|p| p.to_string_lossy().contains(&chosen)) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        engine.clear().unwrap();
        engine.control("grant usage on schema public to public").unwrap();
        let theirs = original(&program, &client, &name, path);
        let text = std::fs::read_to_string(path).unwrap();
        let own = ours(engine.as_mut(), &name, &text);
        compared += 1;
        if theirs != own {
            eprintln!("=== {name}: isolationtester\n{theirs}\n=== {name}: isolde\n{own}");
            different.push(name.clone());
        }
        // The same through the program, where it prints something odd.
        if ["values", "empty-setup"].contains(&name.as_str()) {
            let isolde = Command::new(env!("CARGO_BIN_EXE_isolde"));
            assert_eq!(printed(isolde, path), theirs, "{name} as it is printed");
        }
    }
    eprintln!("{compared} specs compared");
    assert!(different.is_empty(), "differ: {different:?}");
}

//! Private servers and users' servers: what Isolde starts goes with it, and
//! what is not its own stays as it was.

mod servers;

use servers::Server;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn isolde() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str]) -> Output {
    isolde().args(args).output().unwrap()
}

/// Prints a line and says false when the test cannot run here.
fn here(engine: &str, version: Option<&str>) -> bool {
    let cache = isolde_engines::fetch::install::Cache::open();
    let quick = std::env::var_os("ISOLDE_TEST_QUICK").is_some();
    let found = isolde_engines::fetch::install::find(engine, version, &cache).is_ok();
    // What ./test installs must be there; only what must be fetched may lack.
    let may_lack = version.is_some() || !["postgres", "mariadb"].contains(&engine);
    let skip = quick || (!found && may_lack);
    if skip {
        let name = version.map_or(engine.to_string(), |v| format!("{engine}@{v}"));
        println!("skipped: {name}");
        if let Some(path) = std::env::var_os("ISOLDE_TEST_SKIPPED") {
            let mut list =
                std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            std::io::Write::write_all(&mut list, format!("{name}\n").as_bytes()).unwrap();
        }
    }
    !skip
}

/// Processes that work in the scratch directories of an Isolde process.
fn servers_of(isolde: u32) -> Vec<(u32, String)> {
    let mark = format!("isolde-{isolde}-");
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (pid != isolde && line.contains(&mark)).then_some((pid, line))
        })
        .collect()
}

fn scratch_of(isolde: u32) -> Vec<String> {
    let mark = format!("isolde-{isolde}-");
    ["/dev/shm", "/tmp"]
        .iter()
        .filter_map(|root| std::fs::read_dir(root).ok())
        .flat_map(|entries| entries.flatten())
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.contains(&mark))
        .collect()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An Isolde that is busy for a long time on a server of its own.
fn busy(target: &str, sleep: &str) -> (Child, tempfile::TempPath) {
    let text = format!(
        "case: long\n\nsetup:\n  create table t (a int);\n\ns1> begin;\ns1> select {sleep}(25);\n"
    );
    let file = tempfile::Builder::new().suffix(".case").tempfile().unwrap().into_temp_path();
    std::fs::write(&file, text).unwrap();
    let child = isolde().args(["replay", file.to_str().unwrap(), "--on", target]).spawn().unwrap();
    wait_for("the server starts", || !servers_of(child.id()).is_empty());
    std::thread::sleep(Duration::from_millis(1500));
    (child, file)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

const BUSY: [(&str, &str); 2] = [("postgres", "pg_sleep"), ("mariadb", "sleep")];

#[test]
fn a_server_does_not_outlive_an_isolde_that_is_killed() {
    for (target, sleep) in BUSY {
        if !here(target, None) {
            continue;
        }
        let (mut child, _file) = busy(target, sleep);
        signal(&child, "-KILL");
        child.wait().unwrap();
        wait_for("the server ends", || servers_of(child.id()).is_empty());
        // What it could not remove itself, the next one does (or another test's
        // Isolde has done already).
        run(&["matrix", "sqlite", "-q"]);
        assert_eq!(scratch_of(child.id()), Vec::<String>::new(), "{target}");
    }
}

#[test]
fn ctrl_c_ends_the_work_and_leaves_nothing_behind() {
    for (target, sleep) in BUSY {
        if !here(target, None) {
            continue;
        }
        let (mut child, _file) = busy(target, sleep);
        signal(&child, "-INT");
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{target}");
        assert_eq!(servers_of(child.id()), Vec::new(), "{target}");
        assert_eq!(scratch_of(child.id()), Vec::<String>::new(), "{target}");
    }
}

#[test]
fn a_server_killed_under_a_running_case_is_an_outcome_and_isolde_ends_by_itself() {
    for (target, sleep) in BUSY {
        if !here(target, None) {
            continue;
        }
        let (child, _file) = busy(target, sleep);
        for (pid, _) in servers_of(child.id()) {
            let _ = Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .stderr(Stdio::null())
                .status();
        }
        let isolde = child.id();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("error lost") && text.contains("s1 ended"), "{target}: {text}");
        assert_eq!(output.status.code(), Some(1), "{target}: a lost server is a finding");
        assert_eq!(servers_of(isolde), Vec::new(), "{target}");
    }
}

#[test]
fn two_isoldes_at_once_do_not_disturb_each_other() {
    for target in ["sqlite", "postgres", "mariadb"] {
        if target != "sqlite" && !here(target, None) {
            continue;
        }
        let both: Vec<Child> =
            (0..2).map(|_| isolde().args(["matrix", target, "-q"]).spawn().unwrap()).collect();
        let outputs: Vec<Output> =
            both.into_iter().map(|c| c.wait_with_output().unwrap()).collect();
        assert_eq!(outputs[0].status.code(), Some(0), "{target}");
        assert_eq!(outputs[0].stdout, outputs[1].stdout, "{target}");
    }
}

#[test]
fn on_a_users_server_isolde_works_in_a_database_of_its_own_and_drops_it() {
    for target in ["postgres", "mariadb"] {
        if !here(target, None) {
            continue;
        }
        let server = Server::start(target, &[]);
        let url = server.url();
        let output = run(&["matrix", &url, "-q", "--level", "RR"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("REPEATABLE READ"), "{text}");
        // A case on the same server can look which databases there are.
        let list = match target {
            "postgres" => {
                "select count(*) from pg_database where datname like 'isolde\\_%' and datname <> current_database()"
            }
            _ => {
                "select count(*) from information_schema.schemata where schema_name like 'isolde\\_%' and schema_name <> database()"
            }
        };
        let file = tempfile::Builder::new().suffix(".case").tempfile().unwrap();
        std::fs::write(file.path(), format!("case: look\n\ns1> {list};\n")).unwrap();
        let look = run(&["replay", file.path().to_str().unwrap(), "--on", &url]);
        let text = String::from_utf8_lossy(&look.stdout).into_owned();
        assert!(text.contains("(0)"), "{target}: nothing is left: {text}");
    }
}

/// The published table (Hermitage; and what the manuals say), level by level.
const POSTGRES: [(&str, &str); 4] = [
    ("READ UNCOMMITTED", "✓ ✓ ✓ ✓ ✓ – – – – –"),
    ("READ COMMITTED", "✓ ✓ ✓ ✓ ✓ – – – – –"),
    ("REPEATABLE READ", "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ – –"),
    ("SERIALIZABLE", "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓"),
];
const INNODB: [(&str, &str); 4] = [
    ("READ UNCOMMITTED", "✓ – – – – – – – – –"),
    ("READ COMMITTED", "✓ ✓ ✓ ✓ ✓ – – – – –"),
    ("REPEATABLE READ", "✓ ✓ ✓ ✓ ✓ r – r – –"),
    ("SERIALIZABLE", "✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓ ✓"),
];
const SNAPSHOT: [(&str, &str); 4] = [INNODB[0], INNODB[1], POSTGRES[2], INNODB[3]];

#[test]
fn the_matrix_equals_the_published_table() {
    for (engine, version, table) in [
        ("postgres", None, &POSTGRES[..]),
        ("postgres", Some("12.3"), &POSTGRES[..]),
        ("postgres", Some("18"), &POSTGRES[..]),
        ("mariadb", None, &INNODB[..]),
        ("mariadb", Some("10.2"), &INNODB[..]),
        ("mariadb", Some("11.4"), &INNODB[..]),
        ("mariadb", Some("11.8"), &SNAPSHOT[..]),
        ("mysql", Some("5.7"), &INNODB[..]),
        ("mysql", Some("8.0.33"), &INNODB[..]),
        ("mysql", Some("9.7"), &INNODB[..]),
        ("tidb", Some("8.5"), &INNODB[1..3]),
        ("turso", Some("0.8.3"), &INNODB[3..]),
        ("duckdb", Some("2"), &[("SNAPSHOT", POSTGRES[2].1)]),
    ] {
        if !here(engine, version) {
            continue;
        }
        let target = version.map_or(engine.to_string(), |v| format!("{engine}@{v}"));
        let output = run(&["matrix", &target, "-q"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{target}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let rows: Vec<String> = text
            .lines()
            .skip(2)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let expected: Vec<String> = table.iter().map(|(l, cells)| format!("{l} {cells}")).collect();
        assert_eq!(rows, expected, "{target}");
    }
}

#[test]
fn servers_run_as_another_user_when_isolde_is_root() {
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !root || !here("postgres", None) {
        return;
    }
    let (mut child, _file) = busy("postgres", "pg_sleep");
    for (pid, line) in servers_of(child.id()) {
        let owner = std::fs::metadata(Path::new("/proc").join(pid.to_string()));
        let uid = owner.map(|m| std::os::unix::fs::MetadataExt::uid(&m)).unwrap_or(1);
        assert_ne!(uid, 0, "{line}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

//! Private servers end with Isolde, and a user's server is left as it was.

use isolde_testing::processes::{scratch_directories_of, servers_of, signal, wait_until};
use isolde_testing::program::{command, isolde, stderr, stdout, text};
use isolde_testing::servers;
use isolde_testing::user_server::UserServer;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::Duration;

/// Starts Isolde with a long case on a private server.
fn busy(target: &str, sleep: &str) -> (Child, tempfile::TempPath) {
    let case = format!(
        "case: long\n\nsetup:\n  create table t (a int);\n\ns1> begin;\ns1> select {sleep}(25);\n"
    );
    let file = tempfile::Builder::new().suffix(".case").tempfile().unwrap().into_temp_path();
    std::fs::write(&file, case).unwrap();
    let child = command(&["replay", text(&file), "--on", target]).spawn().unwrap();
    wait_until("the server starts", || !servers_of(child.id()).is_empty());
    // No condition is visible from outside for "the statement runs".
    std::thread::sleep(Duration::from_millis(1500));
    (child, file)
}

const BUSY: [(&str, &str); 2] = [("postgres", "pg_sleep"), ("mariadb", "sleep")];

#[test]
fn a_private_server_does_not_outlive_a_killed_isolde() {
    for (target, sleep) in BUSY {
        if !servers::is_available(target) {
            continue;
        }
        let (mut child, _file) = busy(target, sleep);
        signal(child.id(), Signal::KILL);
        child.wait().unwrap();
        wait_until("the server ends", || servers_of(child.id()).is_empty());
        // The next Isolde removes the scratch directories that the killed one left
        // (the Isolde of another test may have done so already).
        isolde(&["matrix", "sqlite", "-q"]);
        assert_eq!(scratch_directories_of(child.id()), Vec::<PathBuf>::new(), "{target}");
    }
}

#[test]
fn ctrl_c_leaves_no_server_and_no_scratch_directory() {
    for (target, sleep) in BUSY {
        if !servers::is_available(target) {
            continue;
        }
        let (mut child, _file) = busy(target, sleep);
        signal(child.id(), Signal::INT);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(130), "{target}");
        assert_eq!(servers_of(child.id()), Vec::new(), "{target}");
        assert_eq!(scratch_directories_of(child.id()), Vec::<PathBuf>::new(), "{target}");
    }
}

#[test]
fn a_server_killed_under_a_running_case_is_an_outcome() {
    for (target, sleep) in BUSY {
        if !servers::is_available(target) {
            continue;
        }
        let (child, _file) = busy(target, sleep);
        for (pid, _) in servers_of(child.id()) {
            // Children of a server may have ended with it.
            let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = kill_process(pid, Signal::KILL);
        }
        let process = child.id();
        let output = child.wait_with_output().unwrap();
        let text = stdout(&output);
        assert!(text.contains("error lost") && text.contains("s1 ended"), "{target}: {text}");
        assert_eq!(output.status.code(), Some(1), "{target}: a lost server is a finding");
        assert_eq!(servers_of(process), Vec::new(), "{target}");
    }
}

#[test]
fn two_concurrent_isoldes_do_not_disturb_each_other() {
    for target in servers::available(&["sqlite", "postgres", "mariadb"]) {
        let both: Vec<Child> =
            (0..2).map(|_| command(&["matrix", target, "-q"]).spawn().unwrap()).collect();
        let outputs: Vec<Output> =
            both.into_iter().map(|c| c.wait_with_output().unwrap()).collect();
        assert_eq!(outputs[0].status.code(), Some(0), "{target}");
        assert_eq!(outputs[0].stdout, outputs[1].stdout, "{target}");
    }
}

#[test]
fn on_a_user_server_isolde_drops_the_database_that_it_created() {
    for target in servers::available(&["postgres", "mariadb"]) {
        let server = UserServer::start(target, &[]);
        let url = server.url();
        let output = isolde(&["matrix", &url, "-q", "--level", "RR"]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(text.contains("REPEATABLE READ"), "{text}");
        // A case on the same server lists the databases.
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
        let look = isolde(&["replay", file.path().to_str().unwrap(), "--on", &url]);
        let text = stdout(&look);
        assert!(text.contains("(0)"), "{target}: nothing is left: {text}");
    }
}

/// The published table (Hermitage and the manuals), by level.
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
    for (target, table) in [
        ("postgres", &POSTGRES[..]),
        ("postgres@12.3", &POSTGRES[..]),
        ("postgres@18", &POSTGRES[..]),
        ("mariadb", &INNODB[..]),
        ("mariadb@10.2", &INNODB[..]),
        ("mariadb@11.4", &INNODB[..]),
        ("mariadb@11.8", &SNAPSHOT[..]),
        ("mysql@5.7", &INNODB[..]),
        ("mysql@8.0.33", &INNODB[..]),
        ("mysql@9.7", &INNODB[..]),
        ("tidb@8.5", &INNODB[1..3]),
        ("turso@0.8.3", &INNODB[3..]),
        ("duckdb@2", &[("SNAPSHOT", POSTGRES[2].1)]),
    ] {
        if !servers::is_available(target) {
            continue;
        }
        let output = isolde(&["matrix", target, "-q"]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{target}: {text}{}", stderr(&output));
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
fn private_servers_run_as_another_user_when_isolde_is_root() {
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !root || !servers::is_available("postgres") {
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

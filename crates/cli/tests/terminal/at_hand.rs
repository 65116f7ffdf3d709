//! What the tests of the shells share: starting Isolde, which servers are
//! here, and whether anything was left behind.

use super::PATIENCE;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub fn isolde(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

/// SQLite always; the servers unless ISOLDE_TEST_QUICK is set or they are not
/// installed.
pub fn targets() -> Vec<&'static str> {
    let mut all = vec!["sqlite"];
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        println!("skipped on servers: ISOLDE_TEST_QUICK is set");
        return all;
    }
    let output = isolde(&["servers", "--json"]).output().unwrap();
    let known: Value = serde_json::from_slice(&output.stdout).unwrap();
    for engine in ["postgres", "mariadb"] {
        let there = ["machine", "cache"].iter().any(|place| {
            known[place].as_array().is_some_and(|all| all.iter().any(|i| i["engine"] == engine))
        });
        match there {
            true => all.push(engine),
            false => println!("skipped on {engine}: it is not installed"),
        }
    }
    all
}

pub fn installed(program: &str) -> bool {
    let there = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()));
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

pub fn pipe(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = isolde(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A repl that quits early does not read the rest.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The directories of a process and of the servers that it started.
pub fn leftovers(process: u32) -> Vec<String> {
    let mine = format!("isolde-{process}-");
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let folders = [Path::new("/dev/shm").to_path_buf(), std::env::temp_dir()];
    let mut left: Vec<String> = folders.iter().flat_map(|f| names(f)).collect();
    left.retain(|name| name.starts_with(&mine));
    for process in names(Path::new("/proc")) {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&mine) {
            left.push(line);
        }
    }
    left
}

#[track_caller]
pub fn assert_nothing_left(process: u32) {
    // A killed server takes a moment to leave the table of processes.
    let end = Instant::now() + PATIENCE;
    while !leftovers(process).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(leftovers(process), Vec::<String>::new());
}

pub fn signal(child: u32, signal: i32) {
    let id = i32::try_from(child).unwrap();
    // SAFETY: a signal to a child of ours that was not waited for yet.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

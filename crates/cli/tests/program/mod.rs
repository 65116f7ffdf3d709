//! What the tests of the program share: running it, reading what it said,
//! and its processes.

#![allow(dead_code)]

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what must come, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(180);

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.args(arguments).env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn isolde(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// A hunt on SQLite that is under way, and will be until it is killed.
pub fn hunting(out: &Path, more: &[&str]) -> Child {
    let arguments = ["hunt", "sqlite", "--time", "10m", "--out", text(out)];
    let mut command = command(&[&arguments, more].concat());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| out.join("hunt.json").exists());
    child
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All that it said, on either stream.
pub fn said(output: &Output) -> String {
    stdout(output) + &stderr(output)
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[track_caller]
pub fn wait_until(happens: impl Fn() -> bool) {
    let since = Instant::now();
    while !happens() {
        assert!(since.elapsed() < PATIENCE, "it never happened");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A signal to a process that a test has started, or that Isolde has for it.
pub fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

/// The processes that a process and its threads have started.
pub fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

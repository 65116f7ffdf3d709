//! Processes that tests start, and the servers and scratch directories that
//! belong to a process of Isolde.

use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a test waits for an event that must come. Generous, because the
/// machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until a condition holds, and panics with its description if it does
/// not within [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process that a test, or Isolde on its behalf, has
/// started.
pub fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

/// The child processes of a process and its threads.
pub fn children(process: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

/// The arguments of a process, separated by spaces. Empty when it has ended.
pub fn command_line(process: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Whether a process is there.
pub fn is_running(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// All processes of this machine.
pub fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that work in the scratch directories of a process of Isolde,
/// with their arguments.
pub fn servers_of(isolde: u32) -> Vec<(u32, String)> {
    let mark = scratch_prefix(isolde);
    let others = all().into_iter().filter(|process| *process != isolde);
    let with_arguments = others.map(|process| (process, command_line(process)));
    with_arguments.filter(|(_, line)| line.contains(&mark)).collect()
}

/// The scratch directories of a process of Isolde.
pub fn scratch_directories_of(isolde: u32) -> Vec<PathBuf> {
    let mark = scratch_prefix(isolde);
    let folders = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let of_process = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&mark))
    };
    entries.flatten().map(|entry| entry.path()).filter(of_process).collect()
}

fn scratch_prefix(isolde: u32) -> String {
    format!("isolde-{isolde}-")
}

/// Asserts that neither servers nor scratch directories of a process of Isolde
/// are left.
#[track_caller]
pub fn assert_nothing_left(isolde: u32) {
    // A killed server takes a moment to leave the table of processes.
    wait_until(&format!("the servers of {isolde} end: {:?}", servers_of(isolde)), || {
        servers_of(isolde).is_empty()
    });
    wait_until("the scratch directories go", || scratch_directories_of(isolde).is_empty());
}

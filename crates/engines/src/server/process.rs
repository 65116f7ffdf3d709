//! Processes that Isolde starts: the user they run as, their end together with
//! Isolde, and their exit status.

use crate::fetch::install::Install;
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// The child has not been reaped yet, so its number has not been reused.
pub fn signal(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

/// The child processes of a process.
pub fn children(parent: u32) -> Vec<Pid> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let listed = fs::read_to_string(path).unwrap_or_default();
    listed.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// A program of an install, run as the unprivileged user where needed.
pub fn program(install: &Install, path: &Path) -> Command {
    let mut command = match install.launcher.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(path);
            command
        }
        None => Command::new(path),
    };
    command.envs(install.env.iter().map(|(k, v)| (k, v)));
    command.env("LC_ALL", "C").env("TZ", "UTC").env("HOME", "/nonexistent");
    if let Some((uid, gid)) = unprivileged() {
        command.uid(uid).gid(gid);
    }
    command
}

/// The user that servers run as when Isolde is root; they refuse root.
fn unprivileged() -> Option<(u32, u32)> {
    static UNPRIVILEGED: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *UNPRIVILEGED.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Some(numbers_of("nobody", &accounts).unwrap_or((65534, 65534)))
    })
}

/// The numbers of a user and of its group.
fn numbers_of(user: &str, accounts: &str) -> Option<(u32, u32)> {
    let line = accounts.lines().find_map(|l| l.strip_prefix(user)?.strip_prefix(':'))?;
    let mut fields = line.split(':').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

pub fn give_away(path: &Path) -> io::Result<()> {
    match unprivileged() {
        Some((uid, gid)) => chown(path, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

/// Writes a file that only the server can read.
pub fn write_for_server(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    give_away(path)
}

/// How a process ended, if it does within `patience`.
pub fn exit_status(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn tail(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Makes the kernel send `signal` to the command's process when the thread that
/// spawned it ends.
#[allow(unsafe_code)]
pub fn kill_with_parent(command: &mut Command, signal: Signal) {
    let us = rustix::process::getpid();
    // SAFETY: the closure only makes system calls that are safe between fork
    // and exec.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // The parent may have ended before the call above.
            match getppid() == Some(us) {
                true => Ok(()),
                false => Err(io::ErrorKind::NotConnected.into()),
            }
        });
    }
}

type SpawnRequest = (Command, Sender<io::Result<Child>>);

/// Spawns from a thread that lives as long as this process, in a process group
/// of its own (Ctrl-C is for Isolde, which then stops the server), with
/// `signal` sent to it when Isolde ends.
pub fn spawn_guarded(mut command: Command, signal: Signal) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<SpawnRequest>> = OnceLock::new();
    kill_with_parent(command.process_group(0), signal);
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, receiver) = channel::<SpawnRequest>();
        std::thread::spawn(move || {
            for (mut command, answer) in receiver {
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let (answer, reply) = channel();
    let gone = || io::Error::other("the spawning thread is gone");
    spawner.send((command, answer)).map_err(|_| gone())?;
    reply.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_among_the_accounts_of_the_machine() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nnobodys:x:7:8::/:\n\
                        nobody:x:65534:99:nobody:/nonexistent:/usr/sbin/nologin\n";
        assert_eq!(numbers_of("nobody", accounts), Some((65534, 99)));
        assert_eq!(numbers_of("somebody", accounts), None);
        assert_eq!(numbers_of("nobody", "nobody:x:much\n"), None);
    }
}

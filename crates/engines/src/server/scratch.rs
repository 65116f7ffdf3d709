//! Temporary directories that can be cleaned up after a crash.
//!
//! Each contains a file on which its owner holds a lock. A killed process
//! cannot clean up, but its locks are released; so the next process recognises
//! abandoned directories by the free lock, and Isolde's directories by the
//! file.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, io};
use tempfile::TempDir;

const PREFIX: &str = "isolde-";
const LOCK: &str = ".isolde-owner";
const LOCK_DRAFT: &str = ".isolde-owner.draft";

/// A directory that is removed when this is dropped.
pub struct Scratch {
    // First, so that it is removed while the lock is still held.
    dir: TempDir,
    _lock: File,
}

impl Scratch {
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// In memory where there is room: creating tables on MariaDB is 3 to 10 times
/// faster there. Otherwise the usual directory for temporary files.
fn scratch_root() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let plenty = 2 << 30;
    if free_bytes(memory).is_some_and(|free| free > plenty) {
        memory.into()
    } else {
        env::temp_dir()
    }
}

pub fn scratch_dir(what: &str) -> io::Result<Scratch> {
    let root = scratch_root();
    sweep(&root);
    make(&root, what)
}

fn make(root: &Path, what: &str) -> io::Result<Scratch> {
    // For this user only: it contains a server's socket and files.
    let dir = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-{what}-", std::process::id()))
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(root)?;
    // Locked before it gets its name: a sweep finds either no lock file and
    // ignores the directory, or a lock that is held.
    let draft = dir.path().join(LOCK_DRAFT);
    let lock = File::create(&draft)?;
    lock.try_lock()?;
    fs::rename(&draft, dir.path().join(LOCK))?;
    Ok(Scratch { dir, _lock: lock })
}

/// Removes the directories of processes that have ended.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if named && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Isolde's own by its lock file, made by this user, and not locked.
fn is_abandoned(dir: &Path) -> bool {
    let Ok(lock) = File::open(dir.join(LOCK)) else { return false };
    let me = rustix::process::geteuid().as_raw();
    lock.metadata().is_ok_and(|m| m.uid() == me) && lock.try_lock().is_ok()
}

fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_removes_only_abandoned_directories() {
        let root = tempfile::tempdir().unwrap();
        let living = make(root.path(), "x").unwrap();
        let dead = root.path().join("isolde-1-x-abc");
        fs::create_dir(&dead).unwrap();
        File::create(dead.join(LOCK)).unwrap();
        // A user's directory that happens to have such a name.
        let foreign = root.path().join("isolde-2024-notes");
        fs::create_dir(&foreign).unwrap();
        sweep(root.path());
        assert!(!dead.exists());
        assert!(living.path().exists() && foreign.exists());
    }

    #[test]
    fn sweep_keeps_a_directory_that_is_being_made() {
        let root = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        sweep(root.path());
                    }
                });
            }
            let made: Result<Vec<Scratch>, io::Error> =
                (0..500).map(|_| make(root.path(), "x")).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            for scratch in made.unwrap() {
                assert!(scratch.path().join(LOCK).exists());
            }
        });
    }

    #[test]
    fn a_scratch_directory_is_private_to_its_user() {
        let root = tempfile::tempdir().unwrap();
        let mine = make(root.path(), "x").unwrap();
        assert_eq!(mine.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}

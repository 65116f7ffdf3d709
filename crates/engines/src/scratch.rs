//! Temporary directories that are found again after a crash.
//!
//! Each holds a file on which its owner keeps a lock. A process that is killed
//! cannot tidy up, but its locks go with it; so the next one knows by the lock
//! which directories nobody owns any more, and by the file that they are
//! Isolde's.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, io};
use tempfile::TempDir;

const PREFIX: &str = "isolde-";
const LOCK: &str = ".isolde-owner";

/// A directory that goes when it is dropped.
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
/// faster there. Else where temporary files go.
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
    let dir = tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-{what}-", std::process::id()))
        .tempdir_in(root)?;
    let lock = File::create(dir.path().join(LOCK))?;
    if !try_lock(&lock) {
        return Err(io::Error::last_os_error());
    }
    Ok(Scratch { dir, _lock: lock })
}

/// Removes what processes that no longer live have left behind.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if named && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Ours by its lock file, made by this user, and nobody holds the lock.
fn is_abandoned(dir: &Path) -> bool {
    let Ok(lock) = File::open(dir.join(LOCK)) else { return false };
    // SAFETY: geteuid has no preconditions.
    let me = unsafe { libc::geteuid() };
    lock.metadata().is_ok_and(|m| m.uid() == me) && try_lock(&lock)
}

fn try_lock(file: &File) -> bool {
    // SAFETY: the descriptor is open for as long as `file` is.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

fn free_bytes(path: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `name` is a C string and `stat` has room for the answer, which
    // is read only after the call said that it wrote it.
    let stat = unsafe {
        if libc::statvfs(name.as_ptr(), stat.as_mut_ptr()) != 0 {
            return None;
        }
        stat.assume_init()
    };
    Some(stat.f_bavail * stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_owns_any_more_is_removed_and_everything_else_stays() {
        let root = tempfile::tempdir().unwrap();
        let living = make(root.path(), "x").unwrap();
        let dead = root.path().join("isolde-1-x-abc");
        fs::create_dir(&dead).unwrap();
        File::create(dead.join(LOCK)).unwrap();
        // Somebody's own directory that happens to have such a name.
        let foreign = root.path().join("isolde-2024-notes");
        fs::create_dir(&foreign).unwrap();
        sweep(root.path());
        assert!(!dead.exists());
        assert!(living.path().exists() && foreign.exists());
    }
}

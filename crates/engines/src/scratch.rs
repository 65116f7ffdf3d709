//! Temporary directories that are found again after a crash.
//!
//! Each is named after the process that owns it. A process that is killed
//! cannot tidy up, so the next one removes the directories of the dead.

use std::path::{Path, PathBuf};
use std::{fs, io};
use tempfile::TempDir;

const PREFIX: &str = "isolde-";

/// In memory where there is room: creating tables on MariaDB is 3 to 10 times
/// faster there. Else where temporary files go.
pub fn scratch_root() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let plenty = 2 << 30;
    if free_bytes(memory).is_some_and(|free| free > plenty) {
        memory.into()
    } else {
        std::env::temp_dir()
    }
}

pub fn scratch_dir(what: &str) -> io::Result<TempDir> {
    let root = scratch_root();
    sweep(&root);
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-{what}-", std::process::id()))
        .tempdir_in(root)
}

/// Removes what processes that no longer live have left behind.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX))
            .and_then(|n| n.split('-').next())
            .and_then(|pid| pid.parse::<u32>().ok());
        if let Some(pid) = owner
            && !Path::new(&format!("/proc/{pid}")).exists()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
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
    fn what_a_dead_process_left_is_removed_and_what_a_living_one_has_stays() {
        let root = tempfile::tempdir().unwrap();
        // Process ids end far below this one.
        let dead = root.path().join("isolde-4194304-x-abc");
        let living = root.path().join(format!("isolde-{}-x-abc", std::process::id()));
        let foreign = root.path().join("somebody-else");
        for dir in [&dead, &living, &foreign] {
            fs::create_dir(dir).unwrap();
        }
        sweep(root.path());
        assert!(!dead.exists());
        assert!(living.exists() && foreign.exists());
    }
}

//! A lock between processes: a lock file that the kernel releases when its
//! holder ends, however it ends.

use super::FetchError;
use super::client::Reporter;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Held as long as the file is open.
pub struct Lock {
    _file: File,
}

/// Waits until no other process holds the lock. The file stays: deleting it
/// would let two processes lock two different files of the same name.
pub fn take(path: &Path, what: &str, report: &mut Reporter) -> Result<Lock, FetchError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| FetchError::io(path, error))?;
    let begun = Instant::now();
    let mut next_report = 0;
    while file.try_lock().is_err() {
        if begun.elapsed().as_secs() >= next_report {
            report.say(format!(
                "{what}: another isolde is at it; waiting ({} s)",
                begun.elapsed().as_secs()
            ));
            next_report += 5;
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_process_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let mut quiet = |_: &str| {};
        let first = take(&path, "first", &mut Reporter { progress: &mut quiet }).unwrap();
        let release = thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            drop(first);
        });
        let mut lines = Vec::new();
        let mut note = |line: &str| lines.push(line.to_string());
        take(&path, "second", &mut Reporter { progress: &mut note }).unwrap();
        release.join().unwrap();
        assert_eq!(lines, ["second: another isolde is at it; waiting (0 s)"]);
    }
}

//! Claims the output folder. A marker file shows that a hunt created the folder, and a lock on the
//! marker that a hunt is writing to it at the moment.
//!
//! Nothing is ever deleted to make room: an empty folder is used, an earlier hunt is moved aside,
//! and any other folder is refused.

use super::files;
use crate::error::{HuntError, at};
use crate::layout::MARKER;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const TEXT: &str = "\
This folder is the output of an Isolde hunt. A new hunt with the same --out moves it aside;
--resume continues it. Without this file Isolde does not recognise the folder as its own.
";

type ClaimResult<T> = Result<T, HuntError>;

/// A folder that belongs to this hunt until the value is dropped or the process ends.
pub struct Claim {
    _marker: Marker,
    /// Where the hunt that was there before has been moved to.
    pub moved: Option<PathBuf>,
}

/// The file of a marker with its lock. Closing the file alone would not release the lock: a child
/// process that another thread is starting has the same file open until it executes its program.
struct Marker(File);

impl Drop for Marker {
    fn drop(&mut self) {
        // If it cannot be unlocked, there was no lock, or closing the file releases it.
        let _ = self.0.unlock();
    }
}

/// What is at the path of the output.
enum OutputState {
    /// Nothing, or an empty folder.
    Free,
    /// The output of an earlier hunt.
    Hunt,
}

/// A path without a slash or dot at its end: with one, a symbolic link would be followed.
pub fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Checks whether a new hunt could use the path; changes nothing.
pub fn check(path: &Path) -> ClaimResult<()> {
    match inspect(path)? {
        OutputState::Free => Ok(()),
        OutputState::Hunt => lock(path).map(drop),
    }
}

/// Claims the folder for a new hunt.
pub fn take(path: &Path) -> ClaimResult<Claim> {
    let moved = match inspect(path)? {
        OutputState::Free => None,
        OutputState::Hunt => {
            let marker = lock(path)?;
            if only_marked(path)? {
                return begin(path, marker, None);
            }
            Some(move_aside(path)?)
        }
    };
    at(path, fs::create_dir_all(path))?;
    let place = path.join(MARKER);
    let marker = match File::create_new(&place) {
        // Another hunt has just claimed it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(busy(path)),
        marker => at(&place, marker)?,
    };
    begin(path, locked(path, marker)?, moved)
}

/// Claims the folder of an earlier hunt to resume it.
pub fn take_again(path: &Path) -> ClaimResult<Claim> {
    match inspect(path)? {
        OutputState::Free => Err(HuntError::NoHunt(path.into())),
        OutputState::Hunt => {
            let marker = lock(path)?;
            if let Some(link) = at(path, files::first_link(path))? {
                return Err(HuntError::LinkInside(link));
            }
            begin(path, marker, None)
        }
    }
}

fn inspect(path: &Path) -> ClaimResult<OutputState> {
    let meta = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(OutputState::Free),
        found => at(path, found)?,
    };
    if meta.file_type().is_symlink() {
        return Err(HuntError::OutputIsLink(path.into()));
    }
    if !meta.is_dir() {
        return Err(HuntError::OutputIsFile(path.into()));
    }
    if at(path, fs::canonicalize(path))?.parent().is_none() {
        return Err(HuntError::OutputIsRoot(path.into()));
    }
    let marker = path.join(MARKER);
    match fs::symlink_metadata(&marker) {
        Ok(meta) if meta.is_file() => return Ok(OutputState::Hunt),
        Ok(_) => return Err(HuntError::MarkerNotPlain(marker)),
        Err(error) if error.kind() != ErrorKind::NotFound => return at(&marker, Err(error)),
        Err(_) => {}
    }
    let mut entries = at(path, fs::read_dir(path))?;
    match entries.next() {
        None => Ok(OutputState::Free),
        Some(_) => Err(HuntError::NotEmpty(path.into())),
    }
}

/// Opens and locks the marker of an earlier hunt.
fn lock(path: &Path) -> ClaimResult<Marker> {
    let place = path.join(MARKER);
    let marker = at(&place, OpenOptions::new().read(true).write(true).open(&place))?;
    let marker = locked(path, marker)?;
    // The folder may have been moved aside between opening and locking the marker.
    let same = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    match (marker.0.metadata(), fs::symlink_metadata(&place)) {
        (Ok(mine), Ok(there)) if same(&mine, &there) => Ok(marker),
        _ => Err(busy(path)),
    }
}

fn locked(path: &Path, marker: File) -> ClaimResult<Marker> {
    match marker.try_lock() {
        Ok(()) => Ok(Marker(marker)),
        Err(TryLockError::WouldBlock) => Err(busy(path)),
        // A file system without locks is used without one.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
            Ok(Marker(marker))
        }
        Err(TryLockError::Error(error)) => at(&path.join(MARKER), Err(error)),
    }
}

fn busy(path: &Path) -> HuntError {
    let mut text = String::new();
    let read = File::open(path.join(MARKER)).and_then(|f| f.take(1000).read_to_string(&mut text));
    let number = text.lines().last().and_then(|l| l.strip_prefix("process "));
    let process = number.filter(|_| read.is_ok()).map(String::from);
    HuntError::Busy { path: path.into(), process }
}

fn begin(path: &Path, mut marker: Marker, moved: Option<PathBuf>) -> ClaimResult<Claim> {
    let text = format!("{TEXT}process {}\n", std::process::id());
    let written = marker.0.set_len(0).and_then(|()| marker.0.write_all(text.as_bytes()));
    at(&path.join(MARKER), written)?;
    Ok(Claim { _marker: marker, moved })
}

/// Whether a hunt ended before it had written anything but its marker.
fn only_marked(path: &Path) -> ClaimResult<bool> {
    let entries = at(path, fs::read_dir(path))?;
    Ok(entries.count() == 1)
}

/// Renames the folder to `isolde.out.old`, or `.old.2` and so on where that exists: a folder that
/// was moved aside stays until its owner deletes it.
fn move_aside(path: &Path) -> ClaimResult<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(HuntError::NoNameToMove(path.into()));
    };
    let names = (1_u32..).map(|n| {
        let mut old = name.to_owned();
        old.push(if n == 1 { ".old".to_string() } else { format!(".old.{n}") });
        path.with_file_name(old)
    });
    let is_free = |p: &PathBuf| {
        fs::symlink_metadata(p).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let Some(old) = names.take(1_000_000).find(is_free) else {
        return Err(HuntError::AllNamesTaken(path.into()));
    };
    match fs::rename(path, &old) {
        Ok(()) => Ok(old),
        Err(error) => Err(HuntError::NotMoved { from: path.into(), to: old, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn refused(path: &Path) -> String {
        let checked = check(path).unwrap_err().to_string();
        let taken = take(path).err().unwrap().to_string();
        assert_eq!(checked, taken, "the check reports what claiming would report");
        taken
    }

    /// A hunt that has ended, with a file that identifies it.
    fn ended(path: &Path, note: &str) {
        drop(take(path).unwrap());
        fs::write(path.join("note"), note).unwrap();
    }

    #[test]
    fn a_new_or_empty_folder_is_claimed_and_marked() {
        let dir = tempfile::tempdir().unwrap();
        let (new, empty) = (dir.path().join("deep/new"), dir.path().join("empty"));
        fs::create_dir(&empty).unwrap();
        for path in [&new, &empty] {
            check(path).unwrap();
            assert_eq!(take(path).unwrap().moved, None);
            assert!(fs::read_to_string(path.join(MARKER)).unwrap().contains("Isolde hunt"));
            // A hunt that never started leaves nothing worth keeping.
            assert_eq!(take(path).unwrap().moved, None);
        }
    }

    #[test]
    fn a_folder_without_a_marker_is_refused_and_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let foreign = dir.path().join("foreign");
        fs::create_dir_all(foreign.join("findings/mine")).unwrap();
        fs::write(foreign.join("hunt.json"), "{}").unwrap();
        let said = refused(&foreign);
        assert!(said.contains("is not empty") && said.contains("name another"), "{said}");
        assert!(foreign.join("findings/mine").is_dir() && !foreign.join(MARKER).exists());
        assert!(take_again(&foreign).is_err());
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(refused(&dir.path().join("file")).contains("is a file"));
        for root in ["/", "/tmp/..", "//"] {
            assert!(refused(Path::new(root)).contains("root of the file system"), "{root}");
        }
        fs::create_dir(foreign.join(MARKER)).unwrap();
        assert!(refused(&foreign).contains("not a plain file"));
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        ended(&real, "mine");
        symlink(&real, &link).unwrap();
        assert!(refused(&link).contains("is a symbolic link"));
        assert!(refused(&plain(&dir.path().join("link/."))).contains("is a symbolic link"));
        assert!(take_again(&link).is_err());
        symlink(dir.path(), real.join("findings")).unwrap();
        let said = take_again(&real).err().unwrap().to_string();
        assert!(said.contains("findings is a symbolic link"), "{said}");
        let marker = real.join(MARKER);
        fs::rename(&marker, dir.path().join("marker")).unwrap();
        symlink(dir.path().join("marker"), &marker).unwrap();
        assert!(refused(&real).contains("not a plain file"));
    }

    #[test]
    fn earlier_hunts_are_moved_aside_and_all_of_them_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mut names = Vec::new();
        for note in ["first", "second", "third"] {
            ended(&at("out"), note);
            let moved = take(&at("out")).unwrap().moved.unwrap();
            assert_eq!(fs::read_to_string(moved.join("note")).unwrap(), note);
            names.push(moved);
        }
        assert_eq!(names, [at("out.old"), at("out.old.2"), at("out.old.3")]);
        assert!(take_again(&at("out.old")).is_ok(), "a hunt that was moved aside can be resumed");
    }

    /// Other threads start child processes all the time: servers in a hunt, and here as many as
    /// possible.
    #[test]
    fn a_folder_is_released_at_once_while_other_threads_start_children() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        std::process::Command::new("true").status().unwrap();
                    }
                });
            }
            let taken = (0..2000).map(|_| take(&path).map(drop)).collect::<Result<Vec<_>, _>>();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(taken.is_ok(), "{}", taken.unwrap_err());
        });
    }

    #[test]
    fn a_folder_that_a_hunt_is_writing_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let first = take(&path).unwrap();
        let said = refused(&path);
        assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
        assert!(take_again(&path).is_err());
        drop(first);
        assert!(take_again(&path).is_ok());
    }

    #[test]
    fn of_many_concurrent_claims_one_succeeds_and_nothing_is_moved() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let taken: Vec<Claim> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..16).map(|_| scope.spawn(|| take(&path).ok())).collect();
            takers.into_iter().filter_map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(taken.len(), 1);
        assert!(!dir.path().join("out.old").exists());
    }
}

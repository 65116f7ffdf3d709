//! Reads and writes files in a folder that may come from elsewhere: symbolic links are never
//! followed, only plain files are read, and files that must not be torn are written under another
//! name and renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The bytes of a plain file; none where it does not exist.
pub fn read(path: &Path, largest: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(meta) => is_plain(&meta)?,
    }
    let size = fs::metadata(path)?.len();
    if size > largest {
        return Err(io::Error::other(format!("it has {size} bytes, which is too large")));
    }
    fs::read(path).map(Some)
}

fn is_plain(meta: &fs::Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_symlink() { "a symbolic link" } else { "not a plain file" };
    Err(io::Error::other(format!("it is {what}, which Isolde does not read")))
}

/// Writes a whole file or nothing. A symbolic link in its place is replaced.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let temporary = PathBuf::from(name);
    // A remainder of a failed write, or a symbolic link: neither is written to.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Appends to a plain file, which is created if it does not exist.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) => is_plain(&meta)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)
}

/// Copies the plain files of a folder to another one, which is created.
pub fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        is_plain(&entry.metadata()?)
            .map_err(|e| io::Error::other(format!("{}: {e}", entry.path().display())))?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The first symbolic link in a folder or in any folder inside of it.
pub fn first_link(folder: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            return Ok(Some(entry.path()));
        }
        if kind.is_dir()
            && let Some(link) = first_link(&entry.path())?
        {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_symbolic_link_is_replaced_or_refused_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        for link in ["hunt.json", "hunt.json.new", "lines"] {
            symlink(at("precious"), at(link)).unwrap();
        }
        assert!(read(&at("hunt.json"), 100).unwrap_err().to_string().contains("symbolic link"));
        assert!(append(&at("lines"), b"more").is_err());
        replace(&at("hunt.json"), b"new").unwrap();
        assert_eq!(read(&at("hunt.json"), 100).unwrap().unwrap(), b"new");
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
        assert!(copy_all(dir.path(), &at("copy")).is_err(), "a symbolic link is not copied");
        assert_eq!(first_link(dir.path()).unwrap(), Some(at("lines")));
        fs::remove_file(at("lines")).unwrap();
        assert_eq!(first_link(dir.path()).unwrap(), None);
    }

    #[test]
    fn reading_distinguishes_missing_large_and_special_files() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&dir.path().join("none"), 100).unwrap(), None);
        assert!(read(dir.path(), 100).unwrap_err().to_string().contains("not a plain file"));
        assert!(read(Path::new("/dev/zero"), 100).is_err());
        fs::write(dir.path().join("large"), [0; 101]).unwrap();
        assert!(read(&dir.path().join("large"), 100).unwrap_err().to_string().contains("101"));
    }
}

//! Reading and writing in a folder that may have come from elsewhere: a link
//! is never followed, nothing but a plain file is read, and what must not be
//! torn is written beside its place and renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The bytes of a plain file; none where there is no such file.
pub fn read(path: &Path, largest: u64) -> io::Result<Option<Vec<u8>>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(meta) => is_plain(&meta)?,
    }
    let size = fs::metadata(path)?.len();
    if size > largest {
        return Err(io::Error::other(format!("it has {size} bytes, too many to read")));
    }
    fs::read(path).map(Some)
}

fn is_plain(meta: &fs::Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_symlink() { "a symbolic link" } else { "no plain file" };
    Err(io::Error::other(format!("it is {what}, which Isolde does not follow")))
}

/// Writes a file whole or not at all. A link in its place is replaced.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    // What is left of a write that failed, or a link: neither is written to.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = File::create_new(&beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) => is_plain(&meta)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)
}

/// The plain files of a folder go to another one, which is made for them.
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

/// The first symbolic link in a folder and in all that is in it.
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
    fn a_link_is_replaced_or_refused_and_what_it_points_to_stays() {
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
        assert!(copy_all(dir.path(), &at("copy")).is_err(), "a link is not copied");
        assert_eq!(first_link(dir.path()).unwrap(), Some(at("lines")));
        fs::remove_file(at("lines")).unwrap();
        assert_eq!(first_link(dir.path()).unwrap(), None);
    }

    #[test]
    fn what_is_not_there_too_large_or_no_file_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&dir.path().join("none"), 100).unwrap(), None);
        assert!(read(dir.path(), 100).unwrap_err().to_string().contains("no plain file"));
        assert!(read(Path::new("/dev/zero"), 100).is_err());
        fs::write(dir.path().join("large"), [0; 101]).unwrap();
        assert!(read(&dir.path().join("large"), 100).unwrap_err().to_string().contains("101"));
    }
}

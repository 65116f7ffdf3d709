//! Unpacks what the clients download: zip files (which jars and some
//! distributions are) with the zip crate, tar files with the machine's tar.
//! Neither may write outside of its folder.

use super::FetchError;
use super::client::{self, Reporter};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use zip::ZipArchive;
use zip::read::ZipFile;

/// Unpacks the entries whose name `keep` accepts, and returns their number. The
/// zip crate verifies every file's CRC.
pub fn unzip(
    report: &mut Reporter,
    zip: &Path,
    into: &Path,
    keep: &dyn Fn(&str) -> bool,
) -> Result<usize, FetchError> {
    let broken = |reason: String| FetchError::Unpack { archive: zip.to_path_buf(), reason };
    let file = File::open(zip).map_err(|error| FetchError::io(zip, error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| broken(e.to_string()))?;
    let (mut count, mut written, mut last_report) = (0, 0, Instant::now());
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| broken(e.to_string()))?;
        let name = entry.name().map_err(|e| broken(e.to_string()))?.into_owned();
        if !keep(&name) {
            continue;
        }
        extract(&mut entry, &name, into).map_err(|e| broken(format!("{name}: {e}")))?;
        count += 1;
        written += entry.size();
        if last_report.elapsed() >= client::TICK {
            last_report = Instant::now();
            report.say(format!("unpacking: {count} files, {}", client::human(written)));
        }
    }
    Ok(count)
}

fn extract<R: Read>(entry: &mut ZipFile<'_, R>, name: &str, into: &Path) -> io::Result<()> {
    let path = safe_path(name)?;
    let target = into.join(&path);
    if entry.is_dir() {
        return create_folders(into, &path);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    create_folders(into, folder)?;
    if entry.is_symlink() {
        let mut aim = String::new();
        entry.read_to_string(&mut aim)?;
        check_aim(folder, &aim)?;
        return symlink(aim, target);
    }
    // A new file: an existing one may be a link to another place.
    let mut out = OpenOptions::new().write(true).create_new(true).open(&target)?;
    io::copy(entry, &mut out)?;
    if entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0) {
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// A name that leads out of the target folder is an attack or a mistake.
fn safe_path(name: &str) -> io::Result<PathBuf> {
    let path = PathBuf::from(name);
    match path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        true => Ok(path),
        false => Err(invalid("this name leads out of the folder")),
    }
}

/// Creates the folders of a path one by one. None of them may be a link from
/// the archive, which could lead anywhere.
fn create_folders(into: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(into)?;
    let mut folder = into.to_path_buf();
    for part in path.components() {
        folder.push(part);
        match fs::symlink_metadata(&folder) {
            Ok(there) if there.is_dir() => {}
            Ok(_) => return Err(invalid("its path leads through something that is no folder")),
            Err(_) => fs::create_dir(&folder)?,
        }
    }
    Ok(())
}

/// A link may point only to files of the archive.
fn check_aim(folder: &Path, aim: &str) -> io::Result<()> {
    let mut depth = folder.components().filter(|c| matches!(c, Component::Normal(_))).count();
    for part in Path::new(aim).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return Err(invalid("this link leads out of the folder")),
        }
    }
    Ok(())
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Unpacks .tgz, .tar.gz, .txz: tar detects the format. Removes `strip` leading
/// folders.
pub fn untar(
    report: &mut Reporter,
    archive: &Path,
    into: &Path,
    strip: usize,
) -> Result<(), FetchError> {
    fs::create_dir_all(into).map_err(|error| FetchError::io(into, error))?;
    let mut command = Command::new(client::require("tar")?);
    command
        .args(["--extract", "--no-same-owner", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(into)
        .arg(format!("--strip-components={strip}"));
    client::run(report, "tar: unpacking", &mut command, Some(into)).map(drop).map_err(|error| {
        FetchError::Unpack { archive: archive.to_path_buf(), reason: error.to_string() }
    })
}

/// Makes files readable for all, and executable files executable for all:
/// servers run as another user when Isolde is root.
pub fn make_readable(dir: &Path) -> io::Result<()> {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            make_readable(&entry.path())?;
        } else if kind.is_file() {
            let mode = entry.metadata()?.permissions().mode();
            let wanted = if mode & 0o111 != 0 { 0o755 } else { 0o644 };
            if mode & 0o777 != wanted {
                fs::set_permissions(entry.path(), fs::Permissions::from_mode(wanted))?;
            }
        }
    }
    Ok(())
}

/// Makes every file of a folder executable, where an archive lost the bits.
pub fn make_executable(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    #[derive(Clone, Copy)]
    enum Packed<'a> {
        Folder(&'a str),
        File(&'a str, &'a [u8], u32),
        Link(&'a str, &'a str),
    }
    use Packed::{File as Plain, Folder, Link};

    fn zip(entries: &[Packed]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for entry in entries {
            let options = SimpleFileOptions::default();
            match *entry {
                Folder(name) => writer.add_directory(name, options).unwrap(),
                Link(name, aim) => writer.add_symlink(name, aim, options).unwrap(),
                Plain(name, data, mode) => {
                    let method = match data.len() {
                        0..100 => CompressionMethod::Stored,
                        _ => CompressionMethod::Deflated,
                    };
                    let options = options.unix_permissions(mode).compression_method(method);
                    writer.start_file(name, options).unwrap();
                    writer.write_all(data).unwrap();
                }
            }
        }
        writer.finish().unwrap().into_inner()
    }

    fn unpacked(
        bytes: &[u8],
        unpack: impl FnOnce(&mut Reporter, &Path, &Path) -> Result<usize, FetchError>,
    ) -> (tempfile::TempDir, Result<usize, FetchError>) {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("archive");
        fs::write(&archive, bytes).unwrap();
        let mut quiet = |_: &str| {};
        let mut report = Reporter { progress: &mut quiet };
        let count = unpack(&mut report, &archive, &dir.path().join("out"));
        (dir, count)
    }

    fn unzip_bytes(
        bytes: &[u8],
        keep: &dyn Fn(&str) -> bool,
    ) -> (tempfile::TempDir, Result<usize, FetchError>) {
        unpacked(bytes, |report, archive, into| unzip(report, archive, into, keep))
    }

    #[test]
    fn files_folders_and_links_come_out_of_a_zip() {
        let text = b"hello ".repeat(1000);
        let bytes = zip(&[
            Folder("bin/"),
            Plain("bin/server", &text, 0o755),
            Link("bin/alias", "server"),
            Link("bin/notes", "../notes"),
            Plain("notes", b"plain", 0o644),
            Plain("unwanted", b"x", 0o644),
        ]);
        let (dir, count) = unzip_bytes(&bytes, &|name| name != "unwanted");
        assert_eq!(count.unwrap(), 5);
        let out = dir.path().join("out");
        assert_eq!(fs::read(out.join("bin/alias")).unwrap(), text);
        assert_eq!(out.join("bin/server").metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read(out.join("bin/notes")).unwrap(), b"plain");
        assert!(!out.join("unwanted").exists());
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut bytes = zip(&[Plain("server", b"trustworthy", 0o644)]);
        let at = bytes.windows(5).position(|w| w == b"trust").unwrap();
        bytes[at] ^= 1;
        let (_dir, count) = unzip_bytes(&bytes, &|_| true);
        assert!(count.unwrap_err().to_string().contains("checksum"));
    }

    /// Everything below a folder, links not followed.
    fn below(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found = Vec::new();
        for entry in entries {
            found.push(entry.path());
            if entry.file_type().unwrap().is_dir() {
                found.extend(below(&entry.path()));
            }
        }
        found
    }

    #[test]
    fn a_zip_cannot_write_outside_of_its_folder() {
        let elsewhere = tempfile::tempdir().unwrap();
        let outside = elsewhere.path().to_str().unwrap().to_string();
        let absolute = format!("{outside}/evil");
        for entries in [
            vec![Plain("../evil", b"x", 0o644)],
            vec![Plain("a/../../evil", b"x", 0o644)],
            vec![Plain(&absolute, b"x", 0o644)],
            vec![Folder("../evil/")],
            // A link out of the folder, and a file through it.
            vec![Link("door", &outside), Plain("door/evil", b"x", 0o644)],
            vec![Link("door", ".."), Plain("door/evil", b"x", 0o644)],
            vec![Link("a/door", "../.."), Plain("a/door/evil", b"x", 0o644)],
            // One that points inside, and becomes a way out with another.
            vec![Link("a/b", "."), Link("c", "a/b/../.."), Plain("c/evil", b"x", 0o644)],
            vec![Link("a", "."), Link("a/b", "..")],
            vec![Link("door", &outside), Folder("door/evil/")],
            vec![Link("evil", &absolute)],
        ] {
            let (dir, count) = unzip_bytes(&zip(&entries), &|_| true);
            let said = count.map(|n| format!("{n} files")).unwrap_err().to_string();
            assert!(said.contains("leads"), "{said}");
            assert!(!dir.path().join("evil").exists());
            assert_eq!(below(elsewhere.path()), Vec::<PathBuf>::new());
        }
    }

    #[test]
    fn half_a_zip_is_an_error() {
        let bytes = zip(&[Plain("server", b"whole", 0o644)]);
        let (_dir, count) = unzip_bytes(&bytes[..bytes.len() / 2], &|_| true);
        assert!(count.is_err());
    }

    /// The machine's tar must not do it either.
    #[test]
    fn a_tar_cannot_write_outside_of_its_folder() {
        let elsewhere = tempfile::tempdir().unwrap();
        let made = tempfile::tempdir().unwrap();
        let tar = made.path().join("evil.tar");
        let run = |mode: &str, what: &[&str]| {
            let mut command = Command::new("tar");
            command.arg(mode).arg(&tar).arg("-C").arg(made.path()).args(what);
            assert!(command.status().unwrap().success());
        };
        symlink(elsewhere.path(), made.path().join("door")).unwrap();
        run("-cf", &["door"]);
        fs::remove_file(made.path().join("door")).unwrap();
        fs::create_dir(made.path().join("door")).unwrap();
        fs::write(made.path().join("door/evil"), "x").unwrap();
        run("-rf", &["door/evil"]);
        run("-rf", &["-P", "--transform=s,door/,../,", "door/evil"]);
        let bytes = fs::read(&tar).unwrap();
        let (dir, _) =
            unpacked(&bytes, |report, archive, into| untar(report, archive, into, 0).map(|()| 0));
        assert_eq!(below(elsewhere.path()), Vec::<PathBuf>::new());
        assert!(!dir.path().join("evil").exists());
    }
}

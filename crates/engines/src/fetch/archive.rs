//! Unpacking what the clients bring: zip files (which is what jars and some
//! distributions are) by ourselves, tar files through the machine's tar.

use super::FetchError;
use super::client::{self, Reporter};
use flate2::{Crc, read::DeflateDecoder};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const END_OF_DIRECTORY: u32 = 0x0605_4b50;
const DIRECTORY_ENTRY: u32 = 0x0201_4b50;
const END_SIZE: u64 = 22;
const LONGEST_COMMENT: u64 = 65_535;

struct Entry {
    name: String,
    stored: bool,
    crc: u32,
    packed: u64,
    size: u64,
    /// Unix permissions and file type, 0 where the archive has none.
    mode: u32,
    offset: u64,
}

/// Unpacks the entries whose name `keep` accepts, and answers how many.
/// Every file's CRC is compared.
pub fn unzip(
    report: &mut Reporter,
    zip: &Path,
    into: &Path,
    keep: &dyn Fn(&str) -> bool,
) -> Result<usize, FetchError> {
    let broken = |reason: String| FetchError::Unpack { archive: zip.to_path_buf(), reason };
    let mut file = File::open(zip).map_err(|error| FetchError::io(zip, error))?;
    let entries = directory(&mut file).map_err(|error| broken(error.to_string()))?;
    let (mut count, mut written, mut told) = (0, 0, Instant::now());
    for entry in entries.iter().filter(|entry| keep(&entry.name)) {
        extract(&mut file, entry, into)
            .map_err(|error| broken(format!("{}: {error}", entry.name)))?;
        count += 1;
        written += entry.size;
        if told.elapsed() >= client::TICK {
            told = Instant::now();
            report.say(format!("unpacking: {count} files, {}", client::human(written)));
        }
    }
    Ok(count)
}

fn directory(file: &mut File) -> io::Result<Vec<Entry>> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail = length.min(END_SIZE + LONGEST_COMMENT);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = vec![0; tail as usize];
    file.read_exact(&mut bytes)?;
    let end = (0..bytes.len().saturating_sub(END_SIZE as usize - 1))
        .rev()
        .find(|&at| u32_at(&bytes, at) == Some(END_OF_DIRECTORY))
        .ok_or_else(|| invalid("this is no zip file, or it was cut short"))?;
    let count = u16_at(&bytes, end + 10).unwrap_or(0);
    let size = u32_at(&bytes, end + 12).unwrap_or(0);
    let start = u32_at(&bytes, end + 16).unwrap_or(0);
    if start == u32::MAX || count == u16::MAX {
        return Err(invalid("zip64 archives are not read here"));
    }
    if u64::from(start) + u64::from(size) > length {
        return Err(invalid("the zip directory lies outside of the file"));
    }
    file.seek(SeekFrom::Start(start.into()))?;
    let mut bytes = vec![0; size as usize];
    file.read_exact(&mut bytes)?;
    let mut entries = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let (entry, length) =
            directory_entry(&bytes[at..]).ok_or_else(|| invalid("broken zip directory"))?;
        at += length;
        entries.push(entry?);
    }
    Ok(entries)
}

/// One entry and its length in the directory; None where it does not fit.
fn directory_entry(bytes: &[u8]) -> Option<(io::Result<Entry>, usize)> {
    if u32_at(bytes, 0)? != DIRECTORY_ENTRY {
        return None;
    }
    let method = u16_at(bytes, 10)?;
    let name_length = usize::from(u16_at(bytes, 28)?);
    let rest = usize::from(u16_at(bytes, 30)?) + usize::from(u16_at(bytes, 32)?);
    let name = String::from_utf8_lossy(bytes.get(46..46 + name_length)?).into_owned();
    let entry = Entry {
        stored: method == 0,
        crc: u32_at(bytes, 16)?,
        packed: u32_at(bytes, 20)?.into(),
        size: u32_at(bytes, 24)?.into(),
        mode: u32_at(bytes, 38)? >> 16,
        offset: u32_at(bytes, 42)?.into(),
        name,
    };
    let length = 46 + name_length + rest;
    bytes.get(..length)?;
    Some(match method {
        0 | 8 => (Ok(entry), length),
        _ => (Err(invalid(&format!("{}: compression {method} is unknown", entry.name))), length),
    })
}

fn extract(file: &mut File, entry: &Entry, into: &Path) -> io::Result<()> {
    let target = into.join(safe_path(&entry.name)?);
    if entry.name.ends_with('/') {
        return fs::create_dir_all(target);
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    // The local header repeats name and extra field, at lengths of its own.
    file.seek(SeekFrom::Start(entry.offset))?;
    let mut header = [0; 30];
    file.read_exact(&mut header)?;
    let skip = u16_at(&header, 26).unwrap_or(0) + u16_at(&header, 28).unwrap_or(0);
    file.seek(SeekFrom::Current(skip.into()))?;
    let packed = file.take(entry.packed);
    let mut plain: Box<dyn Read> =
        if entry.stored { Box::new(packed) } else { Box::new(DeflateDecoder::new(packed)) };

    if entry.mode & 0o170_000 == 0o120_000 {
        let mut aim = String::new();
        plain.read_to_string(&mut aim)?;
        return symlink(aim, target);
    }
    let mut out = File::create(&target)?;
    let (mut crc, mut size, mut buffer) = (Crc::new(), 0, vec![0; 1 << 16]);
    loop {
        let count = plain.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        crc.update(&buffer[..count]);
        size += count as u64;
        out.write_all(&buffer[..count])?;
    }
    if crc.sum() != entry.crc || size != entry.size {
        return Err(invalid("the checksum does not match; fetch it again"));
    }
    if entry.mode & 0o111 != 0 {
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

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Unpacks .tgz, .tar.gz, .txz: tar finds out which. `strip` leading folders go.
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

/// Servers run as another user when Isolde is root: everyone may read, and
/// what was executable for someone is so for all.
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
    use flate2::{Compression, write::DeflateEncoder};

    struct Packed<'a> {
        name: &'a str,
        data: &'a [u8],
        mode: u32,
        deflate: bool,
    }

    /// A zip file by the book, small enough to be wrong on purpose.
    fn zip(files: &[Packed]) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for file in files {
            let mut crc = Crc::new();
            crc.update(file.data);
            let packed = if file.deflate {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(file.data).unwrap();
                encoder.finish().unwrap()
            } else {
                file.data.to_vec()
            };
            let offset = out.len() as u32;
            let method: u16 = if file.deflate { 8 } else { 0 };
            let mut common = Vec::new();
            common.extend([20, 0, 0, 0]);
            common.extend(method.to_le_bytes());
            common.extend([0; 4]);
            common.extend(crc.sum().to_le_bytes());
            common.extend((packed.len() as u32).to_le_bytes());
            common.extend((file.data.len() as u32).to_le_bytes());
            common.extend((file.name.len() as u16).to_le_bytes());
            common.extend([0, 0]);
            out.extend(0x0403_4b50_u32.to_le_bytes());
            out.extend(&common);
            out.extend(file.name.as_bytes());
            out.extend(packed);
            directory.extend(DIRECTORY_ENTRY.to_le_bytes());
            directory.extend([20, 3]);
            directory.extend(&common);
            directory.extend([0; 6]);
            directory.extend((file.mode << 16).to_le_bytes());
            directory.extend(offset.to_le_bytes());
            directory.extend(file.name.as_bytes());
        }
        let start = out.len() as u32;
        out.extend(&directory);
        out.extend(END_OF_DIRECTORY.to_le_bytes());
        out.extend([0; 4]);
        out.extend(
            [(files.len() as u16).to_le_bytes(), (files.len() as u16).to_le_bytes()].concat(),
        );
        out.extend((directory.len() as u32).to_le_bytes());
        out.extend(start.to_le_bytes());
        out.extend([0, 0]);
        out
    }

    fn unzip_bytes(
        bytes: &[u8],
        keep: &dyn Fn(&str) -> bool,
    ) -> (tempfile::TempDir, Result<usize, FetchError>) {
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("a.zip");
        fs::write(&archive, bytes).unwrap();
        let mut quiet = |_: &str| {};
        let mut report = Reporter { progress: &mut quiet };
        let count = unzip(&mut report, &archive, &dir.path().join("out"), keep);
        (dir, count)
    }

    #[test]
    fn files_folders_and_links_come_out_of_a_zip() {
        let text = b"hello ".repeat(1000);
        let bytes = zip(&[
            Packed { name: "bin/", data: b"", mode: 0o40_755, deflate: false },
            Packed { name: "bin/server", data: &text, mode: 0o100_755, deflate: true },
            Packed { name: "bin/alias", data: b"server", mode: 0o120_777, deflate: false },
            Packed { name: "notes", data: b"plain", mode: 0, deflate: false },
            Packed { name: "unwanted", data: b"x", mode: 0, deflate: false },
        ]);
        let (dir, count) = unzip_bytes(&bytes, &|name| name != "unwanted");
        assert_eq!(count.unwrap(), 4);
        let out = dir.path().join("out");
        assert_eq!(fs::read(out.join("bin/alias")).unwrap(), text);
        assert_eq!(out.join("bin/server").metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read(out.join("notes")).unwrap(), b"plain");
        assert!(!out.join("unwanted").exists());
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut bytes =
            zip(&[Packed { name: "server", data: b"trustworthy", mode: 0, deflate: false }]);
        bytes[30 + "server".len()] ^= 1;
        let (_dir, count) = unzip_bytes(&bytes, &|_| true);
        assert!(count.unwrap_err().to_string().contains("checksum"));
    }

    #[test]
    fn a_zip_cannot_write_outside_of_its_folder() {
        let bytes = zip(&[Packed { name: "../evil", data: b"x", mode: 0, deflate: false }]);
        let (dir, count) = unzip_bytes(&bytes, &|_| true);
        assert!(count.is_err());
        assert!(!dir.path().join("evil").exists());
    }

    #[test]
    fn half_a_zip_is_an_error() {
        let bytes = zip(&[Packed { name: "server", data: b"whole", mode: 0, deflate: true }]);
        let (_dir, count) = unzip_bytes(&bytes[..bytes.len() / 2], &|_| true);
        assert!(count.unwrap_err().to_string().contains("cut short"));
    }
}

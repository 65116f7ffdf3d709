//! Libraries that an unpacked server needs and the machine does not have,
//! unpacked next to it: nothing is installed system-wide.

use super::FetchError;
use super::apt::Apt;
use super::client::Reporter;
use super::job::Job;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library by the name that programs load, and its sources: a package and the
/// file in it. The names differ between releases, so the first package that
/// exists is used.
const KNOWN: &[(&str, &[(&str, &str)])] = &[
    ("libaio.so.1", &[("libaio1", "libaio.so.1"), ("libaio1t64", "libaio.so.1t64")]),
    ("libnuma.so.1", &[("libnuma1", "libnuma.so.1")]),
    ("libncurses.so.5", &[("libncurses5", "libncurses.so.5")]),
    ("libtinfo.so.5", &[("libtinfo5", "libtinfo.so.5")]),
    ("libcrypt.so.1", &[("libcrypt1", "libcrypt.so.1")]),
    // The interface that MariaDB uses did not change.
    ("libjemalloc.so.1", &[("libjemalloc2", "libjemalloc.so.2")]),
];

/// The folder of the install for the extra libraries.
const FOLDER: &str = "isolde-libs";

/// Determines the missing libraries, fetches them, and returns the environment
/// in which the server finds them.
pub fn complete(server: &Path, job: &mut Job) -> Result<Vec<(String, String)>, FetchError> {
    let program = job.stage.join(server);
    if missing(&program, &[]).is_empty() {
        return Ok(Vec::new());
    }
    // Some archives contain libraries in a folder that the loader does not
    // search.
    let brought = job.stage.join("libs");
    let mut folders: Vec<PathBuf> = brought.is_dir().then_some(brought).into_iter().collect();
    let lacking = missing(&program, &folders);
    if !lacking.is_empty() {
        let into = job.stage.join(FOLDER);
        bring(&lacking, &into, job)?;
        folders.push(into);
    }
    let still = missing(&program, &folders);
    if !still.is_empty() {
        return Err(FetchError::DoesNotRun {
            reason: format!("install the libraries it needs: {}", still.join(", ")),
        });
    }
    let path: Vec<String> = folders
        .iter()
        .filter_map(|folder| folder.strip_prefix(&job.stage).ok())
        .map(|folder| job.home.join(folder).display().to_string())
        .collect();
    Ok(vec![("LD_LIBRARY_PATH".into(), path.join(":"))])
}

/// The libraries that the dynamic loader does not find.
fn missing(program: &Path, folders: &[PathBuf]) -> Vec<String> {
    let path: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    let mut command = Command::new("ldd");
    command.arg(program).env("LC_ALL", "C");
    if !path.is_empty() {
        command.env("LD_LIBRARY_PATH", path.join(":"));
    }
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    not_found(&String::from_utf8_lossy(&output))
}

fn not_found(ldd: &str) -> Vec<String> {
    ldd.lines()
        .filter(|line| line.contains("=> not found"))
        .filter_map(|line| line.split_whitespace().next())
        .map(String::from)
        .collect()
}

fn bring(libraries: &[String], into: &Path, job: &mut Job) -> Result<(), FetchError> {
    let io = |error| FetchError::io(into, error);
    let unpacked = job.stage.join(".libraries");
    fs::create_dir_all(into).map_err(io)?;
    let apt = Apt::open(job.cache, None, job.report)?;
    for library in libraries {
        let Some((_, sources)) = KNOWN.iter().find(|(name, _)| name == library) else { continue };
        let Some((package, file)) = available(&apt, sources, job.report)? else { continue };
        job.report.say(format!("apt-get: downloading {package} for {library}"));
        apt.unpack(&[package.to_string()], &unpacked, job.report)?;
        if let Some(found) = find_file(&unpacked, file) {
            let real = found.canonicalize().map_err(io)?;
            let name = real.file_name().unwrap_or_default().to_owned();
            fs::copy(&real, into.join(&name)).map_err(io)?;
            if name != library.as_str() {
                symlink(&name, into.join(library)).map_err(io)?;
            }
        }
    }
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked).map_err(io)?;
    }
    Ok(())
}

fn available(
    apt: &Apt,
    sources: &'static [(&'static str, &'static str)],
    report: &mut Reporter,
) -> Result<Option<(&'static str, &'static str)>, FetchError> {
    for (package, file) in sources {
        if apt.candidate(package, report)?.is_some() {
            return Ok(Some((package, file)));
        }
    }
    Ok(None)
}

fn find_file(dir: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if entry.file_name() == name {
            return Some(path);
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(found) = find_file(&path, name)
        {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_read_from_ldd() {
        let ldd = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibjemalloc.so.1 => not found\n\
                   \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\tlibaio.so.1 => not found\n";
        assert_eq!(not_found(ldd), ["libjemalloc.so.1", "libaio.so.1"]);
    }

    #[test]
    fn a_program_of_this_machine_lacks_nothing() {
        assert!(missing(Path::new("/bin/sh"), &[]).is_empty());
    }
}

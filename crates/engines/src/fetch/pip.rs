//! Engines that run inside Python, as wheels from PyPI in a venv of their own.
//!
//! pip verifies every wheel with the index's hash. Only wheels are accepted: a
//! source package would need a compiler and minutes.

use super::FetchError;
use super::client::{self, Reporter};
use super::job::{Job, Layout, Offer};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Wheel {
    pub name: &'static str,
    /// The module that Python imports.
    pub module: &'static str,
}

impl Wheel {
    pub fn offers(&self, report: &mut Reporter) -> Result<Vec<Offer>, FetchError> {
        let mut command = Command::new(interpreter()?);
        report.say(format!("pip: which versions of {} are there", self.name));
        command.args(["-m", "pip", "index", "versions", self.name]);
        let out = client::run(report, "pip: asking", &mut command, None)?;
        // Oldest first, as in the other sources.
        Ok(listed_versions(&out)
            .into_iter()
            .rev()
            .map(|version| Offer { token: version.clone(), version })
            .collect())
    }

    pub fn unpack(&self, offer: &Offer, job: &mut Job) -> Result<Layout, FetchError> {
        let python = interpreter()?;
        job.report.say(format!("python3: making a venv with {}", python.display()));
        let mut command = Command::new(&python);
        command.args(["-m", "venv"]).arg(job.stage.join("venv"));
        client::run(job.report, "python3: venv", &mut command, Some(&job.stage))?;
        let exact = format!("{}=={}", self.name, offer.token);
        job.report.say(format!("pip: downloading {} {}", self.name, offer.token));
        // Through `python -m pip`: the pip script would contain the stage's
        // path.
        let mut command = Command::new(job.stage.join("venv/bin/python"));
        command.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:", &exact]);
        let label = format!("pip: installing {}", self.name);
        client::run(job.report, &label, &mut command, Some(&job.stage))?;
        Ok(Layout {
            basedir: "venv".into(),
            server: "venv/bin/python".into(),
            version_args: vec![
                "-c".into(),
                format!(
                    "import {module}, importlib.metadata as m; print('{name}', m.version('{name}'))",
                    module = self.module,
                    name = self.name
                ),
            ],
            ..Layout::default()
        })
    }
}

/// The Python to build on. A venv refers to its interpreter, so for root one
/// that other users can reach is better than one in root's home.
fn interpreter() -> Result<PathBuf, FetchError> {
    let first = client::require("python3")?;
    let candidates = [first.clone(), "/usr/bin/python3".into(), "/usr/local/bin/python3".into()];
    let good = candidates.iter().find(|python| {
        real_path(python).is_some_and(|real| reachable_by_all(&real)) && has_venv(python)
    });
    Ok(good.cloned().unwrap_or(first))
}

/// A shim on PATH is not the interpreter; Python itself reports its path.
fn real_path(python: &Path) -> Option<PathBuf> {
    let output =
        Command::new(python).args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()).canonicalize().ok()
}

fn has_venv(python: &Path) -> bool {
    let test = Command::new(python).args(["-c", "import venv, ensurepip"]).output();
    test.is_ok_and(|output| output.status.success())
}

fn reachable_by_all(file: &Path) -> bool {
    file.ancestors()
        .all(|path| path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0))
}

/// The line `Available versions: 0.8.3, 0.8.2, …` of `pip index versions`.
fn listed_versions(output: &str) -> Vec<String> {
    output
        .lines()
        .find_map(|line| line.trim().strip_prefix("Available versions:"))
        .map(|list| list.split(',').map(|version| version.trim().to_string()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_pips_answer() {
        let out = "pyturso (0.8.3)\nAvailable versions: 0.8.3, 0.8.2, 0.1.0\n  INSTALLED: 0.8.2\n";
        assert_eq!(listed_versions(out), ["0.8.3", "0.8.2", "0.1.0"]);
        assert!(listed_versions("ERROR: No matching distribution").is_empty());
    }

    #[test]
    fn a_file_in_a_closed_folder_is_not_reachable_by_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("python");
        std::fs::write(&file, "").unwrap();
        let mode = std::fs::Permissions::from_mode;
        std::fs::set_permissions(&file, mode(0o755)).unwrap();
        std::fs::set_permissions(dir.path(), mode(0o700)).unwrap();
        assert!(!reachable_by_all(&file));
    }
}

//! The drivers that ship with Isolde, inside the binary, so that they can be
//! written next to any virtual environment with the engine's wheel. Turso and
//! DuckDB run in the environment that `isolde fetch` made for the version.

use super::{DriverCommand, DriverEngine};
use crate::engine::*;
use crate::fetch::install::{self, Cache};
use crate::named_engine::NamedEngine;
use std::io;
use std::path::{Path, PathBuf};

/// A Python program and its requirements.
#[derive(Clone, Copy, Debug)]
pub struct DriverProgram {
    /// As in a target's name: `turso`, `duckdb`, `sqlite3`.
    pub name: &'static str,
    /// The file with the program; it may import the library next to it.
    pub file: &'static str,
    pub text: &'static str,
    /// The engine's package name for `pip install`; none for the standard
    /// library's.
    pub wheel: Option<&'static str>,
    /// The modes of the engine, each with the arguments that select it; the
    /// first is the default.
    pub modes: &'static [(&'static str, &'static [&'static str])],
}

/// The code that turso.py and duckdb.py share, and that a driver's author may
/// copy.
pub const LIBRARY: (&str, &str) =
    ("isolde_driver.py", include_str!("../../drivers/isolde_driver.py"));

pub const PROGRAMS: [DriverProgram; 3] = [
    DriverProgram {
        name: "turso",
        file: "turso_driver.py",
        text: include_str!("../../drivers/turso_driver.py"),
        wheel: Some("pyturso"),
        modes: &[("", &[]), ("mvcc", &["--mvcc"])],
    },
    DriverProgram {
        name: "duckdb",
        file: "duckdb_driver.py",
        text: include_str!("../../drivers/duckdb_driver.py"),
        wheel: Some("duckdb"),
        modes: &[("", &[])],
    },
    DriverProgram {
        name: "sqlite3",
        file: "sqlite3_driver.py",
        text: include_str!("../../drivers/sqlite3_driver.py"),
        wheel: None,
        modes: &[("", &[])],
    },
];

pub fn program(name: &str) -> Option<&'static DriverProgram> {
    PROGRAMS.iter().find(|p| p.name == name)
}

impl DriverProgram {
    pub fn mode(&self, name: &str) -> Option<&'static [&'static str]> {
        self.modes.iter().find(|(mode, _)| *mode == name).map(|(_, args)| *args)
    }

    /// Writes the program and its library into a folder, unless they exist, and
    /// returns its path. Another process may do the same at this moment, so the
    /// files appear whole or not at all.
    pub fn write_to(&self, folder: &Path) -> io::Result<PathBuf> {
        for (name, text) in [LIBRARY, (self.file, self.text)] {
            let path = folder.join(name);
            if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
                continue;
            }
            let fresh = tempfile::NamedTempFile::new_in(folder)?;
            std::fs::write(fresh.path(), text)?;
            fresh.persist(&path)?;
        }
        Ok(folder.join(self.file))
    }
}

pub fn open_turso(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    open("turso", named, cache)
}

pub fn open_duckdb(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    open("duckdb", named, cache)
}

fn open(name: &str, named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let install = install::find(name, named.version.as_deref(), cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let program = program(name)
        .ok_or_else(|| EngineError::Refused(format!("no driver for {name} is built in")))?;
    let mode = named.mode.as_deref().unwrap_or("");
    let arguments = program
        .mode(mode)
        .ok_or_else(|| EngineError::Refused(format!("{name} has no mode `{mode}`")))?;
    let script = cache
        .folder("drivers")
        .and_then(|folder| program.write_to(&folder))
        .map_err(|e| EngineError::Unreachable(format!("cannot write the driver: {e}")))?;
    let mut command = DriverCommand::new(install.server.display().to_string(), &[]);
    command.args.push(script.display().to_string());
    command.args.extend(arguments.iter().map(|a| a.to_string()));
    command.env = install.env.clone();
    Ok(Box::new(DriverEngine::start(&command, &target)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_written_with_what_it_imports() {
        let folder = tempfile::tempdir().unwrap();
        for program in &PROGRAMS {
            let path = program.write_to(folder.path()).unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), program.text);
            assert!(program.mode("").is_some(), "{} has a plain mode", program.name);
        }
        assert!(folder.path().join(LIBRARY.0).exists());
    }

    #[test]
    fn the_example_driver_stays_under_a_hundred_lines() {
        assert!(program("sqlite3").unwrap().text.lines().count() < 100);
    }
}

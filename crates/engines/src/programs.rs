//! Turso and DuckDB: the drivers that ship with Isolde, run by the Python
//! environment that `isolde fetch` made for the version.

use crate::driver::DriverEngine;
use crate::driver_command::DriverCommand;
use crate::driver_programs::{self, DriverProgram};
use crate::engine::*;
use crate::install::{self, Cache};
use crate::target::{Named, Options, Target};
use std::io;
use std::path::PathBuf;

pub fn open_turso(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    open("turso", named, options)
}

pub fn open_duckdb(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    open("duckdb", named, options)
}

fn open(name: &str, named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
    let install = install::find(name, named.version.as_deref(), &options.cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let program = driver_programs::program(name)
        .ok_or_else(|| EngineError::Refused(format!("no driver for {name} is built in")))?;
    let mode = named.mode.as_deref().unwrap_or("");
    let arguments = program
        .mode(mode)
        .ok_or_else(|| EngineError::Refused(format!("{name} has no mode `{mode}`")))?;
    let script = place(program, &options.cache)
        .map_err(|e| EngineError::Unreachable(format!("cannot write the driver: {e}")))?;
    let mut command = DriverCommand::new(install.server.display().to_string(), &[]);
    command.args.push(script.display().to_string());
    command.args.extend(arguments.iter().map(|a| a.to_string()));
    command.env = install.env.clone();
    Ok(Box::new(DriverEngine::start(&command, &target)?))
}

/// Writes the program into the cache, unless it is there. Another process may
/// do the same at this moment, so the files appear whole or not at all.
fn place(program: &DriverProgram, cache: &Cache) -> io::Result<PathBuf> {
    let folder = cache.folder("drivers")?;
    for (name, text) in [driver_programs::LIBRARY, (program.file, program.text)] {
        let path = folder.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        let fresh = tempfile::NamedTempFile::new_in(&folder)?;
        std::fs::write(fresh.path(), text)?;
        fresh.persist(&path)?;
    }
    Ok(folder.join(program.file))
}

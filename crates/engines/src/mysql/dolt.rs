//! Dolt: MySQL's protocol over a versioned store. Nothing ever blocks; changes
//! that cannot be merged fail at COMMIT with error 1213.

use super::engine::MySqlEngine;
use super::flavour::{Flavour, View};
use super::private_server::{RunningServer, check_port};
use super::wire::MySqlSession;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::fetch::install::{self, Cache, Install};
use crate::named_engine::NamedEngine;
use crate::secret::Secret;
use crate::server::{PrivateServer, Recipe, program};
use isolde_catalog::engines;
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

fn flavour(_: &mut MySqlSession, _: Option<&str>) -> EngineResult<Flavour> {
    Ok(Flavour {
        engine: "dolt".into(),
        profile: engines::profile("dolt", ""),
        view: View::Nothing,
        greeting: Vec::new(),
        version_sql: "select dolt_version()",
    })
}

pub fn open_private(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let install = install::find("dolt", named.version.as_deref(), cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let cache = cache.clone();
    MySqlEngine::private(&target, named, Box::new(move || start(&install, &cache)), flavour)
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    MySqlEngine::on_server(url, target, 3306, flavour)
}

fn start(install: &Install, cache: &Cache) -> EngineResult<RunningServer> {
    let initialise = |_: &Path| -> Vec<Command> { Vec::new() };
    let password = Secret::random();
    let start = |data: &Path, port: u16| -> Command {
        let folder = data.parent().unwrap_or(data);
        let mut command = program(install, &install.server);
        // Dolt needs a home directory for its settings.
        command.env("HOME", folder).env("DOLT_ROOT_PATH", folder);
        command.env("DOLT_ROOT_PASSWORD", password.reveal());
        command.args(["sql-server", "--host=127.0.0.1"]).arg(format!("--port={port}"));
        command.arg(format!("--data-dir={}", data.display()));
        command.arg(format!("--socket={}", folder.join("s").display()));
        command
    };
    let template = format!("dolt-{}", install.version);
    let stop_signal = Signal::KILL;
    let recipe = Recipe { install, template, initialise: &initialise, start: &start, stop_signal };
    let ready = |server: &PrivateServer| check_port(server, &password);
    let (server, (address, control)) = PrivateServer::start(&recipe, cache, ready)?;
    Ok(RunningServer { server, address, control })
}

//! TiDB on its embedded store, pessimistic (the default) or optimistic.

use super::engine::MySqlEngine;
use super::flavour::{Flavour, VERSION_SQL, View};
use super::private_server::{RunningServer, check_port, write_init_file};
use super::wire::MySqlSession;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::fetch::install::{self, Cache, Install};
use crate::named_engine::NamedEngine;
use crate::secret::Secret;
use crate::server::{PrivateServer, Recipe, free_port, program};
use isolde_catalog::engines;
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

fn flavour(control: &mut MySqlSession, mode: Option<&str>) -> EngineResult<Flavour> {
    let version = query_text(control, "select version()")?;
    if !version.contains("TiDB") {
        return Err(EngineError::Refused(format!("this server is not TiDB but {version}")));
    }
    let optimistic = mode == Some("optimistic");
    let engine = if optimistic { "tidb+optimistic" } else { "tidb" };
    let greeting = vec![
        "set session innodb_lock_wait_timeout = 3600".to_string(),
        format!(
            "set session tidb_txn_mode = '{}'",
            if optimistic { "optimistic" } else { "pessimistic" }
        ),
    ];
    let profile = engines::profile("tidb", mode.unwrap_or(""));
    Ok(Flavour {
        engine: engine.into(),
        profile,
        view: View::TidbTrx,
        greeting,
        version_sql: VERSION_SQL,
    })
}

pub fn open_private(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let install = install::find("tidb", named.version.as_deref(), cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let cache = cache.clone();
    MySqlEngine::private(&target, named, Box::new(move || start(&install, &cache)), flavour)
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    MySqlEngine::on_server(url, target, 4000, flavour)
}

fn start(install: &Install, cache: &Cache) -> EngineResult<RunningServer> {
    // The store is created at the first start; there is nothing to prepare.
    let initialise = |_: &Path| -> Vec<Command> { Vec::new() };
    let password = Secret::random();
    let start = |data: &Path, port: u16| -> Command {
        let status = free_port().unwrap_or(0);
        let folder = data.parent().unwrap_or(data);
        let config = folder.join("tidb.toml");
        // Without a directory of its own it writes next to other servers'
        // files. A failure shows when the server cannot read the file.
        let secure = format!("alter user 'root'@'%' identified by '{}';\n", password.reveal());
        let text = format!(
            "tmp-storage-path = {:?}\nsocket = {:?}\ninitialize-sql-file = {:?}\n\
             [security]\nauto-tls = false\n",
            folder.join("tmp"),
            folder.join("s"),
            write_init_file(data, &secure)
        );
        let _ = std::fs::write(&config, text);
        let mut command = program(install, &install.server);
        command.arg(format!("--config={}", config.display()));
        command.arg("--store=unistore").arg(format!("--path={}", data.display()));
        command.args(["--host=127.0.0.1", "-P"]).arg(port.to_string());
        command.arg(format!("--status={status}")).args(["--status-host=127.0.0.1", "-L=error"]);
        command.env("HOME", folder);
        command
    };
    let template = format!("tidb-{}", install.version);
    let stop_signal = Signal::KILL;
    let recipe = Recipe { install, template, initialise: &initialise, start: &start, stop_signal };
    let ready = |server: &PrivateServer| check_port(server, &password);
    let (server, (address, mut control)) = PrivateServer::start(&recipe, cache, ready)?;
    // Its tuner trades memory for speed: 2 GB instead of half of one.
    run_to_end(&mut control, "set global tidb_enable_gogc_tuner = off", ANSWER_LIMIT)?;
    Ok(RunningServer { server, address, control })
}

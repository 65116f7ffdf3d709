//! Opens an engine by its name, on a private server, or by a URL, in a new
//! database on the user's server.

use super::admin;
use super::engine::{MySqlEngine, Restart};
use super::flavour::{FlavourOf, innodb_flavour};
use super::private_server::{self, RunningServer};
use super::wire::MySqlSession;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::fetch::install::{self, Cache};
use crate::named_engine::NamedEngine;
use crate::server::owner::Owner;
use std::sync::Arc;

pub fn open_mariadb(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    open_named("mariadb", named, cache)
}

pub fn open_mysql(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    open_named("mysql", named, cache)
}

fn open_named(engine: &str, named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let install = install::find(engine, named.version.as_deref(), cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let mine = named.clone();
    let cache = cache.clone();
    let restart: Restart = Box::new(move || private_server::start(&install, &cache, &mine));
    MySqlEngine::private(&target, named, restart, innodb_flavour)
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    MySqlEngine::on_server(url, target, 3306, innodb_flavour)
}

impl MySqlEngine {
    pub fn private(
        target: &str,
        named: &NamedEngine,
        restart: Restart,
        flavour: FlavourOf,
    ) -> EngineResult<Box<dyn Engine>> {
        let RunningServer { server, address, mut control } = restart()?;
        let flavour = flavour(&mut control, named.mode.as_deref())?;
        let private = Some((server, restart));
        let made = MySqlEngine::new(target, flavour, address, "isolde".into(), control, private)?;
        Ok(Box::new(made))
    }

    pub fn on_server(
        url: &ServerUrl,
        target: &str,
        port: u16,
        flavour: FlavourOf,
    ) -> EngineResult<Box<dyn Engine>> {
        let address = admin::address(url, port)?;
        let mut control: MySqlSession = address.connect(
            url.database.as_deref(),
            &Arc::new(isolde_catalog::engines::profile("mysql", "")),
        )?;
        let flavour = flavour(&mut control, None)?;
        let database = Owner::this_process().fresh_database_name();
        let create = format!("create database {database}");
        if let Outcome::Error(error) = run_to_end(&mut control, &create, WORK_LIMIT)? {
            return Err(EngineError::Refused(format!(
                "Isolde works in a database of its own and may not create one here: {error}"
            )));
        }
        let made =
            MySqlEngine::new(target, flavour, address.clone(), database.clone(), control, None);
        match made {
            Ok(engine) => Ok(Box::new(engine)),
            Err(error) => {
                let mut admin: MySqlSession = address
                    .connect(None, &Arc::new(isolde_catalog::engines::profile("mysql", "")))?;
                run_to_end(&mut admin, &format!("drop database {database}"), WORK_LIMIT)?;
                Err(error)
            }
        }
    }
}

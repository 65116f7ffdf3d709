//! From a name or a URL to an engine that is ready: on a server of our own, or
//! in a fresh database on the user's.

use super::engine::{MySqlEngine, Restart};
use super::flavour::{FlavourOf, innodb_flavour};
use super::place::Place;
use super::private_server::{self, Started};
use super::profile::mysql_profile;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::fetch::install;
use crate::server::owner::Owner;
use crate::target::{Named, Options, Target};
use std::sync::Arc;

pub fn open_mariadb(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    open_named("mariadb", named, options)
}

pub fn open_mysql(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    open_named("mysql", named, options)
}

fn open_named(engine: &str, named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
    let install = install::find(engine, named.version.as_deref(), &options.cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let mine = named.clone();
    let cache = options.cache.clone();
    let restart: Restart = Box::new(move || private_server::start(&install, &cache, &mine));
    MySqlEngine::private(&target, named, restart, innodb_flavour)
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    MySqlEngine::on_server(url, target, 3306, innodb_flavour)
}

impl MySqlEngine {
    pub fn private(
        target: &str,
        named: &Named,
        restart: Restart,
        flavour: FlavourOf,
    ) -> EngineResult<Box<dyn Engine>> {
        let Started { server, place, mut control } = restart()?;
        let flavour = flavour(&mut control, named.mode.as_deref())?;
        let private = Some((server, restart));
        let made = MySqlEngine::new(target, flavour, place, "isolde".into(), control, private)?;
        Ok(Box::new(made))
    }

    pub fn on_server(
        url: &ServerUrl,
        target: &str,
        port: u16,
        flavour: FlavourOf,
    ) -> EngineResult<Box<dyn Engine>> {
        let place = Place::from_url(url, port)?;
        let mut control = place.connect(url.database.as_deref(), &Arc::new(mysql_profile()))?;
        let flavour = flavour(&mut control, None)?;
        let database = Owner::this_process().fresh_database_name();
        let create = format!("create database {database}");
        if let Outcome::Error(error) = run_to_end(&mut control, &create, WORK_LIMIT)? {
            return Err(EngineError::Refused(format!(
                "Isolde works in a database of its own and may not create one here: {error}"
            )));
        }
        let made =
            MySqlEngine::new(target, flavour, place.clone(), database.clone(), control, None);
        match made {
            Ok(engine) => Ok(Box::new(engine)),
            Err(error) => {
                let mut door = place.connect(None, &Arc::new(mysql_profile()))?;
                run_to_end(&mut door, &format!("drop database {database}"), WORK_LIMIT)?;
                Err(error)
            }
        }
    }
}

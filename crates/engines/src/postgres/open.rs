//! From a name or a URL to an engine that is ready: on a server of our own, or
//! in a fresh database on the user's.

use super::door::Entrance;
use super::engine::{Postgres, Private};
use super::place::Flavour;
use super::private_server::{self, Started};
use super::profile::profile;
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::fetch::install;
use crate::server::owner::Owner;
use crate::target::{Named, Options, Target};
use std::sync::Arc;

pub fn open_private(named: &Named, options: &Options) -> EngineResult<Box<dyn Engine>> {
    let target = Target::Named(named.clone()).to_string();
    let install = install::find("postgres", named.version.as_deref(), &options.cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let profile = Arc::new(profile());
    let Started { server, place, control } =
        private_server::start(&install, &options.cache, &profile)?;
    let private = Private { server, install, cache: options.cache.clone() };
    let made = Postgres::new(
        &target,
        profile,
        Flavour::Postgres,
        place,
        "isolde".into(),
        None,
        control,
        Some(private),
    )?;
    Ok(Box::new(made))
}

pub fn open_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    open_on_server(url, target, Flavour::Postgres)
}

pub fn open_on_server(
    url: &ServerUrl,
    target: &str,
    flavour: Flavour,
) -> EngineResult<Box<dyn Engine>> {
    let Entrance { place, profile, database: entrance, session: mut door } =
        Entrance::open(url, flavour)?;
    let database = Owner::this_process().fresh_database_name();
    let create = format!("create database {database}");
    if let Outcome::Error(error) = run_to_end(&mut door, &create, WORK_LIMIT)? {
        return Err(EngineError::Refused(format!(
            "Isolde works in a database of its own and may not create one here: {error}"
        )));
    }
    let made = place.connect(&database, &profile).and_then(|control| {
        let (profile, place, name) = (Arc::clone(&profile), place.clone(), database.clone());
        Postgres::new(target, profile, flavour, place, name, Some(entrance), control, None)
    });
    match made {
        Ok(engine) => Ok(Box::new(engine)),
        Err(error) => {
            run_to_end(&mut door, &format!("drop database {database}"), WORK_LIMIT)?;
            Err(error)
        }
    }
}

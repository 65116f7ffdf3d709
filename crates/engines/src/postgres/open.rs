//! Opens an engine by its name, on a private server, or by a URL, in a new
//! database on the user's server.

use super::admin::AdminSession;
use super::engine::{Postgres, Private};
use super::flavour::Flavour;
use super::private_server::{self, RunningServer};
use crate::connect::url::ServerUrl;
use crate::engine::*;
use crate::fetch::install::{self, Cache};
use crate::named_engine::NamedEngine;
use crate::server::owner::Owner;
use isolde_catalog::engines;
use std::sync::Arc;

pub fn open_private(named: &NamedEngine, cache: &Cache) -> EngineResult<Box<dyn Engine>> {
    let target = named.to_string();
    let install = install::find("postgres", named.version.as_deref(), cache)
        .map_err(|e| EngineError::Unreachable(e.to_string()))?;
    let profile = Arc::new(engines::profile("postgres", ""));
    let RunningServer { server, address, control } =
        private_server::start(&install, cache, &profile)?;
    let private = Private { server, install, cache: cache.clone() };
    let made = Postgres::new(
        &target,
        profile,
        Flavour::Postgres,
        address,
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

pub fn open_cockroach_url(url: &ServerUrl, target: &str) -> EngineResult<Box<dyn Engine>> {
    open_on_server(url, target, Flavour::Cockroach)
}

fn open_on_server(
    url: &ServerUrl,
    target: &str,
    flavour: Flavour,
) -> EngineResult<Box<dyn Engine>> {
    let AdminSession { address, profile, database: admin_database, session: mut admin } =
        AdminSession::open(url, flavour)?;
    let database = Owner::this_process().fresh_database_name();
    let create = format!("create database {database}");
    if let Outcome::Error(error) = run_to_end(&mut admin, &create, WORK_LIMIT)? {
        return Err(EngineError::Refused(format!(
            "Isolde works in a database of its own and may not create one here: {error}"
        )));
    }
    let made = address.connect(Some(&database), &profile).and_then(|control| {
        let (profile, address, name) = (Arc::clone(&profile), address.clone(), database.clone());
        Postgres::new(target, profile, flavour, address, name, Some(admin_database), control, None)
    });
    match made {
        Ok(engine) => Ok(Box::new(engine)),
        Err(error) => {
            run_to_end(&mut admin, &format!("drop database {database}"), WORK_LIMIT)?;
            Err(error)
        }
    }
}

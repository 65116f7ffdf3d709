//! One file per engine, and the table of all of them.
//!
//! A new engine is a file with its [`EngineDescription`] and one line in
//! [`ENGINES`]. What engines share has a file of its own: [`innodb`] for MySQL and
//! MariaDB, `mysql_errors` for all that speak MySQL's protocol. [`plain`] is the
//! dialect of engines that the project does not know.

pub mod cockroach;
pub mod dolt;
pub mod duckdb;
pub mod innodb;
mod innodb_rules;
pub mod mariadb;
pub mod mysql;
mod mysql_errors;
pub mod plain;
pub mod postgres;
pub mod sqlite;
pub mod tidb;
pub mod turso;

use crate::description::EngineDescription;
use crate::level::Level;
use crate::profile::Profile;
use crate::rule::Rule;

/// In the order in which the page of rules describes them.
pub static ENGINES: &[&EngineDescription] = &[
    &postgres::DESCRIPTION,
    &sqlite::DESCRIPTION,
    &mysql::DESCRIPTION,
    &mariadb::DESCRIPTION,
    &duckdb::DESCRIPTION,
    &tidb::DESCRIPTION,
    &turso::DESCRIPTION,
    &dolt::DESCRIPTION,
    &cockroach::DESCRIPTION,
];

/// The four levels of the standard.
const STANDARD_LEVELS: &[Level] =
    &[Level::ReadUncommitted, Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The description of an engine, named with or without its mode.
pub fn description(engine: &str) -> Option<&'static EngineDescription> {
    let plain = engine.split('+').next().unwrap_or(engine);
    ENGINES.iter().copied().find(|d| d.name == plain)
}

/// The profile of a built-in engine in one of its modes.
///
/// # Panics
/// If the engine is not in the table or its driver has the profile: the callers
/// are the engines themselves.
pub fn profile(engine: &str, mode: &str) -> Profile {
    let profile = description(engine).and_then(|d| d.profile);
    profile.unwrap_or_else(|| panic!("{engine} has no profile"))(mode)
}

/// The rules of all engines, each once.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let described_there =
        |d: &&&EngineDescription| d.semantics.as_ref().is_some_and(|s| s.page.about.is_some());
    let engines = ENGINES.iter().filter(described_there);
    engines.filter_map(|d| d.semantics.as_ref()).flat_map(|s| s.rules.iter().copied())
}

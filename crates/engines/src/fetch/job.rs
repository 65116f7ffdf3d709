//! What the download and the sources exchange: the versions on offer, where to
//! unpack one, and what was unpacked.

use super::client::Reporter;
use super::install::Cache;
use std::path::PathBuf;

/// A version that a source offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offer {
    /// As the server reports it: `18.4`.
    pub version: String,
    /// As the client names it: `18.4.0-beta.17`.
    pub token: String,
}

/// An unpacked server; paths are relative to the version's folder.
#[derive(Default)]
pub(crate) struct Layout {
    pub basedir: PathBuf,
    pub server: PathBuf,
    pub init: Option<PathBuf>,
    /// Absolute, because the folder's final path is known beforehand.
    pub launcher: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The arguments with which the server prints its version.
    pub version_args: Vec<String>,
}

/// The context in which a source unpacks.
pub(crate) struct Job<'a, 'b> {
    pub cache: &'a Cache,
    pub report: &'a mut Reporter<'b>,
    /// Where to unpack.
    pub stage: PathBuf,
    /// Where the stage will be afterwards, for paths that must be absolute.
    pub home: PathBuf,
}

//! An engine that the user has named on the command line.

use std::fmt;

/// A name such as `mariadb+snapshot@11.8`, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEngine {
    pub engine: String,
    pub mode: Option<String>,
    pub version: Option<String>,
    /// Options for the private server, in addition to Isolde's own.
    pub server_options: Vec<String>,
}

impl fmt::Display for NamedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.engine)?;
        if let Some(mode) = &self.mode {
            write!(f, "+{mode}")?;
        }
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

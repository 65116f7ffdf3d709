//! The arguments of `isolde test`.

use super::shared::ServerArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct TestArgs {
    /// Only cases whose id or title matches.
    #[arg(value_name = "REGEX")]
    pub regex: Option<String>,
    /// Targets to run on [default: all targets with recordings that can be started here]
    #[arg(long, value_name = "TARGET", num_args = 1..)]
    pub on: Vec<String>,
    /// Only these levels [default: all levels of the target]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', num_args = 1..)]
    pub level: Vec<String>,
    /// Record the results in the case files instead of comparing.
    #[arg(long)]
    pub record: bool,
    /// Record each case at least N times, to find results that vary.
    #[arg(long, value_name = "N", requires = "record",
          value_parser = clap::value_parser!(u32).range(1..=10000))]
    pub repeat: Option<u32>,
    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Folder of the library [default: ./cases if it exists, else the built-in library]
    #[arg(long, value_name = "DIR")]
    pub cases: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

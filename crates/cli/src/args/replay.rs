//! The arguments of `isolde replay`.

use super::shared::ServerArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct ReplayArgs {
    /// Case files, or folders of findings.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Targets to run on [default: the target of the hunt for a finding, else the first engine of
    /// the case that is installed, else sqlite]
    #[arg(long, value_name = "TARGET", num_args = 1..)]
    pub on: Vec<String>,
    /// Levels to run at, or `all` [default: the level of the case, else the target's default]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', num_args = 1..)]
    pub level: Vec<String>,
    /// Check the cases with an oracle: `isolation` runs them on instrumented tables and reports
    /// the dependency cycles and which of them the level rules out; `topological` compares their
    /// results with those of the same statements run one at a time, in an order that respects
    /// their dependencies; `merged`, at SERIALIZABLE, merges two of
    /// their transactions.
    #[arg(long, value_name = "ORACLE", value_delimiter = ',', conflicts_with = "out")]
    pub oracle: Vec<String>,
    /// Also write a Markdown report.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

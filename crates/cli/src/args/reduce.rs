//! The arguments of `isolde reduce`.

use super::shared::ServerArgs;
use clap::Args;
use isolde_generator::reduce::Strategy;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  isolde reduce isolde.out/findings/00000285          a finding, on the target of its hunt
  isolde reduce long.case --on postgres -j 4          your own case, on four servers
  isolde reduce long.case --strategy ddmin            the same with another strategy

--out always holds the smallest case so far; Ctrl-C ends the search and keeps it.
docs/reduce.md explains what is removed, and how many trials that takes.";

#[derive(Args)]
pub struct ReduceArgs {
    /// The folder of a finding, or a case file.
    #[arg(value_name = "FINDING|CASE")]
    pub case: PathBuf,
    /// Search strategy for removing operations.
    #[arg(long, value_name = "STRATEGY", default_value = "pisco")]
    pub strategy: StrategyName,
    /// Target to run on [default: the target of the hunt for a finding, else the first engine of
    /// the case that is installed, else sqlite]
    #[arg(long, value_name = "TARGET")]
    pub on: Option<String>,
    /// Oracles that check each run: semantics, tx-wss, stmt-wss, serial-reads, crash, isolation,
    /// topological or merged [default: those of the hunt for a finding, else the first five]
    #[arg(long, value_name = "ORACLE", value_delimiter = ',')]
    pub oracle: Vec<String>,
    /// Level to run at [default: the level of the case, else the target's default]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Number of parallel trials, each on its own server (or its own database on yours).
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// File for the smallest case [default: NAME.reduced.case, next to the case]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum StrategyName {
    /// Remove operations together with all operations that depend on them, in rounds.
    Pisco,
    /// Delta debugging, ignoring dependencies.
    Ddmin,
    /// Remove whole sessions, then whole transactions.
    Creduce,
}

impl From<StrategyName> for Strategy {
    fn from(name: StrategyName) -> Strategy {
        match name {
            StrategyName::Pisco => Strategy::Pisco,
            StrategyName::Ddmin => Strategy::Ddmin,
            StrategyName::Creduce => Strategy::Creduce,
        }
    }
}

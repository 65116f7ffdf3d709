//! The arguments of `isolde reduce`.

use crate::args::Starting;
use clap::Args;
use isolde_core::reduce::Strategy;
use std::path::PathBuf;

pub const EXAMPLE: &str = "\
Examples:
  isolde reduce isolde.out/findings/00000285          a finding, where it was found
  isolde reduce long.case --on postgres -j 4          your own case, four servers
  isolde reduce long.case --strategy ddmin            the same by another strategy

The smallest case so far is in --out at any time; Ctrl-C ends the search and keeps it.
docs/reduce.md says what is taken away and how often it is tried.";

#[derive(Args)]
pub struct ReduceArgs {
    /// The folder of a finding, or a case file.
    #[arg(value_name = "FINDING|CASE")]
    pub case: PathBuf,
    /// How operations are searched.
    #[arg(long, value_name = "STRATEGY", default_value = "pisco")]
    pub strategy: Way,
    /// Where to run it. Without it the hunt's target for a finding, else the first of the
    /// case's engines that is here, else SQLite.
    #[arg(long, value_name = "TARGET")]
    pub on: Option<String>,
    /// Which oracles judge: semantics, tx-wss, stmt-wss, serial-reads, crash, isolation,
    /// topological or merged. Without it those of the hunt, else the first five.
    #[arg(long, value_name = "ORACLE", value_delimiter = ',')]
    pub oracle: Vec<String>,
    /// The level to run at. Without it the case's own, else the target's default.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Trials at the same time, each on a server (or a database on yours) of its own.
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// Where the smallest case is written. Without it beside the case, as NAME.reduced.case.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub starting: Starting,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Way {
    /// Rounds over operations that hang on nothing else, with all that hang on them.
    Pisco,
    /// Delta debugging, without a look at what hangs on what.
    Ddmin,
    /// Whole sessions, then whole transactions.
    Creduce,
}

impl Way {
    pub fn strategy(self) -> Strategy {
        match self {
            Way::Pisco => Strategy::Pisco,
            Way::Ddmin => Strategy::Ddmin,
            Way::Creduce => Strategy::Creduce,
        }
    }
}

//! The arguments of `isolde hunt`.
//!
//! Options whose default depends on `--resume` are optional here; the command
//! fills in the value of the earlier hunt, or the default that the help names.

use super::shared::{BaselineArgs, ServerArgs, parse_rate, parse_time};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const ISOLATION_ORACLE: &str = "Rounds of --oracle isolation";
const TOPOLOGICAL_ORACLE: &str = "Graphs of --oracle topological";

#[derive(Args)]
pub struct HuntArgs {
    /// Target to hunt on [default: sqlite]
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Oracles that check each run: semantics, tx-wss, stmt-wss, serial-reads, crash, isolation,
    /// topological, merged, or all. `isolation` alone runs sessions at full speed instead of
    /// scheduled cases and looks for dependency cycles. See docs/isolation.md and
    /// docs/topological.md [default: semantics,tx-wss,stmt-wss,serial-reads,crash]
    #[arg(long, value_name = "ORACLE", value_delimiter = ',')]
    pub oracle: Vec<String>,
    /// Levels to hunt at, or `all`. Each case runs at one of them [default: all]
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub level: Vec<String>,
    /// Seed of the generated cases; the same seed generates the same cases
    /// [default: a new seed, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop after N cases, counted over all shards [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: Option<u64>,
    /// Stop after this time, such as 20s, 10m or 1h30m [default: 20s; no limit with --cases]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Number of workers, each with its own server (or its own database on yours) [default: 1]
    #[arg(short = 'j', long = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: Option<u16>,
    /// Plant a fault between Isolde and the engine. See `isolde faults`.
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
    /// How often the fault strikes where it could, from 0 to 1 [default: 0.5]
    #[arg(long, value_name = "RATE", requires = "fault", value_parser = parse_rate)]
    pub fault_rate: Option<f64>,
    /// Output folder; findings are written to it as they are found.
    #[arg(long, value_name = "DIR", default_value = "isolde.out")]
    pub out: PathBuf,
    /// Run only part K of N of the cases of a --seed. See `isolde merge`.
    #[arg(long, value_name = "K/N", value_parser = isolde_hunt::summary::Shard::parse)]
    pub shard: Option<isolde_hunt::summary::Shard>,
    /// Continue the hunt in --out, which was stopped or killed, with the options it had.
    #[arg(long)]
    pub resume: bool,
    /// Report documented anomalies as findings, too.
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 also for findings in which only the locking differs from the rules.
    #[arg(long)]
    pub strict: bool,
    /// Do not reduce findings; `isolde reduce` can reduce one later.
    #[arg(long)]
    pub no_reduce: bool,
    /// Generate DDL statements, too: CREATE INDEX, ALTER TABLE, TRUNCATE.
    #[arg(long)]
    pub ddl: bool,
    /// How deeply queries and expressions are nested, from 0 (flat) to 4 [default: drawn for each
    /// block of 30 cases]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=4))]
    pub depth: Option<u8>,
    /// Use prepared statements where the engine has them.
    #[arg(long)]
    pub prepared: bool,
    /// Sessions per round, from 2 to 32 [default: 12]
    #[arg(long, value_name = "N", help_heading = ISOLATION_ORACLE,
          value_parser = clap::value_parser!(u8).range(2..=32))]
    pub sessions: Option<u8>,
    /// Number of keys; fewer keys mean more conflicts [default: 6]
    #[arg(long, value_name = "N", help_heading = ISOLATION_ORACLE,
          value_parser = clap::value_parser!(u16).range(2..=10000))]
    pub keys: Option<u16>,
    /// Transactions per round [default: 400]
    #[arg(long, value_name = "N", help_heading = ISOLATION_ORACLE,
          value_parser = clap::value_parser!(u32).range(2..=20000))]
    pub round: Option<u32>,
    /// Number of topological orders to run per graph [default: 3]
    #[arg(long, value_name = "N", help_heading = TOPOLOGICAL_ORACLE,
          value_parser = clap::value_parser!(u8).range(1..=50))]
    pub orders: Option<u8>,
    /// Add edges for every row of the tables that a statement reads, as in the paper, instead of
    /// asking the engine which row versions match.
    #[arg(long, help_heading = TOPOLOGICAL_ORACLE)]
    pub all_edges: bool,
    /// Also write the findings as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub baseline: BaselineArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

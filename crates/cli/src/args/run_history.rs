//! The arguments of `isolde run-history`.

use super::shared::{ServerArgs, parse_time};
use clap::{Args, ValueEnum};
use isolde_hunt::workload::Workload;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct RunHistoryArgs {
    /// Target to run on.
    #[arg(value_name = "TARGET", default_value = "sqlite")]
    pub target: String,
    /// What the transactions do.
    #[arg(long, value_name = "WORKLOAD", value_enum, default_value_t = WorkloadName::ListAppend)]
    pub workload: WorkloadName,
    /// Isolation level of all sessions [default: the engine's default]
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Number of concurrent sessions.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub sessions: u16,
    /// Stop after N transactions [default: 5000; no limit with --time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// Stop after this time, such as 20s or 10m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Number of keys in use at a time; fewer keys mean more conflicts.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,
    /// Replace a key by a new one after N writes.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub writes_per_key: u32,
    /// Maximum number of operations per transaction.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub operations: u32,
    /// Seed of the generated transactions; the same seed generates the same ones
    /// [default: a new seed, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Format of the history [default: elle-edn for .edn, elle-json for .json, else isolde]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<HistoryFormat>,
    /// The file to write; - for stdout.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Also write a trace: start and end time of each statement, and what it read and wrote.
    /// `isolde order` infers the order of execution from it.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// Append unique elements to lists.
    ListAppend,
    /// Set registers to unique values.
    RwRegister,
    /// Run generated SQL on instrumented tables, as `hunt --oracle isolation` does.
    Relational,
}

impl WorkloadName {
    /// The workload on keys; none for generated SQL.
    pub fn workload(self) -> Option<Workload> {
        match self {
            WorkloadName::ListAppend => Some(Workload::ListAppend),
            WorkloadName::RwRegister => Some(Workload::RwRegister),
            WorkloadName::Relational => None,
        }
    }

    pub fn name(self) -> &'static str {
        self.workload().map_or("relational", Workload::name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// Isolde's own format, JSON lines.
    Isolde,
    /// EDN of Elle and Jepsen.
    ElleEdn,
    /// The same as JSON lines.
    ElleJson,
}

//! The arguments of `isolde run-history`.

use crate::args::Starting;
use crate::hunt_args::parse_time;
use clap::{Args, ValueEnum};
use isolde_hunt::workload::Workload;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct RunHistoryArgs {
    /// What to run on.
    #[arg(value_name = "TARGET", default_value = "sqlite")]
    pub target: String,
    /// What transactions are made of.
    #[arg(long, value_name = "WORKLOAD", value_enum, default_value_t = WorkloadName::ListAppend)]
    pub workload: WorkloadName,
    /// The isolation level of all sessions; without it the engine's default.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Concurrent sessions.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub sessions: u16,
    /// Ends after so many transactions. Without it and --time 5000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// Ends after this long: 20s, 10m.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Keys in use at a time: few make hot rows, many let transactions pass each other.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,
    /// A key makes room for a new one after so many writes.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub writes_per_key: u32,
    /// Transactions have from 1 to N operations.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub operations: u32,
    /// Draws the same transactions again; without it a new one, which is printed.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How the history is written. Without it by the name of the file: .edn and .json are
    /// Elle's, everything else is Isolde's own.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<Written>,
    /// The file; - is the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write the trace here as well: who sent what from when to when, and what each statement
    /// read and wrote. `isolde order` tells the order.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub starting: Starting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// Lists to whose end unique elements are appended.
    ListAppend,
    /// Registers that are set to unique values.
    RwRegister,
    /// Generated SQL on tables that tell versions, as `hunt --oracle isolation` runs it.
    Relational,
}

impl WorkloadName {
    /// What is run; none for generated SQL.
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
pub enum Written {
    /// Isolde's own JSON lines.
    Isolde,
    /// Elle's and Jepsen's EDN.
    ElleEdn,
    /// The same as JSON lines.
    ElleJson,
}

//! The arguments of `isolde anomalies`.

use crate::args::Starting;
use crate::hunt_args::parse_time;
use clap::Args;
use std::time::Duration;

#[derive(Args)]
pub struct AnomaliesArgs {
    /// What to look at.
    #[arg(value_name = "TARGET", default_values = ["sqlite", "sqlite+wal"])]
    pub targets: Vec<String>,
    /// Only these levels (RU, RC, RR, SI, SER or their names).
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub level: Vec<String>,
    /// How long to run at each level: 3s, 1m.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_time)]
    pub time: Duration,
    /// Concurrent sessions.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    pub sessions: u16,
    /// Keys in use at a time: few make hot rows.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,
    /// Draws the same transactions again; without it a new one, which is printed.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub starting: Starting,
}

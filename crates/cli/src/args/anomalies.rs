//! The arguments of `isolde anomalies`.

use super::shared::{ServerArgs, parse_time};
use clap::Args;
use std::time::Duration;

#[derive(Args)]
pub struct AnomaliesArgs {
    /// Targets to measure.
    #[arg(value_name = "TARGET", default_values = ["sqlite", "sqlite+wal"])]
    pub targets: Vec<String>,
    /// Only these levels (RU, RC, RR, SI, SER or their full names).
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub level: Vec<String>,
    /// Time per level, such as 3s or 1m.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = parse_time)]
    pub time: Duration,
    /// Number of concurrent sessions.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
    pub sessions: u16,
    /// Number of keys in use at a time; fewer keys mean more conflicts.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,
    /// Seed of the generated transactions; the same seed generates the same ones
    /// [default: a new seed, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub server: ServerArgs,
}

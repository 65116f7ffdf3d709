//! The arguments of `isolde faults`.

use super::shared::{ServerArgs, parse_rate};
use clap::Args;

#[derive(Args)]
pub struct FaultsArgs {
    /// Target to plant the faults in.
    #[arg(value_name = "TARGET", default_value = "sqlite")]
    pub target: String,
    /// Only these faults.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub fault: Vec<String>,
    /// How often a fault strikes where it could, from 0 to 1.
    #[arg(long, value_name = "RATE", default_value_t = 0.5, value_parser = parse_rate)]
    pub fault_rate: f64,
    /// Maximum number of cases per fault and oracle.
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: u64,
    /// Seed of the generated cases; the same seed generates the same cases.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Levels to run at, or `all`.
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', default_value = "all")]
    pub level: Vec<String>,
    /// List the faults and exit.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

//! The arguments of `isolde hunt` and `isolde faults`.

use crate::args::Starting;
use crate::baseline::BaselineArgs;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct HuntArgs {
    /// What to hunt on; without it sqlite.
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Which oracles judge: semantics, tx-wss, stmt-wss, serial-reads, crash, isolation,
    /// topological, merged, or all.
    /// Without it all but the last three. Alone, isolation runs sessions at full speed instead of
    /// scheduled cases, and looks for cycles of dependencies; see docs/isolation.md
    /// and docs/topological.md.
    #[arg(long, value_name = "ORACLE", value_delimiter = ',')]
    pub oracle: Vec<String>,
    /// Levels to hunt at: `all`, or names. Each case draws one of them. Without it all.
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub level: Vec<String>,
    /// Makes the same cases again; without it a new one, which is printed.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Ends after case number N - 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: Option<u64>,
    /// Ends after this long: 20s, 10m, 1h30m. Without it and --cases 20 s.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,
    /// Workers, each with a server (or a database on yours) of its own. Without it 1.
    #[arg(short = 'j', long = "jobs", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: Option<u16>,
    /// Plants a fault between Isolde and the engine; see `isolde faults`.
    #[arg(long, value_name = "NAME")]
    pub fault: Option<String>,
    /// How often the fault strikes where it could, from 0 to 1. Without it 0.5.
    #[arg(long, value_name = "RATE", requires = "fault", value_parser = parse_rate)]
    pub fault_rate: Option<f64>,
    /// Where findings are written, while they are found.
    #[arg(long, value_name = "DIR", default_value = "isolde.out")]
    pub out: PathBuf,
    /// Takes part K of N of the same cases, which a --seed makes; see `isolde merge`.
    #[arg(long, value_name = "K/N", value_parser = isolde_hunt::summary::Shard::parse)]
    pub shard: Option<isolde_hunt::summary::Shard>,
    /// Goes on with the hunt in --out that was ended or killed. Its hunt.json knows the rest.
    #[arg(long)]
    pub resume: bool,
    /// Documented violations are findings, too.
    #[arg(long)]
    pub all: bool,
    /// Findings stay as they were generated; `isolde reduce` makes one smaller later.
    #[arg(long)]
    pub no_reduce: bool,
    /// DDL among the statements: CREATE INDEX, ALTER TABLE, TRUNCATE.
    #[arg(long)]
    pub ddl: bool,
    /// Writes and reads as prepared statements where the engine has them.
    #[arg(long)]
    pub prepared: bool,
    /// Sessions of a round of --oracle isolation, from 2 to 32. Without it 12.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=32))]
    pub sessions: Option<u8>,
    /// Keys go from 1 to N in a round of --oracle isolation: few make hot rows. Without it 6.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=10000))]
    pub keys: Option<u16>,
    /// Transactions of a round of --oracle isolation. Without it 400.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=20000))]
    pub round: Option<u32>,
    /// Orders of each graph of --oracle topological that are run. Without it 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50))]
    pub orders: Option<u8>,
    /// Edges of --oracle topological for every row of a table that a statement reads, as in the
    /// paper, instead of asking the engine which versions match.
    #[arg(long)]
    pub all_edges: bool,
    /// Writes the findings as JUnit XML as well.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    #[command(flatten)]
    pub baseline: BaselineArgs,
    #[command(flatten)]
    pub starting: Starting,
}

#[derive(Args)]
pub struct FaultsArgs {
    /// Where to plant them.
    #[arg(value_name = "TARGET", default_value = "sqlite")]
    pub target: String,
    /// Only these faults.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub fault: Vec<String>,
    /// How often a fault strikes where it could, from 0 to 1.
    #[arg(long, value_name = "RATE", default_value_t = 0.5, value_parser = parse_rate)]
    pub fault_rate: f64,
    /// Cases to try for each fault and oracle.
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: u64,
    /// Makes the same cases again.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Levels to hunt at: `all`, or names.
    #[arg(long, value_name = "LEVEL", value_delimiter = ',', default_value = "all")]
    pub level: Vec<String>,
    /// Only list the faults.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub starting: Starting,
}

/// A number alone is seconds.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    match parsed {
        None => Err(format!("`{text}` is not a time; write 20s, 10m, 2h or 1h30m")),
        Some(Duration::ZERO) => Err(format!("in `{text}` nothing can be found; write 20s or 10m")),
        Some(time) => Ok(time),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err(format!("`{text}` is not a rate from 0 to 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_rates_have_limits() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "m", "-1s", "5 moons", "1e99h", "0", "0s", "99999999999999999999h"] {
            assert!(parse_time(wrong).unwrap_err().contains("10m"), "{wrong}");
        }
        assert!(parse_rate("1.1").is_err() && parse_rate("x").is_err());
    }
}

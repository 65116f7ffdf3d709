//! Option groups, value parsers and help texts that several commands share.

use std::path::PathBuf;
use std::time::Duration;

pub const TARGETS: &str = "\
Targets:
  sqlite, sqlite+wal, sqlite+shared-cache     built in
  postgres, postgres@18, mariadb@11.4, mysql  private server, started and removed by Isolde
  tidb, tidb+optimistic, dolt                 private server, too
  turso@0.8.3, turso+mvcc, duckdb             driver in its own process
  postgres://user:password@host/, mysql://…   your server; Isolde creates a database in it
  sqlite:new.db                               new file, removed at the end
  driver:'python3 my_driver.py'               any program that speaks docs/driver-protocol.md

`isolde servers` lists what can be started here, and what can be fetched.";

/// Options of the commands that start servers.
#[derive(clap::Args)]
pub struct ServerArgs {
    /// Start servers in containers of the official images.
    #[arg(long, value_name = "RUNTIME", env = "ISOLDE_VIA")]
    pub via: Option<ContainerRuntime>,
    #[command(flatten)]
    pub login: LoginArgs,
}

/// Options of the commands that take the URL of a server.
#[derive(clap::Args)]
pub struct LoginArgs {
    /// File whose first line is the password, for a URL without one.
    #[arg(long, value_name = "FILE", env = "ISOLDE_PASSWORD_FILE")]
    pub password_file: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum ContainerRuntime {
    Podman,
    Docker,
}

/// Options of the commands that compare findings with a baseline.
#[derive(clap::Args, Clone, Default)]
pub struct BaselineArgs {
    /// File of known findings, one signature per line; only other findings make the exit code 1.
    /// See docs/ci.md.
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Add new findings to the baseline; create the file if it does not exist.
    #[arg(long, requires = "baseline")]
    pub update_baseline: bool,
}

/// Parses a duration. A number without a unit is in seconds.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    match parsed {
        None => Err(format!("`{text}` is not a duration; write 20s, 10m, 2h or 1h30m")),
        Some(Duration::ZERO) => {
            Err("the duration must be longer than zero; write 20s or 10m".into())
        }
        Some(time) => Ok(time),
    }
}

pub fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err(format!("`{text}` is not a number from 0 to 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_rates_have_limits() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "m", "-1s", "5 moons", "1e99h", "0", "0s", "99999999999999999999h"] {
            assert!(parse_time(wrong).unwrap_err().contains("10m"), "{wrong}");
        }
        assert!(parse_rate("1.1").is_err() && parse_rate("x").is_err());
    }
}

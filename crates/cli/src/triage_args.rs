//! What `isolde triage` is told.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub struct TriageArgs {
    /// Folders of findings, or output folders of hunts.
    #[arg(value_name = "FINDING", required = true)]
    pub findings: Vec<PathBuf>,
    /// Compare with the findings of these hunts, too.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Ask this program which of two reports is nearer to a finding. It gets them
    /// as JSON on its standard input and answers with JSON (docs/triage.md).
    #[arg(long, value_name = "CMD")]
    pub judge: Option<String>,
    /// The judge has so long for an answer; then the built-in one decides.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "judge",
          value_parser = humantime::parse_duration)]
    pub judge_timeout: Duration,
    /// So many candidates are compared two by two.
    #[arg(long, value_name = "K", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub candidates: u16,
    /// Ask the judge so many times about each pair; the majority counts.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "judge",
          value_parser = clap::value_parser!(u16).range(1..=99))]
    pub times: u16,
}

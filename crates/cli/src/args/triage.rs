//! The arguments of `isolde triage`.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  isolde triage isolde.out                                   all findings of a hunt
  isolde triage isolde.out/findings/00000033                 one of them
  isolde triage isolde.out --against last-week --json        compared with an earlier hunt
  isolde triage isolde.out --judge 'python3 ask_a_model.py'  compared by a program";

#[derive(Args)]
pub struct TriageArgs {
    /// Folders of findings, or output folders of hunts.
    #[arg(value_name = "FINDING", required = true)]
    pub findings: Vec<PathBuf>,
    /// Compare with the findings of these hunts, too.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Program that decides which of two reports is closer to a finding. It reads them as JSON
    /// from stdin and answers with JSON (docs/triage.md).
    #[arg(long, value_name = "CMD")]
    pub judge: Option<String>,
    /// Time limit for an answer of the judge; after that the built-in judge decides.
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "judge",
          value_parser = humantime::parse_duration)]
    pub judge_timeout: Duration,
    /// Number of candidates to compare pairwise.
    #[arg(long, value_name = "K", default_value_t = 8,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub candidates: u16,
    /// Ask the judge N times per pair; the majority decides.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "judge",
          value_parser = clap::value_parser!(u16).range(1..=99))]
    pub times: u16,
}

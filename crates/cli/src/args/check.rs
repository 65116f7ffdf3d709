//! The arguments of `isolde check`.

use clap::Args;
use isolde_checker::Level;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  isolde check history.edn                          is it serializable?
  isolde check --level si store/latest/history.edn  like elle-cli -c snapshot-isolation
  isolde check --json --svg cycles.svg run.jsonl.gz

Levels (and short names): read-uncommitted (ru), read-committed (rc),
cursor-stability, monotonic-atomic-view (mav), read-atomic (ra), causal (cc),
consistent-view, repeatable-read (rr), snapshot-isolation (si), serializable
(ser); the same with the prefix strong-session-, which also respect session
order; strong-snapshot-isolation and strict-serializable, which also respect
real time.

Formats: isolde, elle-edn, elle-json, plume (PolySI, IsoVista), awdit, cobra,
dbcop-json, dbcop-text, dbcop-binary, each optionally compressed with gzip or
zstd. See docs/check.md.

Exit codes:
  0    the level holds
  1    the level is violated
  3    unknown whether the level holds
  5    a file cannot be read";

#[derive(Args)]
pub struct CheckArgs {
    /// History files; folders of Cobra logs or of a Jepsen run; - for stdin.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Format of the files, if their content does not show it.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub format: String,
    /// The level that decides the exit code.
    #[arg(long, value_name = "LEVEL", default_value = "serializable")]
    pub level: Level,
    /// Check only that level and what follows from it; much faster for weak levels.
    #[arg(long)]
    pub only: bool,
    /// Write the cycles as a Graphviz graph.
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Write the cycles as an SVG image.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the detected format and how long reading and checking took.
    #[arg(long)]
    pub verbose: bool,
}

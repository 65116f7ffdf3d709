//! The arguments of `isolde check`.

use clap::Args;
use isolde_checker::Level;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  isolde check history.edn                          is it serializable?
  isolde check --level si store/latest/history.edn  as elle-cli -c snapshot-isolation
  isolde check --json --svg cycles.svg run.jsonl.gz

Levels (and short names): read-uncommitted (ru), read-committed (rc),
cursor-stability, monotonic-atomic-view (mav), read-atomic (ra), causal (cc),
consistent-view, repeatable-read (rr), snapshot-isolation (si), serializable
(ser); the same with strong-session- where sessions keep their order;
strong-snapshot-isolation and strict-serializable, which keep real time.

Formats: isolde, elle-edn, elle-json, plume (PolySI, IsoVista), awdit, cobra,
dbcop-json, dbcop-text, dbcop-binary, each also as gzip or zstd. docs/check.md
has them all.

Exits 0 when the level holds, 1 when it is violated, 3 when that is unknown,
5 when a file cannot be read.";

#[derive(Args)]
pub struct CheckArgs {
    /// Files with a history each; folders of Cobra's logs or of a Jepsen run; - is stdin.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What the files are, where their content does not tell.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub format: String,
    /// The level that decides the exit code.
    #[arg(long, value_name = "LEVEL", default_value = "serializable")]
    pub level: Level,
    /// Decide only that level, and what follows from it: weak levels are quicker alone.
    #[arg(long)]
    pub only: bool,
    /// Write the cycles as a graph for Graphviz.
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Write the cycles as a picture.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Say what the files were taken for, and how long it took.
    #[arg(long)]
    pub verbose: bool,
}

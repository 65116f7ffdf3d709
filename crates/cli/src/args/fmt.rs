//! The arguments of `isolde fmt`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct FmtArgs {
    /// Files to rewrite; - reads stdin and writes stdout.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Change nothing; exit with 1 if a file is not formatted.
    #[arg(long)]
    pub check: bool,
}

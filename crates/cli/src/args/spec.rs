//! The arguments of `isolde spec`.

use super::shared::ServerArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct SpecArgs {
    /// The spec files.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Target to run on.
    #[arg(long, value_name = "TARGET", default_value = "postgres")]
    pub on: String,
    /// Compare with NAME.out, NAME_1.out, … in this directory.
    #[arg(long, value_name = "DIR")]
    pub expected: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

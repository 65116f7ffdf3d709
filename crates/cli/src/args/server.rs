//! The arguments of `isolde server`.

use super::shared::ServerArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct PrivateServerArgs {
    /// Target to start.
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Run this first: an SQL script, or the setup of a case file.
    #[arg(long, value_name = "FILE")]
    pub setup: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

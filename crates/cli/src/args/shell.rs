//! The arguments of `isolde shell`.

use super::shared::ServerArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct ShellArgs {
    /// Number of clients.
    #[arg(value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub clients: u16,
    /// Target to start.
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Run this first: an SQL script, or the setup of a case file.
    #[arg(long, value_name = "FILE")]
    pub setup: Option<PathBuf>,
    #[command(flatten)]
    pub server: ServerArgs,
}

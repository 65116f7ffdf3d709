//! The arguments of `isolde repl`.

use super::shared::ServerArgs;
use clap::Args;

#[derive(Args)]
pub struct ReplArgs {
    /// Target to start.
    #[arg(value_name = "TARGET", default_value = "sqlite")]
    pub target: String,
    #[command(flatten)]
    pub server: ServerArgs,
}

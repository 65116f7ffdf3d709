//! The arguments of `isolde matrix`.

use super::shared::ServerArgs;
use clap::Args;

#[derive(Args)]
pub struct MatrixArgs {
    /// Targets to test.
    #[arg(value_name = "TARGET", default_values = ["sqlite", "sqlite+wal", "sqlite+shared-cache"])]
    pub targets: Vec<String>,
    /// Show the transcript that decided a cell: P4, RR/P4 or postgres/RR/P4.
    #[arg(long, value_name = "CELL")]
    pub explain: Option<String>,
    /// Only these levels (RU, RC, RR, SI, SER or their full names).
    #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
    pub level: Vec<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}

//! The arguments of `isolde report`.

use super::shared::BaselineArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct ReportArgs {
    /// The output folder of a hunt.
    #[arg(value_name = "DIR", default_value = "isolde.out")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub baseline: BaselineArgs,
}

//! The arguments of `isolde merge`.

use super::shared::BaselineArgs;
use clap::Args;
use std::path::PathBuf;

pub const EXAMPLE: &str = "\
Example, one hunt on two machines, merged:
  isolde hunt postgres --seed 7 --cases 20000 --shard 1/2 --out part-1
  isolde hunt postgres --seed 7 --cases 20000 --shard 2/2 --out part-2
  isolde merge part-1 part-2 --out whole";

#[derive(Args)]
pub struct MergeArgs {
    /// The output folders of the shards.
    #[arg(value_name = "DIR", required = true)]
    pub dirs: Vec<PathBuf>,
    /// Output folder; an earlier hunt in it is moved aside.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub baseline: BaselineArgs,
}

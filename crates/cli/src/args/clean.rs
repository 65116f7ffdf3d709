//! The arguments of `isolde clean`.

use super::shared::LoginArgs;
use clap::Args;

#[derive(Args)]
pub struct CleanArgs {
    /// The server, such as postgres://user@host/ or mysql://user@host/.
    #[arg(value_name = "URL")]
    pub target: String,
    #[command(flatten)]
    pub login: LoginArgs,
}

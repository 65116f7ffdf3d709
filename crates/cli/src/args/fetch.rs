//! The arguments of `isolde fetch`.

use clap::Args;

#[derive(Args)]
pub struct FetchArgs {
    /// Servers, such as postgres@18, mariadb@11.4, mysql@8.0.33, turso@0.8.3 or tidb@8.5.
    #[arg(value_name = "ENGINE[@VERSION]", required = true)]
    pub engines: Vec<String>,
}

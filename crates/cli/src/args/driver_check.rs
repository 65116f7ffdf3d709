//! The arguments of `isolde driver-check`.

use clap::Args;

#[derive(Args)]
pub struct DriverCheckArgs {
    /// The command line that starts the driver.
    #[arg(value_name = "COMMAND", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

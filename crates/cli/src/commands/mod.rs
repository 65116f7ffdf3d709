//! The commands: one file or folder per command.
//!
//! [`run`] is the table of commands. `context.rs` has what all of them share,
//! `loaded_case.rs` and `own_target.rs` what is common to those that run a
//! case file or a finding.

mod anomalies;
mod check;
mod clean;
mod context;
mod convert;
mod driver_check;
mod explain;
mod faults;
mod fetch;
mod fmt;
mod hunt;
mod list;
mod loaded_case;
mod matrix;
mod merge;
mod order;
mod own_target;
mod reduce;
mod repl;
mod replay;
mod report;
mod run_history;
mod seed;
mod server;
mod servers;
mod shell;
mod spec;
mod test;
mod triage;

use crate::args::{Args, Command};
use crate::console::Console;
use crate::exit_code::{ExitCode, Failure};
use clap::CommandFactory;
use context::Context;

/// The exit code of a command that ran, or why it could not.
pub type Outcome = Result<ExitCode, Failure>;

pub fn run(args: Args, console: &Console) -> Outcome {
    let context = Context::new(&args, console)?;
    match &args.command {
        Command::Hunt(args) => hunt::run(&context, args),
        Command::Faults(args) => faults::run(&context, args),
        Command::Matrix(args) => matrix::run(&context, args),
        Command::Replay(args) => replay::run(&context, args),
        Command::Reduce(args) => reduce::run(&context, args),
        Command::Explain(args) => explain::run(&context, args),
        Command::Check(args) => check::run(&context, args),
        Command::Anomalies(args) => anomalies::run(&context, args),
        Command::RunHistory(args) => run_history::run(&context, args),
        Command::Order(args) => order::run(&context, args),
        Command::Test(args) => test::run(&context, args),
        Command::List(args) => list::run(&context, args),
        Command::Report(args) => report::run(&context, args),
        Command::Triage(args) => triage::run(&context, args),
        Command::Merge(args) => merge::run(&context, args),
        Command::Fmt(args) => fmt::run(&context, args),
        Command::Spec(args) => spec::run(&context, args),
        Command::Convert(args) => convert::run(&context, args),
        Command::Servers => servers::run(&context),
        Command::Fetch(args) => fetch::run(&context, args),
        Command::Server(args) => server::run(&context, args),
        Command::Shell(args) => shell::run(&context, args),
        Command::Repl(args) => repl::run(&context, args),
        Command::Clean(args) => clean::run(&context, args),
        Command::DriverCheck(args) => driver_check::run(&context, args),
        Command::Completions { shell } => completions(&context, *shell),
    }
}

fn completions(context: &Context<'_>, shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "isolde", &mut script);
    context.console.print_exactly(&String::from_utf8_lossy(&script));
    Ok(ExitCode::Success)
}

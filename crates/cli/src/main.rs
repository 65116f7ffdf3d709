//! `isolde`: parse the arguments, run the command, and exit with the code that
//! describes its outcome.

#![forbid(unsafe_code)]

mod args;
mod baseline;
mod commands;
mod console;
mod diff;
mod exit_code;
mod files;
mod interrupt;
mod junit;
mod known_bugs;
mod library;
mod page;
mod scenarios;
mod shell;
mod table;
mod visible;

use args::{Args, Command};
use clap::Parser;
use console::Console;
use exit_code::ExitCode;
use isolde_engines::connect::url::without_passwords;

fn main() -> std::process::ExitCode {
    install_panic_hook();
    // A panic is a defect of Isolde, never a finding: it has its own exit code.
    std::panic::catch_unwind(run).unwrap_or(ExitCode::Internal).into()
}

fn run() -> ExitCode {
    let args = match parse_args() {
        Ok(args) => args,
        Err(code) => return code,
    };
    // A check has nothing to clean up: Ctrl-C ends it at once.
    if !matches!(args.command, Command::Check(_)) {
        interrupt::install();
    }
    let console = Console::new(args.quiet);
    let code = commands::run(args, &console).unwrap_or_else(|failure| {
        console.error(&failure.message);
        failure.code
    });
    match console.write_error() {
        Some(error) => {
            console.error(&format!("cannot write to stdout: {error}"));
            code.worse(ExitCode::Output)
        }
        None => code,
    }
}

/// The arguments, or the exit code of an invalid command line. `--help` and
/// `--version` print and exit here.
fn parse_args() -> Result<Args, ExitCode> {
    match Args::try_parse() {
        Ok(args) => Ok(args),
        Err(error) if error.use_stderr() => {
            // The message quotes the invalid argument, which may be a URL.
            eprint!("{}", visible::visible(&without_passwords(&error.to_string())));
            Err(ExitCode::Usage)
        }
        Err(help) => help.exit(),
    }
}

fn install_panic_hook() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default_hook(panic);
        eprintln!("isolde: this is a defect in Isolde itself; please report the lines above");
    }));
}

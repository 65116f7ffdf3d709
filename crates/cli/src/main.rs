//! `isolde`: parse the arguments, do the one thing they ask for, and end with
//! the exit code that says how it went.

mod anomalies_args;
mod args;
mod baseline;
mod check_args;
mod commands;
mod console;
mod diff;
mod exit_code;
mod hunt_args;
mod interrupt;
mod junit;
mod known_bugs;
mod library;
mod order_args;
mod page;
mod reduce_args;
mod run_history_args;
mod scenarios;
mod shell;
mod table;
mod triage_args;
mod visible;
mod whole_file;

use clap::Parser;
use exit_code::ExitCode;
use isolde_engines::connect::url::without_passwords;

fn main() -> std::process::ExitCode {
    // A panic is a defect of ours, never a finding: it has its own exit code.
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default_hook(panic);
        eprintln!("isolde: this is a defect of Isolde itself; please report the lines above");
    }));
    let outcome = std::panic::catch_unwind(|| {
        let args = match args::Args::try_parse() {
            Ok(args) => args,
            Err(error) if error.use_stderr() => {
                // What makes no sense is shown, and may be a URL.
                eprint!("{}", visible::visible(&without_passwords(&error.to_string())));
                return ExitCode::Usage;
            }
            Err(help) => help.exit(),
        };
        // A check leaves nothing to tidy up: Ctrl-C ends it at once.
        if !matches!(args.command, args::Command::Check(_)) {
            interrupt::install();
        }
        let console = console::Console::new(args.quiet);
        let code = commands::run(args, &console).unwrap_or_else(|failure| {
            console.error(&failure.message);
            failure.code
        });
        match console.lost() {
            Some(error) => {
                console.error(&format!("cannot write to stdout: {error}"));
                code.worse(ExitCode::Output)
            }
            None => code,
        }
    });
    outcome.unwrap_or(ExitCode::Internal).into()
}

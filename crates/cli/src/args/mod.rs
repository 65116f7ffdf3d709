//! The command line: one file per command, and the option groups that several
//! commands share in `shared.rs`.

pub mod anomalies;
pub mod check;
pub mod clean;
pub mod convert;
pub mod driver_check;
pub mod explain;
pub mod faults;
pub mod fetch;
pub mod fmt;
pub mod hunt;
pub mod list;
pub mod matrix;
pub mod merge;
pub mod order;
pub mod reduce;
pub mod repl;
pub mod replay;
pub mod report;
pub mod run_history;
pub mod server;
pub mod shared;
pub mod shell;
pub mod spec;
pub mod test;
pub mod triage;

use crate::exit_code;
use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};
use shared::{LoginArgs, ServerArgs, TARGETS};

#[derive(Parser)]
#[command(name = "isolde", version, about = "The isolation detective: finds out whether a database keeps its transaction promises.", after_help = exit_code::TABLE)]
pub struct Args {
    /// Print results only: no progress, no legends.
    #[arg(long, short, global = true, env = "ISOLDE_QUIET", help_heading = GLOBAL_OPTIONS,
          value_parser = FalseyValueParser::new())]
    pub quiet: bool,

    /// Print JSON instead of text.
    #[arg(long, global = true, env = "ISOLDE_JSON", help_heading = GLOBAL_OPTIONS,
          value_parser = FalseyValueParser::new())]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

/// The heading of the options that every command has, listed below its own.
const GLOBAL_OPTIONS: &str = "Global options";

#[derive(Subcommand)]
pub enum Command {
    /// Generate cases, run them concurrently, and report isolation violations.
    ///
    /// Without arguments it hunts on SQLite for 20 seconds. Exits with 1 if a finding's cause
    /// is a bug.
    #[command(after_help = TARGETS)]
    Hunt(hunt::HuntArgs),
    /// Plant each known kind of fault in a target and show which oracles detect it.
    #[command(after_help = TARGETS)]
    Faults(faults::FaultsArgs),
    /// Show which anomalies each isolation level allows, as a table.
    ///
    /// Runs the Hermitage scenarios at every level of every target.
    #[command(after_help = TARGETS)]
    Matrix(matrix::MatrixArgs),
    /// Run case files and show what happened, step by step and level by level.
    ///
    /// A finding is checked again as its hunt did, against serial runs of the same statements:
    /// `still happens` (exit code 1) or `gone` (0).
    #[command(after_help = TARGETS)]
    Replay(replay::ReplayArgs),
    /// Reduce a failing case to a smaller one that fails in the same way.
    ///
    /// Removes operations first, then rows, columns, tables, indexes, constraints, switches
    /// between sessions and parts of expressions; then simplifies values and names. The
    /// violation stays the same: oracle, kind, cause and level. Exits with 1 if the case does
    /// not fail to begin with.
    #[command(after_help = reduce::EXAMPLES)]
    Reduce(reduce::ReduceArgs),
    /// Run a case and explain what each statement saw or did, and why.
    ///
    /// For each statement, in submission order: its result, the transaction it was blocked by,
    /// and the rules of the engine that account for it. `inside` means that the rules of the
    /// level allow the result, `outside` that they do not (exit code 1), and `not modelled` that
    /// no rule covers it (3). The run as a whole is `consistent` if running the transactions
    /// serially in commit order gives the same result, and `documented` if it does not although
    /// the rules allow it: an anomaly that applications at this level must handle.
    #[command(after_help = explain::EXAMPLE)]
    Explain(explain::ExplainArgs),
    /// Check which isolation levels a recorded history satisfies.
    ///
    /// Reads histories of Elle and Jepsen, Plume, PolySI, IsoVista, AWDIT, Cobra and dbcop, and
    /// Isolde's own (docs/history-format.md). Prints for every level whether it holds, and one
    /// shortest cycle per class of anomalies.
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Measure which classes of anomalies occur at each level, by running at full speed.
    ///
    /// Where `matrix` runs known scenarios, this runs many sessions without an imposed schedule
    /// and checks the histories: how often each class occurred, and one shortest cycle per class.
    /// A class that the documentation of the level rules out is marked, and the exit code is 1.
    #[command(after_help = TARGETS)]
    Anomalies(anomalies::AnomaliesArgs),
    /// Run a workload at full speed and record what each transaction read and wrote.
    ///
    /// Writes a history for `isolde check`, or in Elle's formats for other checkers. Transactions
    /// read and write a few keys; every value is written once, so that each read identifies the
    /// write it saw. No schedule is imposed: the history depends on timing.
    #[command(after_help = TARGETS)]
    RunHistory(run_history::RunHistoryArgs),
    /// Infer the order in which a database executed the operations of a trace.
    ///
    /// The client-side time intervals of operations overlap. Versions, results and the
    /// concurrency-control protocol of the engine decide most of the order that the times leave
    /// open. Prints batches of operations that do not conflict, the rules that ordered them,
    /// protocol violations, and what stays undecided. A trace that is truncated or contradicts
    /// itself is rejected (exit code 5).
    #[command(after_help = order::EXAMPLES)]
    Order(order::OrderArgs),
    /// Run the library of known bugs and compare the results with the recordings.
    ///
    /// Exits with 1 if a case behaves differently from when it was recorded.
    #[command(after_help = TARGETS)]
    Test(test::TestArgs),
    /// List the library of known bugs and where each one occurs.
    List(list::ListArgs),
    /// Write the report page of a hunt, report.html, into its output folder.
    ///
    /// A hunt writes the page when it ends; this command rewrites it, for a hunt that was killed
    /// or is still running, or for a folder from another machine. The page is a single file that
    /// needs no network.
    Report(report::ReportArgs),
    /// Group findings by defect and match them with known bugs.
    ///
    /// Findings of one defect are grouped by what went wrong: which rule was broken, between
    /// which kinds of statements, on the rows of which transaction. Each group is then compared
    /// with the known bugs of the library, as they ran on the same engine during the hunt, and
    /// with the findings of other hunts (--against). Features that distinguish bugs weigh more,
    /// and the most similar candidates are compared pairwise.
    #[command(after_help = triage::EXAMPLES)]
    Triage(triage::TriageArgs),
    /// Merge the output folders of a sharded hunt into one, with its report.
    ///
    /// The folders must belong to one hunt: the same seed, target, versions, levels, oracles and
    /// settings, and no shard twice. Exits with 1 if a finding's cause is a bug, as the unsharded
    /// hunt would. See docs/scale-out.md.
    #[command(after_help = merge::EXAMPLE)]
    Merge(merge::MergeArgs),
    /// Format case files.
    Fmt(fmt::FmtArgs),
    /// Run PostgreSQL isolation specs, on PostgreSQL or any other target.
    ///
    /// Prints what isolationtester prints, or compares it with expected files.
    #[command(after_help = TARGETS)]
    Spec(spec::SpecArgs),
    /// Convert a case, spec or script into another format.
    Convert(convert::ConvertArgs),
    /// List the servers that can be started here, and those that can be fetched.
    Servers,
    /// Download servers into Isolde's cache.
    Fetch(fetch::FetchArgs),
    /// Start a private server and print how to connect to it; it is removed on exit.
    #[command(after_help = TARGETS)]
    Server(server::PrivateServerArgs),
    /// Open several clients of one private server, side by side in tmux.
    #[command(after_help = TARGETS)]
    Shell(shell::ShellArgs),
    /// Type statements into several sessions and watch which session blocks which.
    ///
    /// Reads commands from stdin if that is not a terminal.
    #[command(after_help = TARGETS)]
    Repl(repl::ReplArgs),
    /// Remove databases that killed Isolde processes left on your server.
    ///
    /// Each such database carries the mark of the process that created it, and is removed if that
    /// process is dead. Databases of running processes, databases created on another machine, and
    /// everything else on the server are kept.
    Clean(clean::CleanArgs),
    /// Check that a driver program follows the protocol.
    DriverCheck(driver_check::DriverCheckArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// How to log in to a user's server; none for commands that never connect to one.
    pub fn login(&self) -> Option<&LoginArgs> {
        match self {
            Command::Clean(clean) => Some(&clean.login),
            other => other.server().map(|server| &server.login),
        }
    }

    /// How to start servers; none for commands that start none.
    pub fn server(&self) -> Option<&ServerArgs> {
        match self {
            Command::Hunt(args) => Some(&args.server),
            Command::Faults(args) => Some(&args.server),
            Command::Matrix(args) => Some(&args.server),
            Command::Replay(args) => Some(&args.server),
            Command::Reduce(args) => Some(&args.server),
            Command::Explain(args) => Some(&args.server),
            Command::Anomalies(args) => Some(&args.server),
            Command::RunHistory(args) => Some(&args.server),
            Command::Test(args) => Some(&args.server),
            Command::Spec(args) => Some(&args.server),
            Command::Server(args) => Some(&args.server),
            Command::Shell(args) => Some(&args.server),
            Command::Repl(args) => Some(&args.server),
            Command::Check(_)
            | Command::Order(_)
            | Command::List(_)
            | Command::Report(_)
            | Command::Triage(_)
            | Command::Merge(_)
            | Command::Fmt(_)
            | Command::Convert(_)
            | Command::Servers
            | Command::Fetch(_)
            | Command::Clean(_)
            | Command::DriverCheck(_)
            | Command::Completions { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_argument_of_every_command_is_described() {
        let mut whole = Args::command();
        whole.build();
        for command in whole.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            // The list below `help` is clap's own.
            for argument in command.get_arguments().filter(|_| command.get_name() != "help") {
                let (command, name) = (command.get_name(), argument.get_id());
                assert!(argument.get_help().is_some(), "isolde {command}: {name}");
                let values = argument.get_possible_values();
                let described = |v: &clap::builder::PossibleValue| v.get_help().is_some();
                let some = values.iter().any(described);
                assert!(!some || values.iter().all(described), "isolde {command}: {name}");
            }
        }
    }

    #[test]
    fn commands_that_start_servers_take_via_and_no_others_do() {
        let mut whole = Args::command();
        whole.build();
        let has = |c: &&clap::Command| c.get_arguments().any(|a| a.get_id() == "via");
        let with: Vec<&str> =
            whole.get_subcommands().filter(has).map(clap::Command::get_name).collect();
        let starting = [
            "hunt",
            "faults",
            "matrix",
            "replay",
            "reduce",
            "explain",
            "anomalies",
            "run-history",
            "test",
            "spec",
            "server",
            "shell",
            "repl",
        ];
        assert_eq!(with, starting);
    }
}

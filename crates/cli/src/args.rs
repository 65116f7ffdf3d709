//! The command line.

use crate::anomalies_args::AnomaliesArgs;
use crate::baseline::BaselineArgs;
use crate::check_args::{self, CheckArgs};
use crate::exit_code;
use crate::hunt_args::{FaultsArgs, HuntArgs};
use crate::order_args::{self, OrderArgs};
use crate::reduce_args::{self, ReduceArgs};
use crate::run_history_args::RunHistoryArgs;
use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "isolde", version, about = "The isolation detective: finds out whether a database keeps its transaction promises.", after_help = exit_code::TABLE)]
pub struct Args {
    /// Print results only: no progress, no legend.
    #[arg(long, short, global = true, env = "ISOLDE_QUIET", help_heading = EVERYWHERE,
          value_parser = FalseyValueParser::new())]
    pub quiet: bool,

    /// Print JSON instead of text.
    #[arg(long, global = true, env = "ISOLDE_JSON", help_heading = EVERYWHERE,
          value_parser = FalseyValueParser::new())]
    pub json: bool,

    #[command(subcommand)]
    pub command: Command,
}

/// Where the options of every command stand: below a command's own.
const EVERYWHERE: &str = "Options of every command";

/// For the commands that start servers.
#[derive(clap::Args)]
pub struct Starting {
    /// Start servers in containers of the official images.
    #[arg(long, value_name = "RUNTIME", env = "ISOLDE_VIA")]
    pub via: Option<Via>,
    #[command(flatten)]
    pub login: LoggingIn,
}

/// For the commands that take the URL of a server.
#[derive(clap::Args)]
pub struct LoggingIn {
    /// A file whose first line is the password for a URL that has none.
    #[arg(long, value_name = "FILE", env = "ISOLDE_PASSWORD_FILE")]
    pub password_file: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Via {
    Podman,
    Docker,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ConvertTo {
    /// Isolde's case format.
    Case,
    /// PostgreSQL's isolation spec.
    Spec,
    /// A mysqltest script.
    Mtr,
    /// Annotated SQL for the engine's own client.
    Sql,
    /// What isolationtester prints of the spec of a recorded run.
    SpecOut,
    /// The result of the mysqltest script of a recorded run.
    MtrResult,
    /// A Python program for SQLite, DuckDB or Turso, of a recorded run.
    Python,
    /// A bug report in Markdown, of a recorded run.
    Report,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ConvertFrom {
    /// Isolde's case format.
    Case,
    /// PostgreSQL's isolation spec.
    Spec,
    /// A mysqltest script.
    Mtr,
    /// Lines such as `conn_0> SQL;`.
    Replbug,
}

const TARGETS: &str = "\
Targets:
  sqlite  sqlite+wal  sqlite+shared-cache     in process
  postgres  postgres@18  mariadb@11.4  mysql  a private server (see `isolde servers`)
  tidb  tidb+optimistic  dolt                 private servers too
  turso@0.8.3  turso+mvcc  duckdb             drivers in a process of their own
  postgres://user:password@host/  mysql://…   your server: a database of Isolde's own in it
  sqlite:new.db                               a new file, removed at the end
  driver:'python3 my_driver.py'               anything that speaks docs/driver-protocol.md";

const EXPLAIN: &str = "\
Example, a lost update:
  case: lost-update

  setup:
    create table account (id int primary key, balance int);
    insert into account values (1, 100);

  s1> begin;
  s2> begin;
  s1> select balance from account where id = 1;
  s2> select balance from account where id = 1;
  s1> update account set balance = 110 where id = 1;
  s2> update account set balance = 120 where id = 1;
  s1> commit;
  s2> commit;

  isolde explain lost-update.case --on postgres --level all

At READ COMMITTED the second update waits and then overwrites the first; from
REPEATABLE READ on it fails with 40001. docs/explain.md reads it line by line,
docs/semantics.md has all rules.";

const MERGE: &str = "\
Example, a hunt on two machines and its union:
  isolde hunt postgres --seed 7 --cases 20000 --shard 1/2 --out part-1
  isolde hunt postgres --seed 7 --cases 20000 --shard 2/2 --out part-2
  isolde merge part-1 part-2 --out whole";

#[derive(Subcommand)]
pub enum Command {
    /// Make cases, run them, judge them, and write down what is wrong.
    ///
    /// Without arguments it hunts on SQLite for 20 seconds. Exits 1 when there
    /// is a finding of cause bug.
    #[command(after_help = TARGETS)]
    Hunt(HuntArgs),
    /// Plant each known kind of fault in a target and see which oracle catches it.
    #[command(after_help = TARGETS)]
    Faults(FaultsArgs),
    /// Which anomalies each isolation level lets through, as a table.
    ///
    /// Plays the Hermitage scenarios on every level of every target.
    #[command(after_help = TARGETS)]
    Matrix {
        /// What to test.
        #[arg(value_name = "TARGET", default_values = ["sqlite", "sqlite+wal", "sqlite+shared-cache"])]
        targets: Vec<String>,
        /// Show the transcript that decided a cell: P4, RR/P4 or postgres/RR/P4.
        #[arg(long, value_name = "CELL")]
        explain: Option<String>,
        /// Only these levels (RU, RC, RR, SI, SER or their names).
        #[arg(long, value_name = "LEVEL", value_delimiter = ',')]
        level: Vec<String>,
        #[command(flatten)]
        starting: Starting,
    },
    /// Run case files and show what happened, step by step and level by level.
    ///
    /// The case of a finding is judged again as its hunt did, against serial runs
    /// of the same statements: `still happens` (exit code 1) or `gone` (0).
    #[command(after_help = TARGETS)]
    Replay {
        /// Case files, or folders of findings.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Where to run them. Without it the hunt's target for a finding, else
        /// the first of a case's engines that is here, else SQLite.
        #[arg(long, value_name = "TARGET", num_args = 1..)]
        on: Vec<String>,
        /// Levels to run at: `all`, or names. Without it the case's own level,
        /// else the target's default.
        #[arg(long, value_name = "LEVEL", value_delimiter = ',', num_args = 1..)]
        level: Vec<String>,
        /// Judge by this oracle: isolation runs the cases on tables that tell which versions were
        /// read and written, and says which cycles they form and which of them the level rules out;
        /// topological compares their statements with the same alone; merged, at SERIALIZABLE,
        /// merges two of their transactions.
        #[arg(long, value_name = "ORACLE", value_delimiter = ',', conflicts_with = "out")]
        oracle: Vec<String>,
        /// Write a Markdown report here as well.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        starting: Starting,
    },
    /// Make a case that fails smaller, while it fails in the same way.
    ///
    /// Operations go first, then rows, columns, tables, indexes, constraints, switches between
    /// sessions, parts of expressions, and values and names become plain. The violation stays
    /// the same: oracle, kind, cause and level. Exits 1 when the case does not fail as it is.
    #[command(after_help = reduce_args::EXAMPLE)]
    Reduce(ReduceArgs),
    /// Run a case and say of each statement what it saw or did, and why.
    ///
    /// For each statement, in the order in which they were sent: what came back,
    /// whom it waited for, and by which rules of the engine. `inside` is what the
    /// rules of its level allow, `outside` is what they do not (exit code 1),
    /// `not modelled` is what nobody has written rules for (3). The whole is
    /// `consistent` when one transaction after the other, in the order of the
    /// commits, would have done the same; `documented` when not, though the rules
    /// allow it: that is what your code has to reckon with at this level.
    #[command(after_help = EXPLAIN)]
    Explain {
        /// The case file, or the folder of a finding.
        #[arg(value_name = "CASE")]
        case: PathBuf,
        /// Where to run it. Without it the hunt's target for a finding, else
        /// the first of the case's engines that is here, else SQLite.
        #[arg(long, value_name = "TARGET")]
        on: Option<String>,
        /// Levels to run at: names, or `all`: the case's own, and what is
        /// different at the others.
        #[arg(long, value_name = "LEVEL", value_delimiter = ',', num_args = 1..)]
        level: Vec<String>,
        #[command(flatten)]
        starting: Starting,
    },
    /// Which isolation levels does a recorded history satisfy, and if not, why?
    ///
    /// Reads the histories of Elle and Jepsen, Plume, PolySI, IsoVista, AWDIT, Cobra
    /// and dbcop, and Isolde's own (docs/history-format.md). Says for every level
    /// whether it holds, and shows each class of anomalies by a shortest cycle.
    #[command(after_help = check_args::EXAMPLES)]
    Check(CheckArgs),
    /// Which classes of anomalies happen at each level, by running at full speed.
    ///
    /// Where `matrix` plays ten known scenarios, this runs many sessions without an
    /// order and checks what they saw: a table of what was found how often, and a shortest
    /// cycle for each. What a level's documentation rules out is marked, and exits 1.
    #[command(after_help = TARGETS)]
    Anomalies(AnomaliesArgs),
    /// Run a workload at full speed and record what each transaction saw.
    ///
    /// The history is for `isolde check`, or in Elle's formats for others. Transactions
    /// read and write a few keys; every value is written once, so that a read tells whose
    /// write it saw. Nobody imposes an order: what is found depends on the timing.
    #[command(after_help = TARGETS)]
    RunHistory(RunHistoryArgs),
    /// Tell the order in which a database executed what a trace has.
    ///
    /// Times of clients overlap. Versions, results and the engine's protocol decide most of
    /// what they leave open: batches of operations that do not conflict, by which rules, what
    /// the protocol does not explain, and what stays open. A trace that is broken off or
    /// contradicts itself is refused (5).
    #[command(after_help = order_args::EXAMPLES)]
    Order(OrderArgs),
    /// Run the library of known bugs and compare with what is recorded.
    ///
    /// Exits 1 when a case does not do what it did when it was recorded.
    #[command(after_help = TARGETS)]
    Test {
        /// Only the cases whose id or title matches.
        #[arg(value_name = "REGEX")]
        regex: Option<String>,
        /// Where to run them; without it wherever they were recorded and can
        /// be started here.
        #[arg(long, value_name = "TARGET", num_args = 1..)]
        on: Vec<String>,
        /// Only these levels; without it all that a target has.
        #[arg(long, value_name = "LEVEL", value_delimiter = ',', num_args = 1..)]
        level: Vec<String>,
        /// Write what happens into the case files instead of comparing.
        #[arg(long)]
        record: bool,
        /// Record each case at least so many times, to find what varies.
        #[arg(long, value_name = "N", requires = "record",
              value_parser = clap::value_parser!(u32).range(1..=10000))]
        repeat: Option<u32>,
        /// Write the results as JUnit XML as well.
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
        /// The library; without it ./cases, else the one in this program.
        #[arg(long, value_name = "DIR")]
        cases: Option<PathBuf>,
        #[command(flatten)]
        starting: Starting,
    },
    /// List the library of known bugs and where each shows.
    List {
        /// Only the cases whose id or title matches.
        #[arg(value_name = "REGEX")]
        regex: Option<String>,
        /// Print the table of bugs, versions and levels as Markdown.
        #[arg(long)]
        markdown: bool,
        /// Print the rules of the engines instead, as Markdown.
        #[arg(long, conflicts_with_all = ["regex", "markdown", "cases"])]
        rules: bool,
        /// The library; without it ./cases, else the one in this program.
        #[arg(long, value_name = "DIR")]
        cases: Option<PathBuf>,
    },
    /// Write the page of a hunt, report.html, into its output folder.
    ///
    /// A hunt writes it at its end; this writes it again, for a hunt that was
    /// killed, one that still runs, or a folder from elsewhere. The page is one
    /// file that needs no network: open it in a browser, send it along.
    Report {
        /// The output folder of a hunt.
        #[arg(value_name = "DIR", default_value = "isolde.out")]
        dir: PathBuf,
        #[command(flatten)]
        baseline: BaselineArgs,
    },
    /// Say which findings are the same, and which known bug each is.
    ///
    /// Findings of one defect are put together by what went wrong: which rule was
    /// broken, between which kinds of statements, with whose rows. Each group is
    /// then compared with the known bugs of the library, as they ran on the same
    /// engine during the hunt, and with the findings of other hunts (--against):
    /// features that tell bugs apart weigh more, and the most similar candidates
    /// are compared two by two.
    #[command(after_help = "Examples:
  isolde triage isolde.out                                   all findings of a hunt
  isolde triage isolde.out/findings/00000033                 one of them
  isolde triage isolde.out --against last-week --json        beside an earlier hunt
  isolde triage isolde.out --judge 'python3 ask_a_model.py'  let a program compare")]
    Triage(crate::triage_args::TriageArgs),
    /// Unite the output folders of shards into one, with its report.
    ///
    /// The parts must be of one hunt: the same seed, target, versions, levels,
    /// oracles and settings, and no shard twice. Exits 1 when there is a finding
    /// of cause bug, as the whole hunt would have. See docs/scale-out.md.
    #[command(after_help = MERGE)]
    Merge {
        /// The output folders of the shards.
        #[arg(value_name = "DIR", required = true)]
        dirs: Vec<PathBuf>,
        /// Where to put the union; a hunt that is there already is moved aside.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        #[command(flatten)]
        baseline: BaselineArgs,
    },
    /// Put case files into their canonical form.
    Fmt {
        /// Files to rewrite; - reads stdin and writes stdout.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Change nothing; exit 1 if a file is not in canonical form.
        #[arg(long)]
        check: bool,
    },
    /// Run PostgreSQL isolation specs, on PostgreSQL or any other target.
    ///
    /// Prints what isolationtester prints, or compares it with expected files.
    #[command(after_help = TARGETS)]
    Spec {
        /// The specs.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Where to run them.
        #[arg(long, value_name = "TARGET", default_value = "postgres")]
        on: String,
        /// Compare with NAME.out, NAME_1.out, … in this directory.
        #[arg(long, value_name = "DIR")]
        expected: Option<PathBuf>,
        #[command(flatten)]
        starting: Starting,
    },
    /// Turn a case, spec or script into another format.
    Convert {
        /// The file to read, - for stdin, or the folder of a finding.
        #[arg(value_name = "FILE|FOLDER")]
        file: PathBuf,
        /// What to write.
        #[arg(long, value_name = "FORMAT")]
        to: ConvertTo,
        /// What the file is, where its name and text do not tell.
        #[arg(long, value_name = "FORMAT")]
        from: Option<ConvertFrom>,
        /// Which permutation of a spec to take, counted from 1.
        #[arg(long, value_name = "N")]
        permutation: Option<usize>,
        /// A run of the case, as `isolde replay --json` writes it: what waited
        /// and failed in it, and what came back, goes into what is written.
        #[arg(long, value_name = "FILE")]
        history: Option<PathBuf>,
    },
    /// List the servers that can be started here, and what fetch could add.
    Servers,
    /// Bring a server of a version into Isolde's cache.
    Fetch {
        /// Such as postgres@18, mariadb@11.4, mysql@8.0.33, turso@0.8.3, tidb@8.5.
        #[arg(value_name = "ENGINE[@VERSION]", required = true)]
        engines: Vec<String>,
    },
    /// Start a private server, say how to reach it, and remove it at the end.
    #[command(after_help = TARGETS)]
    Server {
        /// What to start.
        #[arg(value_name = "TARGET")]
        target: String,
        /// Run this first: a script of SQL, or the setup of a case file.
        #[arg(long, value_name = "FILE")]
        setup: Option<PathBuf>,
        #[command(flatten)]
        starting: Starting,
    },
    /// Clients of one private server, side by side in tmux.
    #[command(after_help = TARGETS)]
    Shell {
        /// How many clients.
        #[arg(value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
        clients: u16,
        /// What to start.
        #[arg(value_name = "TARGET")]
        target: String,
        /// Run this first: a script of SQL, or the setup of a case file.
        #[arg(long, value_name = "FILE")]
        setup: Option<PathBuf>,
        #[command(flatten)]
        starting: Starting,
    },
    /// Type statements into several sessions and watch who waits for whom.
    ///
    /// Reads commands from stdin when that is no terminal.
    #[command(after_help = TARGETS)]
    Repl {
        /// What to start.
        #[arg(value_name = "TARGET", default_value = "sqlite")]
        target: String,
        #[command(flatten)]
        starting: Starting,
    },
    /// Remove the databases that killed Isoldes have left on your server.
    ///
    /// Each bears the mark of the process that made it. It is removed if that
    /// process is dead; what living ones work in, what was made on another
    /// machine, and everything else on the server is left alone.
    Clean {
        /// The server, such as postgres://user@host/ or mysql://user@host/.
        #[arg(value_name = "URL")]
        target: String,
        #[command(flatten)]
        login: LoggingIn,
    },
    /// Check that a driver program follows the protocol.
    DriverCheck {
        /// The driver's command line.
        #[arg(value_name = "COMMAND", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// How to log in to a user's server; none for commands that never do.
    pub fn login(&self) -> Option<&LoggingIn> {
        match self {
            Command::Clean { login, .. } => Some(login),
            other => other.starting().map(|starting| &starting.login),
        }
    }

    /// How servers are to be started; none for commands that start none.
    pub fn starting(&self) -> Option<&Starting> {
        match self {
            Command::Hunt(hunt) => Some(&hunt.starting),
            Command::Faults(faults) => Some(&faults.starting),
            Command::Reduce(reduce) => Some(&reduce.starting),
            Command::RunHistory(run) => Some(&run.starting),
            Command::Anomalies(anomalies) => Some(&anomalies.starting),
            Command::Matrix { starting, .. }
            | Command::Replay { starting, .. }
            | Command::Explain { starting, .. }
            | Command::Test { starting, .. }
            | Command::Spec { starting, .. }
            | Command::Server { starting, .. }
            | Command::Shell { starting, .. }
            | Command::Repl { starting, .. } => Some(starting),
            _ => None,
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
    fn what_starts_servers_says_how_and_nothing_else_does() {
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

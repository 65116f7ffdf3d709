//! One file a command.

mod anomalies;
mod check;
mod check_show;
mod clean;
mod convert;
mod convert_run;
mod driver_check;
mod explain;
mod explain_show;
mod fetch;
mod fmt;
mod hunt;
mod list;
mod matrix;
mod merge;
mod order;
mod reduce;
mod repl;
mod replay;
mod replay_finding;
mod replay_judged;
mod replay_oracle;
mod replay_show;
mod replay_target;
mod report;
mod run_history;
mod server;
mod servers;
mod shell;
mod spec;
mod test;
mod test_record;
mod test_report;
mod test_run;
mod triage;
mod triage_judge;
mod triage_show;

use crate::args::{Args, Command, Via};
use crate::console::Console;
use crate::exit_code::{ExitCode, Failure};
use clap::CommandFactory;
use isolde_core::{Level, case};
use isolde_engines::connect::password;
use isolde_engines::connect::secret::Secret;
use isolde_engines::engine::Engine;
use isolde_engines::fetch::install::Cache;
use isolde_engines::runner::Runner;
use isolde_engines::server::via::Runtime;
use isolde_engines::target::{Options, Target};
use std::io::Read;
use std::path::Path;

pub type Outcome = Result<ExitCode, Failure>;

/// What every command is told.
pub struct Context<'a> {
    pub console: &'a Console,
    pub json: bool,
    pub options: Options,
    /// For the servers of the user that are named by a URL without one.
    pub password: Option<Secret>,
}

pub fn run(args: Args, console: &Console) -> Outcome {
    let starting = args.command.starting();
    let via = starting.and_then(|s| s.via).map(|via| match via {
        Via::Podman => Runtime::Podman,
        Via::Docker => Runtime::Docker,
    });
    let options = Options { cache: Cache::open(), via };
    let password = args.command.login().and_then(|login| login.password_file.as_deref());
    let password = password.map(password::from_file).transpose();
    let password = password.map_err(|e| Failure::new(ExitCode::BadInput, e))?;
    let context = Context { console, json: args.json, options, password };
    match args.command {
        Command::Hunt(hunt) => hunt::run(&context, &hunt),
        Command::Faults(faults) => hunt::faults::run(&context, &faults),
        Command::Matrix { targets, explain, level, .. } => {
            matrix::run(&context, &targets, explain.as_deref(), &level)
        }
        Command::Replay { files, on, level, oracle, .. } if !oracle.is_empty() => {
            replay_oracle::run(&context, &files, &on, &level, &oracle)
        }
        Command::Replay { files, on, level, out, .. } => {
            replay::run(&context, &files, &on, &level, out.as_deref())
        }
        Command::Explain { case, on, level, .. } => {
            explain::run(&context, &case, on.as_deref(), &level)
        }
        Command::Reduce(reduce) => reduce::run(&context, &reduce),
        Command::Check(check) => check::run(&context, &check),
        Command::Anomalies(wish) => anomalies::run(&context, &wish),
        Command::Order(wish) => order::run(&context, &wish),
        Command::RunHistory(run) => run_history::run(&context, &run),
        Command::Test { regex, on, level, record, repeat, junit, cases, .. } => {
            let wish = test::Wish { on, level, record, repeat, junit };
            test::run(&context, regex.as_deref(), cases.as_deref(), &wish)
        }
        Command::List { rules: true, .. } => {
            console.print(&isolde_core::semantics::rules::page::markdown());
            Ok(ExitCode::Fine)
        }
        Command::List { regex, markdown, cases, .. } => {
            list::run(&context, regex.as_deref(), cases.as_deref(), markdown)
        }
        Command::Report { dir, baseline } => report::run(&context, &dir, &baseline),
        Command::Triage(args) => triage::run(&context, &args),
        Command::Merge { dirs, out, baseline } => merge::run(&context, &dirs, &out, &baseline),
        Command::Clean { target, .. } => clean::run(&context, &target),
        Command::Fmt { files, check } => fmt::run(&context, &files, check),
        Command::Spec { files, on, expected, .. } => {
            spec::run(&context, &files, &on, expected.as_deref())
        }
        Command::Convert { file, to, from, permutation, history } => {
            convert::run(&context, &file, to, (from, permutation), history.as_deref())
        }
        Command::Servers => servers::run(&context),
        Command::Server { target, setup, .. } => server::run(&context, &target, setup.as_deref()),
        Command::Shell { clients, target, setup, .. } => {
            shell::run(&context, clients, &target, setup.as_deref())
        }
        Command::Repl { target, .. } => repl::run(&context, &target),
        Command::Fetch { engines } => fetch::run(&context, &engines),
        Command::DriverCheck { command } => driver_check::run(&context, &command),
        Command::Completions { shell } => {
            let mut command = Args::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "isolde", &mut script);
            console.print_exactly(&String::from_utf8_lossy(&script));
            Ok(ExitCode::Fine)
        }
    }
}

impl Context<'_> {
    pub fn parse_target(&self, text: &str) -> Result<Target, Failure> {
        let target = Target::parse(text).map_err(|e| Failure::new(ExitCode::Usage, e))?;
        Ok(match &self.password {
            Some(password) => target.with_password(password.clone()),
            None => target,
        })
    }

    /// Does something with each target, as far as that works: what came of it, and the worst
    /// that happened. Trouble with one does not keep the others back, Ctrl-C does.
    pub fn each_target<T>(
        &self,
        targets: &[Target],
        mut work: impl FnMut(Runner) -> Result<T, Failure>,
    ) -> (Vec<T>, ExitCode) {
        let (mut done, mut worst) = (Vec::new(), ExitCode::Fine);
        for target in targets {
            match self.open(target).and_then(&mut work) {
                Ok(result) => done.push(result),
                Err(failure) if failure.code == ExitCode::Interrupted => {
                    return (done, ExitCode::Interrupted);
                }
                Err(failure) => {
                    self.console.error(&format!("{target}: {}", failure.message));
                    worst = worst.worse(failure.code);
                }
            }
        }
        (done, worst)
    }

    /// Starts or connects to a target, ready to run cases.
    pub fn open(&self, target: &Target) -> Result<Runner, Failure> {
        self.console.progress(&format!("starting {target}"));
        let engine: Box<dyn Engine> = target.open(&self.options)?;
        self.console.end_progress();
        if engine.profile().untested {
            let engine = &engine.info().engine;
            self.console.note(&format!(
                "{engine}: Isolde's profile of it is written from its documentation and untested"
            ));
        }
        let mut runner = Runner::new(engine);
        runner.interrupted = crate::interrupt::asked;
        Ok(runner)
    }
}

/// The levels named on the command line; none when it names none.
pub fn parse_levels(names: &[String]) -> Result<Option<Levels>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    if names.iter().any(|n| n.eq_ignore_ascii_case("all")) {
        return Ok(Some(Levels::All));
    }
    let levels: Result<Vec<Level>, _> = names.iter().map(|n| n.parse()).collect();
    levels.map(|l| Some(Levels::These(l))).map_err(|e| Failure::new(ExitCode::Usage, e.to_string()))
}

/// The levels of a target that are wanted, in its order.
pub fn known_levels(runner: &Runner, wanted: Option<&Levels>) -> Vec<Level> {
    let known = runner.engine.profile().level_names();
    match wanted {
        Some(Levels::These(levels)) => known.into_iter().filter(|l| levels.contains(l)).collect(),
        _ => known,
    }
}

#[derive(Clone, Debug)]
pub enum Levels {
    All,
    These(Vec<Level>),
}

pub fn read_file(path: &Path) -> Result<String, Failure> {
    let failed = |e: &dyn std::fmt::Display| {
        Failure::new(ExitCode::BadInput, format!("cannot read {}: {e}", path.display()))
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| failed(&e))?;
    } else {
        bytes = std::fs::read(path).map_err(|e| failed(&e))?;
    }
    case::text_of(bytes)
        .map_err(|error| Failure::new(ExitCode::BadInput, format!("{}: {error}", path.display())))
}

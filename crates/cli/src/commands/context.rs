//! What every command needs: the console, the options for starting targets,
//! and the parsing of targets and levels.

use crate::args::Args;
use crate::args::shared::ContainerRuntime;
use crate::console::Console;
use crate::exit_code::{ExitCode, Failure};
use crate::interrupt;
use isolde_engines::connect::password;
use isolde_engines::engine::Engine;
use isolde_engines::fetch::install::Cache;
use isolde_engines::runner::Runner;
use isolde_engines::secret::Secret;
use isolde_engines::server::via::Runtime;
use isolde_engines::target::{Options, Target};
use isolde_model::Level;
use isolde_model::case::Case;
use isolde_model::history::TargetInfo;

pub struct Context<'a> {
    pub console: &'a Console,
    pub json: bool,
    pub options: Options,
    /// The password for URLs of the user's servers that have none.
    pub password: Option<Secret>,
}

impl<'a> Context<'a> {
    pub fn new(args: &Args, console: &'a Console) -> Result<Context<'a>, Failure> {
        let via = args.command.server().and_then(|server| server.via).map(|via| match via {
            ContainerRuntime::Podman => Runtime::Podman,
            ContainerRuntime::Docker => Runtime::Docker,
        });
        let options = Options { cache: Cache::open(), via };
        let file = args.command.login().and_then(|login| login.password_file.as_deref());
        let password = file.map(password::from_file).transpose();
        let password = password.map_err(|e| Failure::new(ExitCode::BadInput, e))?;
        Ok(Context { console, json: args.json, options, password })
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

    pub fn parse_targets(&self, texts: &[String]) -> Result<Vec<Target>, Failure> {
        texts.iter().map(|text| self.parse_target(text)).collect()
    }

    /// Opens each target and runs `work` on it. Returns the results of those
    /// that worked, and the worst exit code of the others. A failing target
    /// does not stop the rest; Ctrl-C does.
    pub fn each_target<T>(
        &self,
        targets: &[Target],
        mut work: impl FnMut(Runner) -> Result<T, Failure>,
    ) -> (Vec<T>, ExitCode) {
        let (mut done, mut worst) = (Vec::new(), ExitCode::Success);
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
        let mut runner = Runner::new(self.open_engine(target)?);
        if runner.engine.profile().untested {
            let engine = &runner.engine.info().engine;
            self.console.note(&format!(
                "{engine}: Isolde's profile of this engine is untested; it was written from the \
                 engine's documentation"
            ));
        }
        runner.interrupted = interrupt::is_requested;
        Ok(runner)
    }

    /// Starts or connects to a target, while the progress line says so.
    pub fn open_engine(&self, target: &Target) -> Result<Box<dyn Engine>, Failure> {
        self.console.progress(&format!("starting {target}"));
        let engine = target.open(&self.options)?;
        self.console.end_progress();
        Ok(engine)
    }
}

/// The levels that `--level` asks for.
#[derive(Clone, Debug)]
pub enum LevelChoice {
    All,
    These(Vec<Level>),
}

impl LevelChoice {
    /// Parses `--level`; none if the option was not given.
    pub fn parse(names: &[String]) -> Result<Option<LevelChoice>, Failure> {
        if names.is_empty() {
            return Ok(None);
        }
        if names.iter().any(|n| n.eq_ignore_ascii_case("all")) {
            return Ok(Some(LevelChoice::All));
        }
        let levels: Result<Vec<Level>, _> = names.iter().map(|n| n.parse()).collect();
        levels
            .map(|l| Some(LevelChoice::These(l)))
            .map_err(|e| Failure::new(ExitCode::Usage, e.to_string()))
    }

    /// The chosen levels among those of a target, in its order; all of them
    /// if there is no choice.
    pub fn among(choice: Option<&LevelChoice>, runner: &Runner) -> Vec<Level> {
        let known = runner.engine.profile().level_names();
        match choice {
            Some(LevelChoice::These(levels)) => {
                known.into_iter().filter(|l| levels.contains(l)).collect()
            }
            Some(LevelChoice::All) | None => known,
        }
    }
}

/// Why a case is not run on a target; none if it is meant for it.
pub fn not_meant_for(case: &Case, on: &TargetInfo) -> Option<String> {
    let meant: Vec<String> = case.engines.iter().map(ToString::to_string).collect();
    (!case.runs_on(&on.engine, &on.version)).then(|| {
        let (engine, version) = (&on.engine, &on.version);
        format!("{}: skipped on {engine} {version}; the case is for {}", case.id, meant.join(", "))
    })
}

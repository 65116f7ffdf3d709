//! `isolde explain`: runs a case and explains each statement by the rules of
//! the engine.

mod advice;
mod compare;
mod fix;
pub mod show;

use super::Outcome;
use super::context::{Context, LevelChoice, not_meant_for};
use super::loaded_case::{LoadedCase, failure_of_run};
use crate::args::explain::ExplainArgs;
use crate::exit_code::{ExitCode, Failure};
use isolde_engines::target::Target;
use isolde_hunt::account;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_model::Verdict;
use isolde_model::case::Case;
use isolde_model::history::TargetInfo;
use isolde_model::{History, Level, Profile};
use isolde_reference::Account;

/// The run of a case at one level, with its explanation.
pub struct ExplainedRun {
    pub level: Level,
    pub history: History,
    pub account: Account,
    /// How the run differs from the case that the user gave, if it does.
    pub variant: Option<String>,
}

impl ExplainedRun {
    fn code(&self) -> ExitCode {
        match self.account.label {
            _ if self.history.lost_server() => ExitCode::Violation,
            Verdict::Bug => ExitCode::Violation,
            Verdict::Undecided => ExitCode::Undecided,
            Verdict::Consistent | Verdict::Documented | Verdict::Locking => ExitCode::Success,
        }
    }
}

/// A case explained on one target.
pub struct ExplainedTarget {
    /// With its version: `postgres 15.18`.
    name: String,
    info: TargetInfo,
    profile: Profile,
    runs: Vec<ExplainedRun>,
}

impl ExplainedTarget {
    fn code(&self) -> ExitCode {
        self.runs.iter().fold(ExitCode::Success, |worst, run| worst.worse(run.code()))
    }
}

pub fn run(context: &Context<'_>, args: &ExplainArgs) -> Outcome {
    let Some((case, on)) = args.case_and_targets() else {
        let text = "which case? isolde explain CASE --on TARGET";
        return Err(Failure::new(ExitCode::Usage, text));
    };
    let loaded = LoadedCase::read(&case)?;
    if on.len() > 1 {
        return compare::run(context, args, &loaded, on);
    }
    let target = loaded.target(context, on.first().map(String::as_str))?;
    let Some(explained) = explain_on(context, args, (&loaded, on), &target)? else {
        return Ok(ExitCode::Undecided);
    };
    let ExplainedTarget { name, info, profile, runs } = &explained;
    if context.json {
        context.console.print(&show::as_json(&loaded.case, info, runs).to_string());
    } else {
        let on = show::Explained { name: name.clone(), profile, info };
        show::show(context.console, &loaded.case, &on, runs);
    }
    Ok(explained.code())
}

/// Runs a case on a target at the levels that the user wants; none if the case is not
/// meant for it.
fn explain_on(
    context: &Context<'_>,
    args: &ExplainArgs,
    (loaded, on): (&LoadedCase, &[String]),
    target: &Target,
) -> Result<Option<ExplainedTarget>, Failure> {
    let levels = LevelChoice::parse(&args.level)?;
    let mut executor = match on.is_empty() {
        true => loaded.open_as_hunted(context, target)?,
        false => loaded.open(context, target)?,
    };
    let case = &loaded.case;
    let engine = &executor.runner.engine;
    let (info, profile) = (engine.info().clone(), engine.profile().clone());
    let own = case.level.unwrap_or(profile.default_level);
    let wanted = match levels {
        None => vec![own],
        // Engines that are compared need not have the same levels.
        Some(LevelChoice::These(mut levels)) => {
            if on.len() > 1 {
                levels.retain(|level| profile.level_names().contains(level));
            }
            levels
        }
        // The level of the case first: the others show only how they differ.
        Some(LevelChoice::All) => {
            let others = profile.level_names().into_iter().filter(|l| *l != own);
            std::iter::once(own).chain(others).collect()
        }
    };
    if let Some(why) = not_meant_for(case, &info) {
        context.console.note(&why);
        return Ok(None);
    }
    let mut runs = Vec::new();
    for level in wanted {
        context.console.progress(&format!("{} on {} at {level}", case.id, info.engine));
        let run = explain_run(&mut executor, case, level);
        context.console.end_progress();
        runs.push(run?);
    }
    if args.fix {
        let anomaly = runs.first().and_then(|first| Some((first, first.account.anomaly.clone()?)));
        match anomaly {
            Some((first, anomaly)) => {
                let fixed = fix::runs(&mut executor, case, first, &anomaly)?;
                runs.extend(fixed);
            }
            None => context.console.note("there is no anomaly to prevent"),
        }
    }
    let name = format!("{} {}", info.engine, info.version);
    Ok(Some(ExplainedTarget { name, info, profile, runs }))
}

/// Runs the case at a level and explains the run.
fn explain_run(
    executor: &mut Executor,
    case: &Case,
    level: Level,
) -> Result<ExplainedRun, Failure> {
    let history = executor.runner.run(case, Some(level))?;
    executor.forget_tables();
    let account = explain_history(executor, case, level, &history)?;
    Ok(ExplainedRun { level, history, account, variant: None })
}

/// Explains a run that was recorded before.
pub fn explain_history(
    executor: &mut Executor,
    case: &Case,
    level: Level,
    history: &History,
) -> Result<Account, Failure> {
    let info = executor.runner.engine.info().clone();
    let default_level = executor.runner.engine.profile().default_level;
    let mut case = case.clone().read_as(info.family());
    case.level = Some(level);
    let fixture = Fixture::of_case(&case, &info, default_level);
    let account = account::of_run(executor, (&fixture, &case), history).map_err(failure_of_run)?;
    Ok(account.expect("a case from a file can always be explained"))
}

//! `isolde explain`: a case, and why each of its statements did what it did.

use super::replay_finding::{failure, planted};
use super::replay_target::own_target;
use super::{Context, Levels, Outcome, explain_show, parse_levels, read_file};
use crate::exit_code::{ExitCode, Failure};
use isolde_core::case::{self, Case};
use isolde_core::semantics::{Account, Whole};
use isolde_core::{History, Level};
use isolde_engines::target::Target;
use isolde_hunt::account;
use isolde_hunt::again::{self, Seen};
use isolde_hunt::executor::{Executor, Fixture};
use std::path::{Path, PathBuf};

/// A case at one level.
pub struct AtLevel {
    pub level: Level,
    pub history: History,
    pub account: Account,
}

impl AtLevel {
    fn code(&self) -> ExitCode {
        match self.account.label {
            _ if self.history.lost_server() => ExitCode::Violation,
            Whole::Bug => ExitCode::Violation,
            Whole::Undecided => ExitCode::Undecided,
            Whole::Consistent | Whole::Documented => ExitCode::Fine,
        }
    }
}

pub fn run(context: &Context<'_>, file: &Path, on: Option<&str>, levels: &[String]) -> Outcome {
    let levels = parse_levels(levels)?;
    let (case, seen) = read(file)?;
    let target = match on {
        Some(on) => context.parse_target(on)?,
        None => context.parse_target(&own_target(context, &case, seen.as_ref()))?,
    };
    let fault = seen.as_ref().filter(|_| on.is_none());
    let mut executor = open(context, &target, &case, fault)?;
    let engine = &executor.runner.engine;
    let (info, profile) = (engine.info().clone(), engine.profile().clone());
    let own = case.level.unwrap_or(profile.default_level);
    let wanted = match levels {
        None => vec![own],
        Some(Levels::These(levels)) => levels,
        // The case's own first: the others are told by what is different.
        Some(Levels::All) => {
            let others = profile.level_names().into_iter().filter(|l| *l != own);
            std::iter::once(own).chain(others).collect()
        }
    };
    if !case.runs_on(&info.engine, &info.version) {
        let meant: Vec<String> = case.engines.iter().map(ToString::to_string).collect();
        let (engine, version, meant) = (&info.engine, &info.version, meant.join(", "));
        context
            .console
            .note(&format!("{}: not run on {engine} {version}; it is meant for {meant}", case.id));
        return Ok(ExitCode::Undecided);
    }
    let mut runs = Vec::new();
    for level in wanted {
        context.console.progress(&format!("{} at {level}", case.id));
        let run = explained(&mut executor, &case, level);
        context.console.end_progress();
        runs.push(run?);
    }
    let code = runs.iter().fold(ExitCode::Fine, |worst, run| worst.worse(run.code()));
    if context.json {
        context.console.print(&explain_show::as_json(&case, &info, &runs).to_string());
    } else {
        let on = format!("{} {}", info.engine, info.version);
        explain_show::show(context.console, &case, &on, &runs);
    }
    Ok(code)
}

/// The case of a file, or of the folder of a finding.
pub fn read(path: &Path) -> Result<(Case, Option<Seen>), Failure> {
    let file: PathBuf = if path.is_dir() { path.join("case.case") } else { path.into() };
    let bad = |why: String| Failure::new(ExitCode::BadInput, why);
    let text = read_file(&file)?;
    let case = case::parse(&text).map_err(|e| bad(format!("{}: {e}", file.display())))?;
    let seen = again::beside(&file, &case).map_err(|e| bad(e.to_string()))?;
    Ok((case, seen))
}

/// The target with the options of the case and, where a finding is at home, the
/// fault of its hunt.
pub fn open(
    context: &Context<'_>,
    target: &Target,
    case: &Case,
    seen: Option<&Seen>,
) -> Result<Executor, Failure> {
    let runner = if case.server_options.is_empty() {
        context.open(target)?
    } else {
        let with = target.with_server_options(&case.server_options);
        context.open(&with.map_err(|why| Failure::new(ExitCode::Usage, why))?)?
    };
    Ok(Executor::new(match seen {
        Some(seen) => planted(runner, seen)?,
        None => runner,
    }))
}

/// A run of the case at a level, held against the rules.
pub fn explained(executor: &mut Executor, case: &Case, level: Level) -> Result<AtLevel, Failure> {
    let history = executor.runner.run(case, Some(level))?;
    executor.forget_tables();
    let account = of_history(executor, case, level, &history)?;
    Ok(AtLevel { level, history, account })
}

/// What the rules say of a run that has been.
pub fn of_history(
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
    let account = account::of_run(executor, (&fixture, &case), history).map_err(failure)?;
    Ok(account.expect("a case from a file has a reading"))
}

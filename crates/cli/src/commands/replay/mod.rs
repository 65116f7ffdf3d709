//! `isolde replay`: runs case files on targets and levels, side by side.
//!
//! A finding is checked again as its hunt did (`finding.rs`). With `--oracle`,
//! `oracle.rs` runs the cases instead.

mod finding;
mod oracle;
mod serial_oracle;
mod show;

use super::Outcome;
use super::context::{Context, LevelChoice, not_meant_for};
use super::loaded_case::{LoadedCase, open_own_server, plant_fault_of};
use crate::args::replay::ReplayArgs;
use crate::exit_code::{ExitCode, Failure};
use finding::Recheck;
use isolde_engines::runner::Runner;
use isolde_engines::target::Target;
use isolde_hunt::executor::Executor;
use isolde_model::case::Case;
use isolde_model::expectations;
use isolde_model::expectations::Mismatch;
use isolde_model::history::{ErrorClass, EventKind};
use isolde_model::{History, Level};
use isolde_sql::{Kind, kind};
use std::path::{Path, PathBuf};

/// Cases that run one after the other on one target: either findings, which
/// are checked as their hunt did, or other cases.
struct Job<'a> {
    target: Target,
    cases: Vec<&'a LoadedCase>,
    /// What else findings must have in common to share a target: seed and fault.
    key: String,
    /// Whether the target is the case's own, not one of the command line.
    is_own_target: bool,
}

/// A target that has been opened.
enum OpenTarget {
    /// To run cases.
    Running(Runner),
    /// To check findings; with the fault of their hunt on their own target.
    Checking { executor: Box<Executor>, with_fault: bool },
}

/// The runs of one case on one target, one per level.
pub struct CaseReplay {
    pub case: Case,
    pub target: String,
    pub runs: Vec<LevelRun>,
}

/// The run of a case at one level.
pub struct LevelRun {
    pub history: History,
    pub unmet: Vec<Mismatch>,
    /// For a finding: whether it still happens.
    pub recheck: Option<Recheck>,
}

impl LevelRun {
    fn code(&self) -> ExitCode {
        let code = self.recheck.as_ref().map_or(ExitCode::Success, |recheck| recheck.code);
        if self.history.was_cancelled() {
            return code.worse(ExitCode::Undecided);
        }
        match self.unmet.is_empty() && !self.history.lost_server() {
            true => code,
            false => code.worse(ExitCode::Violation),
        }
    }
}

pub fn run(context: &Context<'_>, args: &ReplayArgs) -> Outcome {
    if !args.oracle.is_empty() {
        return oracle::run(context, args);
    }
    let levels = LevelChoice::parse(&args.level)?;
    let targets = context.parse_targets(&args.on)?;
    replay(context, &args.files, &targets, levels.as_ref(), args.out.as_deref())
}

/// Replays case files on the targets, or each on its own target if there are
/// none.
pub fn replay(
    context: &Context<'_>,
    files: &[PathBuf],
    targets: &[Target],
    levels: Option<&LevelChoice>,
    out: Option<&Path>,
) -> Outcome {
    let (cases, mut worst) = read_cases(context, files);
    let mut all = Vec::new();
    for job in jobs(context, &cases, targets)? {
        let mut opened = match open(context, &job) {
            Ok(opened) => opened,
            Err(failure) => {
                context.console.error(&format!("{}: {}", job.target, failure.message));
                worst = worst.worse(failure.code);
                continue;
            }
        };
        for loaded in &job.cases {
            let mut own = match open_own_server(context, &job.target, &loaded.case) {
                Ok(own) => own.map(OpenTarget::Running),
                Err(failure) => {
                    context.console.error(&format!("{}: {}", loaded.case.id, failure.message));
                    worst = worst.worse(failure.code);
                    continue;
                }
            };
            let opened = own.as_mut().unwrap_or(&mut opened);
            let (replay, code) = replay_case(context, opened, &job.target, loaded, levels);
            worst = worst.worse(code);
            if replay.runs.is_empty() {
                continue;
            }
            if !context.json {
                show::show(context.console, &replay);
            }
            all.push(replay);
            if code == ExitCode::Interrupted {
                break;
            }
        }
    }
    if context.json {
        context.console.print(&show::as_json(&all).to_string());
    }
    if let Some(path) = out {
        std::fs::write(path, show::as_markdown(&all))
            .map_err(|e| Failure::cannot_write(path, &e))?;
    }
    Ok(worst)
}

/// Every target with every case; without targets each case on its own target,
/// with the cases of equal targets grouped.
fn jobs<'a>(
    context: &Context<'_>,
    cases: &'a [LoadedCase],
    targets: &[Target],
) -> Result<Vec<Job<'a>>, Failure> {
    let mut jobs: Vec<Job<'a>> = Vec::new();
    for target in targets {
        for are_findings in [false, true] {
            let cases: Vec<&LoadedCase> =
                cases.iter().filter(|c| c.finding.is_some() == are_findings).collect();
            if !cases.is_empty() {
                let target = target.clone();
                jobs.push(Job { target, cases, key: String::new(), is_own_target: false });
            }
        }
    }
    if !targets.is_empty() {
        return Ok(jobs);
    }
    for case in cases {
        let target = case.own_target(context)?;
        let finding = case.finding.as_ref();
        let key = finding.map_or(String::new(), |f| format!("{} {:?}", f.finding.seed, f.fault));
        match jobs.iter_mut().find(|job| job.target == target && job.key == key) {
            Some(job) => job.cases.push(case),
            None => jobs.push(Job { target, cases: vec![case], key, is_own_target: true }),
        }
    }
    Ok(jobs)
}

fn open(context: &Context<'_>, job: &Job<'_>) -> Result<OpenTarget, Failure> {
    let runner = context.open(&job.target)?;
    let Some(finding) = job.cases.first().and_then(|case| case.finding.as_ref()) else {
        return Ok(OpenTarget::Running(runner));
    };
    let with_fault = job.is_own_target;
    let runner = if with_fault { plant_fault_of(finding, runner)? } else { runner };
    Ok(OpenTarget::Checking { executor: Box::new(Executor::new(runner)), with_fault })
}

/// Reads all files before any of them runs, and reports every bad one.
fn read_cases(context: &Context<'_>, files: &[PathBuf]) -> (Vec<LoadedCase>, ExitCode) {
    let mut cases = Vec::new();
    let mut worst = ExitCode::Success;
    for path in files {
        match LoadedCase::read(path) {
            Ok(case) => cases.push(case),
            Err(failure) => {
                context.console.error(&failure.message);
                worst = worst.worse(failure.code);
            }
        }
    }
    (cases, worst)
}

/// Runs a case at each level.
fn replay_case(
    context: &Context<'_>,
    opened: &mut OpenTarget,
    target: &Target,
    loaded: &LoadedCase,
    levels: Option<&LevelChoice>,
) -> (CaseReplay, ExitCode) {
    let case = &loaded.case;
    let engine = match &*opened {
        OpenTarget::Running(runner) => &runner.engine,
        OpenTarget::Checking { executor, .. } => &executor.runner.engine,
    };
    let profile = engine.profile();
    let chosen: Vec<Option<Level>> = match levels {
        Some(LevelChoice::All) => profile.level_names().into_iter().map(Some).collect(),
        Some(LevelChoice::These(levels)) => levels.iter().copied().map(Some).collect(),
        None => vec![Some(case.level.unwrap_or(profile.default_level))],
    };
    let info = engine.info().clone();
    let mut replay = CaseReplay {
        case: case.clone(),
        target: format!("{} {}", info.engine, info.version),
        runs: Vec::new(),
    };
    if let Some(why) = not_meant_for(case, &info) {
        context.console.note(&why);
        // Whether a finding still happens is unknown if it was not run.
        let code = loaded.finding.as_ref().map_or(ExitCode::Success, |_| ExitCode::Undecided);
        return (replay, code);
    }
    let mut worst = ExitCode::Success;
    for level in chosen {
        context.console.progress(&format!("{} on {target}", case.id));
        match run_at(opened, loaded, level) {
            Ok(run) => {
                worst = worst.worse(run.code());
                if let Some(why) = nothing_ran(case, &run.history) {
                    context.console.note(&format!("{} on {target}: undecided: {why}", case.id));
                    worst = worst.worse(ExitCode::Undecided);
                }
                replay.runs.push(run);
            }
            Err(failure) => {
                context.console.error(&format!("{} on {target}: {}", case.id, failure.message));
                worst = worst.worse(failure.code);
                if failure.code == ExitCode::Interrupted || failure.code == ExitCode::Unreachable {
                    break;
                }
            }
        }
    }
    context.console.end_progress();
    (replay, worst)
}

/// Why a run shows nothing: the server rejected every statement that reads or
/// writes, and no expectation says that it does.
fn nothing_ran(case: &Case, history: &History) -> Option<String> {
    let on = &history.on;
    if !case.expectations_for(&on.engine, &on.version, history.level).is_empty() {
        return None;
    }
    let mut rejected = None;
    for (step, sent) in history.steps.iter().enumerate() {
        match history.outcome(step).reply {
            Some(EventKind::Error(error)) if error.class == ErrorClass::Rejected => {
                rejected.get_or_insert((sent, error));
            }
            Some(EventKind::Rows { .. } | EventKind::Affected { .. } | EventKind::Error(_)) => {
                return None;
            }
            Some(EventKind::Done) if kind(&sent.sql) == Kind::Ddl => return None,
            // BEGIN and COMMIT succeed whatever is between them.
            _ => {}
        }
    }
    let (sent, error) = rejected?;
    Some(format!("the server rejected every statement, such as {} ({})", sent.label, error.message))
}

fn run_at(
    opened: &mut OpenTarget,
    loaded: &LoadedCase,
    level: Option<Level>,
) -> Result<LevelRun, Failure> {
    let case = &loaded.case;
    let (history, recheck) = match (opened, &loaded.finding) {
        (OpenTarget::Checking { executor, with_fault }, Some(finding)) => {
            let (history, recheck) = finding::recheck(executor, case, level, finding, *with_fault)?;
            (history, Some(recheck))
        }
        (OpenTarget::Checking { executor, .. }, None) => (executor.runner.run(case, level)?, None),
        (OpenTarget::Running(runner), _) => (runner.run(case, level)?, None),
    };
    Ok(LevelRun { unmet: expectations::mismatches(case, &history), history, recheck })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_engines::fetch::install::Cache;
    use isolde_engines::target::Options;
    use isolde_model::history::{Event, EventKind};

    #[test]
    fn run_with_a_cancelled_statement_is_undecided() {
        let options = Options { cache: Cache::open(), via: None };
        let engine = Target::parse("sqlite").unwrap().open(&options).unwrap();
        let text = "case: t\ns1> select 1;\nexpect sqlite:\n  s1.1 rows (2)\n";
        let case = isolde_model::case::parse(text).unwrap();
        let mut history = Runner::new(engine).run(&case, None).unwrap();
        let sent = history.events[0].clone();
        history.events.insert(1, Event { what: EventKind::Cancelled, ..sent });
        let run =
            LevelRun { unmet: expectations::mismatches(&case, &history), history, recheck: None };
        assert_eq!(run.code(), ExitCode::Undecided);
        let replays = [CaseReplay { case, target: "sqlite".into(), runs: vec![run] }];
        let json = show::as_json(&replays).to_string();
        assert!(json.contains("\"unknown\":\"Isolde cancelled s1.1"), "{json}");
        assert!(show::as_markdown(&replays).contains("unknown: Isolde cancelled s1.1"));
    }
}

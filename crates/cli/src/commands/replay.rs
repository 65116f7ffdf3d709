//! `isolde replay`: case files on targets and levels, side by side.

use super::explain::read;
use super::replay_finding::{self, Replayed};
use super::replay_show;
use super::replay_target::own_target;
use super::{Context, Levels, Outcome, parse_levels};
use crate::exit_code::{ExitCode, Failure};
use isolde_core::case::Case;
use isolde_core::judge::{self, Mismatch};
use isolde_core::{History, Level};
use isolde_engines::runner::Runner;
use isolde_engines::target::Target;
use isolde_hunt::again::Seen;
use isolde_hunt::executor::Executor;
use std::path::{Path, PathBuf};

/// A case, with what a hunt wrote beside it if it is a finding's.
struct Given {
    case: Case,
    seen: Option<Seen>,
}

/// What runs on one engine, one after the other: findings, which are judged
/// as their hunt did, or other cases.
struct Job<'a> {
    target: Target,
    cases: Vec<&'a Given>,
    /// What else the cases must have in common.
    key: String,
    /// The target is the case's own and not the command line's.
    at_home: bool,
}

enum Ready {
    Plain(Runner),
    /// With the fault of the hunt, where the case is at home.
    Judged {
        executor: Box<Executor>,
        planted: bool,
    },
}

/// One case on one target, at each level.
pub struct Played {
    pub case: Case,
    pub target: String,
    pub runs: Vec<AtLevel>,
}

pub struct AtLevel {
    pub history: History,
    pub unmet: Vec<Mismatch>,
    /// Of a finding: whether it still happens.
    pub replayed: Option<Replayed>,
}

impl AtLevel {
    fn code(&self) -> ExitCode {
        let judged = self.replayed.as_ref().map_or(ExitCode::Fine, |v| v.code);
        if self.history.was_cancelled() {
            return judged.worse(ExitCode::Undecided);
        }
        match self.unmet.is_empty() && !self.history.lost_server() {
            true => judged,
            false => judged.worse(ExitCode::Violation),
        }
    }
}

pub fn run(
    context: &Context<'_>,
    files: &[PathBuf],
    targets: &[String],
    levels: &[String],
    out: Option<&Path>,
) -> Outcome {
    let levels = parse_levels(levels)?;
    let named: Result<Vec<Target>, _> = targets.iter().map(|t| context.parse_target(t)).collect();
    let (given, mut worst) = read_cases(context, files)?;
    let mut all = Vec::new();
    for job in jobs(context, &given, &named?)? {
        let mut ready = match open(context, &job) {
            Ok(ready) => ready,
            Err(failure) => {
                context.console.error(&format!("{}: {}", job.target, failure.message));
                worst = worst.worse(failure.code);
                continue;
            }
        };
        for given in &job.cases {
            let mut own = match own_server(context, &job.target, &given.case) {
                Ok(own) => own.map(Ready::Plain),
                Err(failure) => {
                    context.console.error(&format!("{}: {}", given.case.id, failure.message));
                    worst = worst.worse(failure.code);
                    continue;
                }
            };
            let ready = own.as_mut().unwrap_or(&mut ready);
            let (played, code) = play(context, ready, &job.target, given, levels.as_ref());
            worst = worst.worse(code);
            if played.runs.is_empty() {
                continue;
            }
            if !context.json {
                replay_show::show(context.console, &played);
            }
            all.push(played);
            if code == ExitCode::Interrupted {
                break;
            }
        }
    }
    if context.json {
        context.console.print(&replay_show::as_json(&all).to_string());
    }
    if let Some(path) = out {
        std::fs::write(path, replay_show::as_markdown(&all))
            .map_err(|e| Failure::cannot_write(path, &e))?;
    }
    Ok(worst)
}

/// Every target that was named with every case; without names each case where
/// it is at home, those of one home together.
fn jobs<'a>(
    context: &Context<'_>,
    given: &'a [Given],
    named: &[Target],
) -> Result<Vec<Job<'a>>, Failure> {
    let mut jobs: Vec<Job<'a>> = Vec::new();
    for target in named {
        for judged in [false, true] {
            let cases: Vec<&Given> = given.iter().filter(|g| g.seen.is_some() == judged).collect();
            if !cases.is_empty() {
                let target = target.clone();
                jobs.push(Job { target, cases, key: String::new(), at_home: false });
            }
        }
    }
    if !named.is_empty() {
        return Ok(jobs);
    }
    for given in given {
        let seen = given.seen.as_ref();
        let target = context.parse_target(&own_target(context, &given.case, seen))?;
        let key = seen.map_or(String::new(), |s| format!("{} {:?}", s.finding.seed, s.fault));
        match jobs.iter_mut().find(|job| job.target == target && job.key == key) {
            Some(job) => job.cases.push(given),
            None => jobs.push(Job { target, cases: vec![given], key, at_home: true }),
        }
    }
    Ok(jobs)
}

fn open(context: &Context<'_>, job: &Job<'_>) -> Result<Ready, Failure> {
    let runner = context.open(&job.target)?;
    Ok(match job.cases.first().and_then(|given| given.seen.as_ref()) {
        None => Ready::Plain(runner),
        Some(seen) if job.at_home => {
            let executor = Box::new(Executor::new(replay_finding::planted(runner, seen)?));
            Ready::Judged { executor, planted: true }
        }
        Some(_) => Ready::Judged { executor: Box::new(Executor::new(runner)), planted: false },
    })
}

/// The server of a case that needs one with options.
fn own_server(
    context: &Context<'_>,
    target: &Target,
    case: &Case,
) -> Result<Option<Runner>, Failure> {
    if case.server_options.is_empty() {
        return Ok(None);
    }
    let target = target
        .with_server_options(&case.server_options)
        .map_err(|why| Failure::new(ExitCode::Usage, why))?;
    context.open(&target).map(Some)
}

/// Every file is read before anything runs; one bad file does not hide another.
fn read_cases(context: &Context<'_>, files: &[PathBuf]) -> Result<(Vec<Given>, ExitCode), Failure> {
    let mut cases = Vec::new();
    let mut worst = ExitCode::Fine;
    for path in files {
        match read(path) {
            Ok((case, seen)) => cases.push(Given { case, seen }),
            Err(failure) => {
                context.console.error(&failure.message);
                worst = worst.worse(failure.code);
            }
        }
    }
    Ok((cases, worst))
}

fn play(
    context: &Context<'_>,
    ready: &mut Ready,
    target: &Target,
    given: &Given,
    levels: Option<&Levels>,
) -> (Played, ExitCode) {
    let case = &given.case;
    let engine = match &*ready {
        Ready::Plain(runner) => &runner.engine,
        Ready::Judged { executor, .. } => &executor.runner.engine,
    };
    let profile = engine.profile();
    let chosen: Vec<Option<Level>> = match levels {
        Some(Levels::All) => profile.level_names().into_iter().map(Some).collect(),
        Some(Levels::These(levels)) => levels.iter().copied().map(Some).collect(),
        None => vec![Some(case.level.unwrap_or(profile.default_level))],
    };
    let info = engine.info().clone();
    let mut played = Played {
        case: case.clone(),
        target: format!("{} {}", info.engine, info.version),
        runs: Vec::new(),
    };
    if !case.runs_on(&info.engine, &info.version) {
        let meant: Vec<String> = case.engines.iter().map(ToString::to_string).collect();
        context.console.note(&format!(
            "{}: skipped on {}; it is meant for {}",
            case.id,
            played.target,
            meant.join(", ")
        ));
        // Nobody knows whether a finding still happens that was not run.
        let code = given.seen.as_ref().map_or(ExitCode::Fine, |_| ExitCode::Undecided);
        return (played, code);
    }
    let mut worst = ExitCode::Fine;
    for level in chosen {
        context.console.progress(&format!("{} on {target}", case.id));
        match play_at(ready, given, level) {
            Ok(run) => {
                worst = worst.worse(run.code());
                played.runs.push(run);
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
    (played, worst)
}

fn play_at(ready: &mut Ready, given: &Given, level: Option<Level>) -> Result<AtLevel, Failure> {
    let (history, replayed) = match (ready, &given.seen) {
        (Ready::Judged { executor, planted }, Some(seen)) => {
            let (again, replayed) =
                replay_finding::run_again(executor, &given.case, level, seen, *planted)?;
            (again.checked.concurrent, Some(replayed))
        }
        (Ready::Judged { executor, .. }, None) => (executor.runner.run(&given.case, level)?, None),
        (Ready::Plain(runner), _) => (runner.run(&given.case, level)?, None),
    };
    Ok(AtLevel { unmet: judge::mismatches(&given.case, &history), history, replayed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_core::history::{Event, What};
    use isolde_engines::fetch::install::Cache;
    use isolde_engines::target::Options;

    #[test]
    fn a_run_with_a_cancelled_statement_is_undecided_and_says_so() {
        let options = Options { cache: Cache::open(), via: None };
        let engine = Target::parse("sqlite").unwrap().open(&options).unwrap();
        let text = "case: t\ns1> select 1;\nexpect sqlite:\n  s1.1 rows (2)\n";
        let case = isolde_core::case::parse(text).unwrap();
        let mut history = Runner::new(engine).run(&case, None).unwrap();
        let sent = history.events[0].clone();
        history.events.insert(1, Event { what: What::Cancelled, ..sent });
        let run = AtLevel { unmet: judge::mismatches(&case, &history), history, replayed: None };
        assert_eq!(run.code(), ExitCode::Undecided);
        let played = [Played { case, target: "sqlite".into(), runs: vec![run] }];
        let json = replay_show::as_json(&played).to_string();
        assert!(json.contains("\"unknown\":\"Isolde cancelled s1.1"), "{json}");
        assert!(replay_show::as_markdown(&played).contains("unknown: Isolde cancelled s1.1"));
    }
}

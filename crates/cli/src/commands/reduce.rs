//! `isolde reduce`: reduces a failing case to a smaller one that fails in the
//! same way.

use super::Outcome;
use super::context::{Context, LevelChoice, not_meant_for};
use super::loaded_case::{LoadedCase, failure_of_run};
use crate::args::reduce::ReduceArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::{files, interrupt};
use isolde_generator::Plan;
use isolde_generator::reduce::{Strategy, TrialCounts, UnparsedCase, bound};
use isolde_hunt::HuntError;
use isolde_hunt::cause;
use isolde_hunt::check::{CheckResult, check_any};
use isolde_hunt::confirm::{Rate, Repetition, confirm};
use isolde_hunt::executor::Executor;
use isolde_hunt::recheck::RecordedFinding;
use isolde_hunt::reduce::{Goal, ReducedCase, Runnable, reduce};
use isolde_model::case;
use isolde_model::case::Case;
use isolde_oracles as oracle;
use isolde_oracles::{DEFAULT_ORACLES, Oracle};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Number of runs after which a case counts as one that does not fail.
const FIRST_RUNS: u32 = 5;

pub fn run(context: &Context<'_>, args: &ReduceArgs) -> Outcome {
    let mut loaded = LoadedCase::read(&args.case)?;
    let level = match LevelChoice::parse(args.level.as_slice())? {
        None => loaded.case.level,
        Some(LevelChoice::These(levels)) if levels.len() == 1 => Some(levels[0]),
        Some(_) => return Err(usage("a case is reduced at one level; name one")),
    };
    loaded.case.level = level;
    let oracles = oracles(args, loaded.finding.as_ref())?;
    let target = loaded.target(context, args.on.as_deref())?;
    let out = args.out.clone().unwrap_or_else(|| default_output(&args.case));
    let mut executors = Vec::new();
    for _ in 0..args.jobs {
        executors.push(match args.on {
            None => loaded.open_as_hunted(context, &target)?,
            Some(_) => loaded.open(context, &target)?,
        });
    }
    let LoadedCase { case, finding } = &loaded;
    let info = executors[0].runner.engine.info().clone();
    if let Some(why) = not_meant_for(case, &info) {
        return Err(Failure::new(ExitCode::Undecided, why));
    }
    executors[0].runner.check_levels(case, None)?;
    let on = format!("{} {}", info.engine, info.version);
    let mut job = Job { context, args, case, finding: finding.as_ref(), oracles, out, on };
    match Plan::of_case(case, &info) {
        Ok(plan) => match job.attempt(&mut executors, &plan)? {
            Ok(code) => return Ok(code),
            Err(_) => context.console.note(
                "the case does not fail when it is rebuilt from its parsed statements; removing \
                 whole steps only",
            ),
        },
        Err(why) => {
            let text = format!("removing whole steps and setup statements only: {why}");
            context.console.note(&text);
        }
    }
    match job.attempt(&mut executors, &UnparsedCase::of(case))? {
        Ok(code) => Ok(code),
        Err(Some(why)) => {
            Err(Failure::new(ExitCode::Undecided, format!("{}: unknown: {why}", case.id)))
        }
        Err(None) => {
            let names: Vec<&str> = job.oracles.iter().map(|o| o.name()).collect();
            let text = format!(
                "{} does not fail on {} (oracles: {}); there is nothing to reduce",
                case.id,
                job.on,
                names.join(", ")
            );
            Err(Failure::new(ExitCode::Violation, text))
        }
    }
}

fn usage(text: &str) -> Failure {
    Failure::new(ExitCode::Usage, text)
}

fn oracles(args: &ReduceArgs, finding: Option<&RecordedFinding>) -> Result<Vec<Oracle>, Failure> {
    if args.oracle.is_empty() {
        return Ok(finding.map_or_else(|| DEFAULT_ORACLES.to_vec(), |f| f.oracles.clone()));
    }
    let found: Result<Vec<_>, String> = args.oracle.iter().map(|n| oracle::find(n)).collect();
    found.map_err(|e| usage(&e))
}

/// `NAME.reduced.case`, next to the case.
fn default_output(path: &Path) -> PathBuf {
    let file = if path.is_dir() { path.join("case.case") } else { path.to_path_buf() };
    let name = file.file_stem().map_or("case".into(), |name| name.to_string_lossy());
    let name = name.trim_end_matches(".reduced");
    file.with_file_name(format!("{name}.reduced.case"))
}

/// What to reduce, and how.
struct Job<'a> {
    context: &'a Context<'a>,
    args: &'a ReduceArgs,
    case: &'a Case,
    finding: Option<&'a RecordedFinding>,
    oracles: Vec<Oracle>,
    out: PathBuf,
    on: String,
}

/// A case that does not fail, with the reason if that is unknown.
type NotFailing = Option<String>;

impl Job<'_> {
    /// Reduces one form of the case, if that form fails.
    fn attempt<S: Runnable>(
        &mut self,
        executors: &mut [Executor],
        subject: &S,
    ) -> Result<Result<ExitCode, NotFailing>, Failure> {
        let console = self.context.console;
        console.progress(&format!("{} on {}: does it fail?", self.case.id, self.on));
        let first = &mut executors[0];
        let engine = &first.runner.engine;
        let (fixture, case) = subject.prepare(engine.info(), engine.profile().default_level);
        let runs = self.finding.map_or(FIRST_RUNS, |f| f.finding.rate.trials_to_be_sure());
        let mut checked =
            check_any(first, &fixture, &case, &self.oracles).map_err(failure_of_run)?;
        for _ in 1..runs {
            if checked.violated() {
                break;
            }
            checked = check_any(first, &fixture, &case, &self.oracles).map_err(failure_of_run)?;
        }
        if !checked.violated() {
            console.end_progress();
            return Ok(Err(checked.unknown.map(str::to_string)));
        }
        let about = (&fixture, &case);
        let label = cause::find(first, about, &checked).map_err(failure_of_run)?.label;
        let care = Repetition::UntilCertain;
        let (rate, _) =
            confirm(first, about, &checked, &self.oracles, care).map_err(failure_of_run)?;
        let goal = Goal {
            violations: &checked.violations,
            label,
            oracles: &self.oracles,
            rate,
            strategy: self.args.strategy.into(),
            stop: &interrupt::is_requested,
            trials: u32::MAX,
        };
        let before = case.steps.len();
        let (info, default) = {
            let engine = &executors[0].runner.engine;
            (engine.info().clone(), engine.profile().default_level)
        };
        let reduced = reduce(executors, subject, &goal, &mut |progress| {
            let case = self.with_header(progress.best.prepare(&info, default).1);
            if progress.smaller {
                self.write(&case)?;
            }
            let (steps, trials) = (case.steps.len(), progress.trials);
            console.progress(&format!("{steps} of {before} steps left, {trials} trials"));
            Ok(())
        });
        console.end_progress();
        let Some(reduced) = reduced.map_err(failure_of_run)? else {
            return match interrupt::is_requested() {
                true => Ok(Ok(ExitCode::Interrupted)),
                false => Ok(Err(None)),
            };
        };
        let small = self.with_header(reduced.of.prepare(&info, default).1);
        self.write(&small)?;
        let rate = if interrupt::is_requested() {
            rate
        } else {
            let about = reduced.of.prepare(&info, default);
            let about = (&about.0, &about.1);
            confirm(&mut executors[0], about, &reduced.checked, &self.oracles, care)
                .map_err(failure_of_run)?
                .0
        };
        self.show(&small, before, &reduced, rate);
        Ok(Ok(if interrupt::is_requested() { ExitCode::Interrupted } else { ExitCode::Success }))
    }

    /// The reduced case with the id, title, engines, link and options of the
    /// original.
    fn with_header(&self, small: Case) -> Case {
        let whole = self.case.clone();
        let (title, engines, link) = (whole.title, whole.engines, whole.link);
        let (id, server_options) = (whole.id, whole.server_options);
        Case { id, title, engines, link, server_options, ..small }
    }

    fn write(&self, case: &Case) -> Result<(), HuntError> {
        let path = &self.out;
        files::replace(path, &case::format(case))
            .map_err(|error| HuntError::Io { path: path.clone(), error })
    }

    fn show<S: Runnable>(&self, case: &Case, before: usize, reduced: &ReducedCase<S>, rate: Rate) {
        let ReducedCase { spent, checked, cause, trials, remembered, cut, .. } = reduced;
        let TrialCounts { operations, needed, strategy, proof, inside } = *spent;
        let (name, most) = (Strategy::from(self.args.strategy).name(), bound(operations, needed));
        let console = self.context.console;
        if self.context.json {
            let found = json!({
                "case": case.id, "on": self.on, "strategy": name, "oracles": oracles_of(checked),
                "cause": cause.label.name(), "steps_before": before, "steps_after": case.steps.len(),
                "operations": operations, "needed": needed, "trials": {"strategy": strategy,
                "bound": most, "proof": proof, "inside": inside, "run": trials,
                "remembered": remembered}, "rate": {"seen": rate.seen, "runs": rate.runs},
                "cut": cut, "out": self.out.display().to_string(), "text": case::format(case),
            });
            return console.print(&found.to_string());
        }
        console.print_exactly(&case::format(case));
        let after = case.steps.len();
        console.comment(&format!(
            "\nReduced from {before} to {after} steps. The violation ({}, found by {}) occurs in {} of {} runs.",
            cause.label.name(),
            oracles_of(checked).join(", "),
            rate.seen,
            rate.runs
        ));
        let ended = if *cut { " The search was stopped early." } else { "" };
        console.comment(&format!(
            "Strategy {name} kept {needed} of {operations} operations after {strategy} trials \
             (Pisco's bound: {most:.0}); {proof} trials proved that all of them are needed, and \
             {inside} simplified them.{ended}"
        ));
        console.comment(&format!("{trials} cases were run; {remembered} results were reused."));
        console.comment(&format!("Written to {}.", self.out.display()));
    }
}

fn oracles_of(checked: &CheckResult) -> Vec<&'static str> {
    checked.violations.iter().map(|v| v.oracle.name()).collect()
}

//! `isolde reduce`: a smaller case that fails in the same way.

use super::explain::{open, read};
use super::replay_finding::failure;
use super::replay_target::own_target;
use super::{Context, Levels, Outcome, parse_levels};
use crate::exit_code::{ExitCode, Failure};
use crate::reduce_args::ReduceArgs;
use crate::{interrupt, whole_file};
use isolde_core::case::{self, Case};
use isolde_core::generate::Plan;
use isolde_core::oracle::{self, Oracle, USUAL};
use isolde_core::reduce::{Rough, Spent, bound};
use isolde_hunt::HuntError;
use isolde_hunt::again::Seen;
use isolde_hunt::cause;
use isolde_hunt::check::{Checked, check_any};
use isolde_hunt::confirm::{Care, Rate, confirm};
use isolde_hunt::executor::Executor;
use isolde_hunt::reduce::{Goal, Reduced, Staged, reduce};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Runs of a case before it counts as one that does not fail.
const LOOKS: u32 = 5;

pub fn run(context: &Context<'_>, args: &ReduceArgs) -> Outcome {
    let (mut case, seen) = read(&args.case)?;
    case.level = match parse_levels(args.level.as_slice())? {
        None => case.level,
        Some(Levels::These(levels)) if levels.len() == 1 => Some(levels[0]),
        Some(_) => return Err(usage("a case is reduced at one level; name one")),
    };
    let oracles = oracles(args, seen.as_ref())?;
    let target = match &args.on {
        Some(on) => context.parse_target(on)?,
        None => context.parse_target(&own_target(context, &case, seen.as_ref()))?,
    };
    let out = args.out.clone().unwrap_or_else(|| beside(&args.case));
    let fault = seen.as_ref().filter(|_| args.on.is_none());
    let mut executors = Vec::new();
    for _ in 0..args.jobs {
        executors.push(open(context, &target, &case, fault)?);
    }
    let info = executors[0].runner.engine.info().clone();
    if !case.runs_on(&info.engine, &info.version) {
        let meant: Vec<String> = case.engines.iter().map(ToString::to_string).collect();
        let (engine, version, meant) = (&info.engine, &info.version, meant.join(", "));
        let text = format!("{}: not run on {engine} {version}; it is meant for {meant}", case.id);
        return Err(Failure::new(ExitCode::Undecided, text));
    }
    executors[0].runner.check_levels(&case, None)?;
    let on = format!("{} {}", info.engine, info.version);
    let mut job = Job { context, args, case: &case, seen: seen.as_ref(), oracles, out, on };
    match Plan::of_case(&case, &info) {
        Ok(plan) => match job.attempt(&mut executors, &plan)? {
            Ok(code) => return Ok(code),
            Err(_) => context.console.note(
                "the case does not fail once it is taken to its parts; whole steps are taken away",
            ),
        },
        Err(why) => {
            let text = format!("only whole steps and setup statements are taken away: {why}");
            context.console.note(&text);
        }
    }
    match job.attempt(&mut executors, &Rough::of(&case))? {
        Ok(code) => Ok(code),
        Err(Some(why)) => {
            Err(Failure::new(ExitCode::Undecided, format!("{}: unknown: {why}", case.id)))
        }
        Err(None) => {
            let names: Vec<&str> = job.oracles.iter().map(|o| o.name()).collect();
            let text = format!(
                "{} does not fail on {} by {}: there is nothing to reduce",
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

fn oracles(args: &ReduceArgs, seen: Option<&Seen>) -> Result<Vec<Oracle>, Failure> {
    if args.oracle.is_empty() {
        return Ok(seen.map_or_else(|| USUAL.to_vec(), |seen| seen.oracles.clone()));
    }
    let found: Result<Vec<_>, String> = args.oracle.iter().map(|n| oracle::find(n)).collect();
    found.map_err(|e| usage(&e))
}

/// `NAME.reduced.case` beside the case.
fn beside(path: &Path) -> PathBuf {
    let file = if path.is_dir() { path.join("case.case") } else { path.to_path_buf() };
    let name = file.file_stem().map_or("case".into(), |name| name.to_string_lossy());
    let name = name.trim_end_matches(".reduced");
    file.with_file_name(format!("{name}.reduced.case"))
}

struct Job<'a> {
    context: &'a Context<'a>,
    args: &'a ReduceArgs,
    case: &'a Case,
    seen: Option<&'a Seen>,
    oracles: Vec<Oracle>,
    out: PathBuf,
    on: String,
}

/// Why a case was not reduced: nothing is violated, for a reason if the runs do not tell.
type NotFailing = Option<String>;

impl Job<'_> {
    fn attempt<S: Staged>(
        &mut self,
        executors: &mut [Executor],
        subject: &S,
    ) -> Result<Result<ExitCode, NotFailing>, Failure> {
        let console = self.context.console;
        console.progress(&format!("{} on {}: does it fail?", self.case.id, self.on));
        let first = &mut executors[0];
        let engine = &first.runner.engine;
        let (fixture, case) = subject.stage(engine.info(), engine.profile().default_level);
        let looks = self.seen.map_or(LOOKS, |seen| seen.finding.rate.trials_to_be_sure());
        let mut checked = check_any(first, &fixture, &case, &self.oracles).map_err(failure)?;
        for _ in 1..looks {
            if checked.violated() {
                break;
            }
            checked = check_any(first, &fixture, &case, &self.oracles).map_err(failure)?;
        }
        if !checked.violated() {
            console.end_progress();
            return Ok(Err(checked.unknown.map(str::to_string)));
        }
        let about = (&fixture, &case);
        let label = cause::find(first, about, &checked).map_err(failure)?.label;
        let care = Care::EveryTime;
        let (rate, _) = confirm(first, about, &checked, &self.oracles, care).map_err(failure)?;
        let goal = Goal {
            violations: &checked.violations,
            label,
            oracles: &self.oracles,
            rate,
            strategy: self.args.strategy.strategy(),
            stop: &interrupt::asked,
            trials: u32::MAX,
        };
        let before = case.steps.len();
        let (info, default) = {
            let engine = &executors[0].runner.engine;
            (engine.info().clone(), engine.profile().default_level)
        };
        let reduced = reduce(executors, subject, &goal, &mut |seen| {
            let case = self.dressed(seen.best.stage(&info, default).1);
            if seen.smaller {
                self.write(&case)?;
            }
            let (steps, trials) = (case.steps.len(), seen.trials);
            console.progress(&format!("{steps} of {before} steps, {trials} trials"));
            Ok(())
        });
        console.end_progress();
        let Some(reduced) = reduced.map_err(failure)? else {
            return match interrupt::asked() {
                true => Ok(Ok(ExitCode::Interrupted)),
                false => Ok(Err(None)),
            };
        };
        let small = self.dressed(reduced.of.stage(&info, default).1);
        self.write(&small)?;
        let rate = if interrupt::asked() {
            rate
        } else {
            let about = reduced.of.stage(&info, default);
            let about = (&about.0, &about.1);
            confirm(&mut executors[0], about, &reduced.checked, &self.oracles, care)
                .map_err(failure)?
                .0
        };
        self.show(&small, before, &reduced, rate);
        Ok(Ok(if interrupt::asked() { ExitCode::Interrupted } else { ExitCode::Fine }))
    }

    /// With what the whole case says of itself.
    fn dressed(&self, small: Case) -> Case {
        let whole = self.case.clone();
        let (title, engines, link) = (whole.title, whole.engines, whole.link);
        let (id, server_options) = (whole.id, whole.server_options);
        Case { id, title, engines, link, server_options, ..small }
    }

    fn write(&self, case: &Case) -> Result<(), HuntError> {
        let path = &self.out;
        whole_file::write(path, &case::format(case))
            .map_err(|error| HuntError::Io { path: path.clone(), error })
    }

    fn show<S: Staged>(&self, case: &Case, before: usize, reduced: &Reduced<S>, rate: Rate) {
        let Reduced { spent, checked, cause, trials, remembered, cut, .. } = reduced;
        let Spent { operations, needed, strategy, proof, inside } = *spent;
        let (name, most) = (self.args.strategy.strategy().name(), bound(operations, needed));
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
        console.say(&format!(
            "\n{before} steps became {after}; {} by {}, in {} of {} runs",
            cause.label.name(),
            oracles_of(checked).join(", "),
            rate.seen,
            rate.runs
        ));
        let ended = if *cut { ", and was broken off" } else { "" };
        console.say(&format!(
            "{name} left {needed} of {operations} operations in {strategy} trials (Pisco's bound: \
             {most:.0}); the proof that none can go took {proof}, the inside {inside}{ended}"
        ));
        console.say(&format!("{trials} cases were run, {remembered} were known"));
        console.say(&format!("written to {}", self.out.display()));
    }
}

fn oracles_of(checked: &Checked) -> Vec<&'static str> {
    checked.violations.iter().map(|v| v.oracle.name()).collect()
}

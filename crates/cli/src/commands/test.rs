//! `isolde test`: the library on targets and levels, compared with what is
//! recorded, or recorded anew.

use super::{Context, Levels, Outcome, parse_levels, test_report};
use crate::exit_code::{ExitCode, Failure};
use crate::library::{self, Entry, Verdict};
use isolde_core::case::{self, Case, Claim};
use isolde_core::history::TargetInfo;
use isolde_core::recording::{self, Difference, Place};
use isolde_core::{History, Level};
use isolde_engines::install;
use isolde_engines::runner::{RunError, Runner};
use isolde_engines::target::Target;
use std::path::{Path, PathBuf};

pub struct Wish {
    pub on: Vec<String>,
    pub level: Vec<String>,
    pub record: bool,
    pub junit: Option<PathBuf>,
}

/// One case at one level of one target.
pub struct Tested {
    pub case: String,
    pub level: Level,
    pub verdict: Verdict,
    /// None where nothing is recorded.
    pub differences: Option<Vec<Difference>>,
    pub claims: Vec<Claim>,
}

pub struct TargetRun {
    pub info: TargetInfo,
    pub tested: Vec<Tested>,
    pub seconds: f64,
}

pub fn run(
    context: &Context<'_>,
    regex: Option<&str>,
    folder: Option<&Path>,
    wish: &Wish,
) -> Outcome {
    let levels = parse_levels(&wish.level)?;
    let mut entries = library::load(folder, regex)?;
    if wish.record && entries.iter().any(|e| e.file.is_none()) {
        let message = "nothing to record into: name the folder with --cases";
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let targets = match wish.on.as_slice() {
        [] => recorded_targets(context, &entries),
        named => named.iter().map(|t| context.parse_target(t)).collect::<Result<_, _>>()?,
    };
    let mut runs = Vec::new();
    let mut worst = ExitCode::Fine;
    for target in &targets {
        let started = std::time::Instant::now();
        let run = context.open(target).and_then(|runner| {
            let mut tester = Tester { context, target, runner, record: wish.record };
            tester.run(&entries, levels.as_ref(), wish.on.is_empty())
        });
        match run {
            Ok((info, tested)) => {
                let seconds = started.elapsed().as_secs_f64();
                runs.push(TargetRun { info, tested, seconds });
            }
            Err(failure) if failure.code == ExitCode::Interrupted => {
                worst = ExitCode::Interrupted;
                break;
            }
            Err(failure) => {
                context.console.error(&format!("{target}: {}", failure.message));
                worst = worst.worse(failure.code);
            }
        }
        context.console.end_progress();
    }
    if wish.record {
        write_recordings(context, &mut entries, &runs)?;
        return Ok(worst);
    }
    test_report::print(context, &runs);
    if let Some(path) = &wish.junit {
        std::fs::write(path, test_report::junit(&runs)).map_err(|e| {
            Failure::new(ExitCode::BadInput, format!("cannot write {}: {e}", path.display()))
        })?;
    }
    let differs = |t: &Tested| t.differences.as_ref().is_some_and(|d| !d.is_empty());
    if runs.iter().flat_map(|r| &r.tested).any(differs) {
        worst = worst.worse(ExitCode::Violation);
    }
    Ok(worst)
}

/// Wherever the cases were recorded, if that can be started here; for cases
/// without recordings the engines that they are meant for.
fn recorded_targets(context: &Context<'_>, entries: &[Entry]) -> Vec<Target> {
    let mut installs = install::machine_installs();
    installs.extend(install::cached_installs(&context.options.cache));
    let startable = |engine: &str, version: &str| -> Option<String> {
        if engine.split('+').next() == Some("sqlite") {
            return (version.is_empty() || version == isolde_engines::sqlite::version())
                .then(|| engine.to_string());
        }
        let plain = engine.split('+').next().unwrap_or(engine);
        // TiDB is installed as 8.5 and calls itself 8.5.0.
        let fits = |v: &str| v == version || version.starts_with(&format!("{v}."));
        if version.is_empty() {
            return installs.iter().any(|i| i.engine == plain).then(|| engine.to_string());
        }
        let found = installs.iter().find(|i| i.engine == plain && fits(&i.version))?;
        Some(format!("{engine}@{}", found.version))
    };
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        let recordings = recording::recordings(&entry.case);
        let wanted: Vec<(String, String)> = if recordings.is_empty() {
            entry.case.engines.iter().map(|s| (s.engine.clone(), String::new())).collect()
        } else {
            let version = |p: &Place| p.on.from.clone().unwrap_or_default();
            recordings.iter().map(|(p, _)| (p.on.engine.clone(), version(p))).collect()
        };
        names.extend(wanted.iter().filter_map(|(engine, version)| startable(engine, version)));
    }
    names.sort();
    names.dedup();
    names.iter().filter_map(|name| Target::parse(name).ok()).collect()
}

struct Tester<'a> {
    context: &'a Context<'a>,
    target: &'a Target,
    runner: Runner,
    record: bool,
}

/// What a run came to: a history, or the code with which the setup failed.
enum Ran {
    Through(Box<History>),
    Refused(String),
}

impl Tester<'_> {
    fn run(
        &mut self,
        entries: &[Entry],
        levels: Option<&Levels>,
        only_recorded: bool,
    ) -> Result<(TargetInfo, Vec<Tested>), Failure> {
        let info = self.runner.engine.info().clone();
        let known = self.runner.engine.profile().level_names();
        let chosen: Vec<Level> = match levels {
            Some(Levels::These(wanted)) => {
                known.into_iter().filter(|l| wanted.contains(l)).collect()
            }
            _ => known,
        };
        let mut tested = Vec::new();
        for entry in entries.iter().filter(|e| e.case.runs_on(&info.engine, &info.version)) {
            let recordings = recording::recordings(&entry.case);
            let here = recordings.iter().any(|(p, _)| p.on.expects(&info.engine, &info.version));
            if only_recorded && !here && !recordings.is_empty() {
                continue;
            }
            for level in &chosen {
                self.context.console.progress(&format!(
                    "{} at {} on {}",
                    entry.case.id,
                    level.short(),
                    self.target
                ));
                tested.extend(self.one(&entry.case, *level, &info)?);
            }
        }
        Ok((info, tested))
    }

    fn one(
        &mut self,
        case: &Case,
        level: Level,
        info: &TargetInfo,
    ) -> Result<Option<Tested>, Failure> {
        let Some(ran) = self.play(case, level)? else { return Ok(None) };
        let recorded = recording::recorded_at(case, &info.engine, &info.version, level);
        let differences = recorded.as_ref().map(|r| compare(case, r, &ran));
        let mut claims = claims_of(case, &ran);
        if self.record {
            claims = match (recorded, &differences) {
                // Nothing new: the file stays as it is.
                (Some(recorded), Some(found)) if found.is_empty() => recorded,
                _ => match self.play(case, level)? {
                    Some(again) => recording::agreed(claims, &claims_of(case, &again)),
                    None => claims,
                },
            };
        }
        let verdict = library::verdict(case, &claims, level);
        Ok(Some(Tested { case: case.id.clone(), level, verdict, differences, claims }))
    }

    /// Nothing when the target does not have a level that the case names. A
    /// target that is gone is started once more: it may have died of the case
    /// before, in a statement that had nothing to lose.
    fn play(&mut self, case: &Case, level: Level) -> Result<Option<Ran>, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            return match self.runner.run(case, Some(level)) {
                Ok(history) => Ok(Some(Ran::Through(Box::new(history)))),
                Err(RunError::Setup { error, .. }) => Ok(Some(Ran::Refused(error.code))),
                Err(RunError::NoSuchLevel { .. } | RunError::Level { .. }) => Ok(None),
                Err(RunError::Engine(error)) if tries < 2 => {
                    self.context.console.note(&format!(
                        "{} on {}: {error}; starting the target anew",
                        case.id, self.target
                    ));
                    self.runner = self.context.open(self.target)?;
                    continue;
                }
                Err(error) => Err(error.into()),
            };
        }
    }
}

fn claims_of(case: &Case, ran: &Ran) -> Vec<Claim> {
    match ran {
        Ran::Through(history) => recording::claims_of(case, history),
        Ran::Refused(code) => recording::refused_setup(code),
    }
}

fn compare(case: &Case, recorded: &[Claim], ran: &Ran) -> Vec<Difference> {
    match ran {
        Ran::Through(history) => recording::differences(case, recorded, history),
        Ran::Refused(code) if recorded == recording::refused_setup(code) => Vec::new(),
        Ran::Refused(code) => vec![Difference {
            expected: recorded.first().map_or_else(String::new, ToString::to_string),
            observed: format!("setup error {code}"),
        }],
    }
}

fn write_recordings(
    context: &Context<'_>,
    entries: &mut [Entry],
    runs: &[TargetRun],
) -> Result<(), Failure> {
    let mut changed = 0;
    for entry in entries.iter_mut() {
        let new: Vec<(Place, Vec<Claim>)> = runs
            .iter()
            .flat_map(|run| run.tested.iter().map(move |t| (&run.info, t)))
            .filter(|(_, t)| t.case == entry.case.id)
            .map(|(on, t)| (Place::new(&on.engine, &on.version, t.level), t.claims.clone()))
            .collect();
        let before = case::format(&entry.case);
        recording::record(&mut entry.case, new);
        let after = case::format(&entry.case);
        let Some(file) = entry.file.as_ref().filter(|_| after != before) else { continue };
        std::fs::write(file, after).map_err(|e| {
            Failure::new(ExitCode::BadInput, format!("cannot write {}: {e}", file.display()))
        })?;
        changed += 1;
        context.console.say(&format!("recorded {}", file.display()));
    }
    let runs: usize = runs.iter().map(|r| r.tested.len()).sum();
    context.console.say(&format!("{runs} runs, {changed} files changed"));
    Ok(())
}

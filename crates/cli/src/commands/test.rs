//! `isolde test`: the library on targets and levels, compared with what is
//! recorded, or recorded anew.

use super::test_record::Recorder;
use super::test_run::Tester;
use super::{Context, Outcome, parse_levels, test_report};
use crate::exit_code::{ExitCode, Failure};
use crate::junit::JunitFile;
use crate::library::{self, Entry, Showing};
use isolde_core::Level;
use isolde_core::history::TargetInfo;
use isolde_core::recording::{self, Departure, Place};
use isolde_engines::fetch::install;
use isolde_engines::target::Target;
use std::path::{Path, PathBuf};

pub struct Wish {
    pub on: Vec<String>,
    pub level: Vec<String>,
    pub record: bool,
    pub repeat: Option<u32>,
    pub junit: Option<PathBuf>,
}

/// One case at one level of one target.
pub struct Tested {
    pub case: String,
    pub level: Level,
    pub showing: Showing,
    /// None where nothing is recorded.
    pub departures: Option<Vec<Departure>>,
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
    let junit = match &wish.junit {
        Some(path) => Some(JunitFile::begin(path, "isolde test")?),
        None => None,
    };
    let mut recorder = wish.record.then(|| Recorder::new(wish.repeat));
    let mut runs = Vec::new();
    let mut worst = ExitCode::Fine;
    for target in &targets {
        let started = std::time::Instant::now();
        let run = context.open(target).and_then(|runner| {
            let mut tester = Tester::new(context, target, runner, recorder.as_mut());
            tester.run(&mut entries, levels.as_ref(), wish.on.is_empty())
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
    if let Some(recorder) = &recorder {
        context.console.say(&recorder.summary());
        return Ok(worst);
    }
    test_report::print(context, &runs);
    if let Some(failure) = junit.and_then(|file| file.write(&test_report::junit(&runs)).err()) {
        context.console.error(&failure.message);
        worst = worst.worse(failure.code);
    }
    let differs = |t: &Tested| t.departures.as_ref().is_some_and(|d| !d.is_empty());
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

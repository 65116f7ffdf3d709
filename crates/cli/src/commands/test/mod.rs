//! `isolde test`: runs the library on targets and levels, and compares the
//! results with the recordings, or records them.

mod record;
mod report;
mod run;

use super::Outcome;
use super::context::{Context, LevelChoice};
use crate::args::test::TestArgs;
use crate::exit_code::{ExitCode, Failure};
use crate::junit::JunitFile;
use crate::library::{self, BugStatus, Entry};
use isolde_engines::built_in;
use isolde_engines::fetch::install;
use isolde_engines::target::Target;
use isolde_model::Level;
use isolde_model::history::TargetInfo;
use isolde_model::recording;
use isolde_model::recording::{RecordingMismatch, RecordingTarget};
use record::Recorder;
use run::Tester;

/// The result of one case at one level of one target.
pub struct CaseResult {
    pub case: String,
    pub level: Level,
    pub status: BugStatus,
    /// The differences from the recording; none if there is no recording.
    pub recording_mismatches: Option<Vec<RecordingMismatch>>,
}

/// The results of all cases on one target.
pub struct TargetRun {
    pub info: TargetInfo,
    pub results: Vec<CaseResult>,
    pub seconds: f64,
}

pub fn run(context: &Context<'_>, args: &TestArgs) -> Outcome {
    let levels = LevelChoice::parse(&args.level)?;
    let mut entries = library::load(args.cases.as_deref(), args.regex.as_deref())?;
    if args.record && entries.iter().any(|e| e.file.is_none()) {
        let message = "the built-in library cannot be recorded into; name a folder with --cases";
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let targets = match args.on.as_slice() {
        [] => recorded_targets(context, &entries),
        named => context.parse_targets(named)?,
    };
    let junit = match &args.junit {
        Some(path) => Some(JunitFile::begin(path, "isolde test")?),
        None => None,
    };
    let mut recorder = args.record.then(|| Recorder::new(args.repeat));
    let mut runs = Vec::new();
    let mut worst = ExitCode::Success;
    for target in &targets {
        let started = std::time::Instant::now();
        let run = context.open(target).and_then(|runner| {
            let mut tester = Tester::new(context, target, runner, recorder.as_mut());
            tester.run(&mut entries, levels.as_ref(), args.on.is_empty())
        });
        match run {
            Ok((info, results)) => {
                let seconds = started.elapsed().as_secs_f64();
                runs.push(TargetRun { info, results, seconds });
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
        context.console.comment(&recorder.summary());
        return Ok(worst);
    }
    report::print(context, &runs);
    if let Some(failure) = junit.and_then(|file| file.write(&report::junit(&runs)).err()) {
        context.console.error(&failure.message);
        worst = worst.worse(failure.code);
    }
    let differs = |t: &CaseResult| t.recording_mismatches.as_ref().is_some_and(|d| !d.is_empty());
    if runs.iter().flat_map(|r| &r.results).any(differs) {
        worst = worst.worse(ExitCode::Violation);
    }
    Ok(worst)
}

/// The targets where the cases were recorded and that can be started here; for
/// cases without recordings the engines that they are for.
fn recorded_targets(context: &Context<'_>, entries: &[Entry]) -> Vec<Target> {
    let mut installs = install::machine_installs();
    installs.extend(install::cached_installs(&context.options.cache));
    let startable = |engine: &str, version: &str| -> Option<String> {
        if let Some(built_in) = built_in::version_of(engine) {
            return (version.is_empty() || version == built_in).then(|| engine.to_string());
        }
        let plain = engine.split('+').next().unwrap_or(engine);
        // An engine may be installed as 8.5 and report its version as 8.5.0.
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
            let version = |p: &RecordingTarget| p.on.from.clone().unwrap_or_default();
            recordings.iter().map(|(p, _)| (p.on.engine.clone(), version(p))).collect()
        };
        names.extend(wanted.iter().filter_map(|(engine, version)| startable(engine, version)));
    }
    names.sort();
    names.dedup();
    names.iter().filter_map(|name| Target::parse(name).ok()).collect()
}

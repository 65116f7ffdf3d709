//! `isolde run-history`: runs a workload at full speed and records its history.

use super::Outcome;
use super::context::Context;
use super::seed::new_seed;
use crate::args::run_history::{HistoryFormat, RunHistoryArgs};
use crate::exit_code::{ExitCode, Failure};
use isolde_checker::{History, Status};
use isolde_engines::free_run::{FreeRun, OnAbort, Stop};
use isolde_engines::runner::Runner;
use isolde_generator::{Generator, Options};
use isolde_histories::{write_elle_edn, write_elle_json, write_own_about};
use isolde_hunt::isolation;
use isolde_hunt::workload::{Shape, WorkloadRecorder, WorkloadRecording};
use isolde_model::Level;
use isolde_model::history::TargetInfo;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

pub fn run(context: &Context<'_>, args: &RunHistoryArgs) -> Outcome {
    let usage = |why: String| Failure::new(ExitCode::Usage, why);
    let target = context.parse_target(&args.target)?;
    let level: Option<Level> = match &args.level {
        Some(name) => Some(name.parse().map_err(|e| usage(format!("{e}")))?),
        None => None,
    };
    // Opened first, so that a path that cannot be written fails before the run.
    let out = open(&args.out)?;
    let trace_file = args.trace.as_deref().map(open).transpose()?;
    let mut runner = context.open(&target)?;
    let profile = runner.engine.profile();
    if let Some(level) = level
        && !profile.level_names().contains(&level)
    {
        let names: Vec<String> = profile.level_names().iter().map(ToString::to_string).collect();
        return Err(usage(format!("{target} has no {level}; it has {}", names.join(", "))));
    }
    let level = level.unwrap_or(profile.default_level);
    let seed = args.seed.unwrap_or_else(new_seed);
    let default = args.time.is_none().then_some(5000);
    let stop = Stop { transactions: args.transactions.or(default), time: args.time };
    context.console.progress(&format!("{} on {target} at {level}", args.workload.name()));
    let began = Instant::now();
    let WorkloadRecording { history, trace, .. } = match args.workload.workload() {
        Some(workload) => {
            let shape = Shape {
                workload,
                keys: args.keys as usize,
                writes_per_key: args.writes_per_key as usize,
                operations: args.operations as usize,
                ..Shape::default()
            };
            let sessions = usize::from(args.sessions);
            let free = FreeRun { sessions, level: Some(level), on_abort: OnAbort::GiveUp, stop };
            WorkloadRecorder { shape, free, seed }.run(&mut runner)?
        }
        None => relational(&mut runner, level, seed, stop, args)?,
    };
    let took = began.elapsed();
    context.console.end_progress();
    let about = about(&trace.on, level, seed, args);
    let format = args.format.unwrap_or_else(|| format_of(&args.out));
    write(&history, format, &about, out)
        .map_err(|e| Failure::new(ExitCode::Output, format!("{}: {e}", args.out.display())))?;
    if let Some((mut file, path)) = trace_file.zip(args.trace.as_deref()) {
        let mut lines = trace.lines();
        let written = lines.try_for_each(|line| writeln!(file, "{line}"));
        written
            .and_then(|()| file.flush())
            .map_err(|e| Failure::new(ExitCode::Output, format!("{}: {e}", path.display())))?;
    }
    let count = |status| history.transactions().filter(|t| history.status(*t) == status).count();
    let (committed, aborted) = (count(Status::Committed), count(Status::Aborted));
    let unknown = count(Status::Unknown);
    if context.json {
        let summary = json!({"about": about, "transactions": history.len(), "committed": committed,
            "aborted": aborted, "unknown": unknown, "seconds": took.as_secs_f64()});
        context.console.note(&summary.to_string());
    } else {
        let (engine, version) = (&trace.on.engine, &trace.on.version);
        let lost =
            if unknown > 0 { format!(", {unknown} with unknown outcome") } else { String::new() };
        context.console.note(&format!(
            "{engine} {version} at {level}, seed {seed}: {} transactions in {:.1} s, \
             {committed} committed, {aborted} aborted{lost}; written to {}",
            history.len(),
            took.as_secs_f64(),
            args.out.display()
        ));
    }
    match trace.death {
        Some(death) => {
            Err(Failure::new(ExitCode::Unreachable, format!("the server failed: {}", death.why)))
        }
        None => Ok(ExitCode::Success),
    }
}

/// Runs one round of generated SQL.
fn relational(
    runner: &mut Runner,
    level: Level,
    seed: u64,
    stop: Stop,
    args: &RunHistoryArgs,
) -> Result<WorkloadRecording, Failure> {
    let generator =
        Generator::new(runner.engine.info().dialect(), seed, Options::new(vec![level], level));
    let shape = isolation::Shape {
        sessions: usize::from(args.sessions),
        keys: args.keys as usize,
        transactions: stop.transactions.unwrap_or(u64::MAX),
        time: stop.time.unwrap_or(Duration::MAX),
        all_predicates: true,
    };
    match isolation::run_round(runner, &generator, 0, &shape)? {
        Ok(played) => Ok(WorkloadRecording {
            history: played.account.history,
            trace: played.trace,
            last: Vec::new(),
        }),
        Err(death) => {
            let why = format!("the server failed: {}", death.why);
            Err(Failure::new(ExitCode::Unreachable, why))
        }
    }
}

fn open(path: &Path) -> Result<Box<dyn Write>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdout().lock()));
    }
    let file = File::create(path)
        .map_err(|e| Failure::new(ExitCode::Output, format!("{}: {e}", path.display())))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// The format that the name of a file implies.
fn format_of(path: &Path) -> HistoryFormat {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("edn") => HistoryFormat::ElleEdn,
        Some("json") => HistoryFormat::ElleJson,
        _ => HistoryFormat::Isolde,
    }
}

/// The origin of the history, enough to record it again.
fn about(on: &TargetInfo, level: Level, seed: u64, args: &RunHistoryArgs) -> Value {
    json!({
        "isolde": env!("CARGO_PKG_VERSION"),
        "target": on,
        "level": level,
        "workload": args.workload.name(),
        "seed": seed,
        "sessions": args.sessions,
        "keys": args.keys,
        "writes_per_key": args.writes_per_key,
        "operations": args.operations,
    })
}

fn write(
    history: &History,
    format: HistoryFormat,
    about: &Value,
    mut out: Box<dyn Write>,
) -> std::io::Result<()> {
    match format {
        HistoryFormat::Isolde => write_own_about(history, about, &mut out)?,
        HistoryFormat::ElleEdn => write_elle_edn(history, &mut out)?,
        HistoryFormat::ElleJson => write_elle_json(history, &mut out)?,
    }
    out.flush()
}

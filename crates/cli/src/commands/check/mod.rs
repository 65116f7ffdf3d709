//! `isolde check FILE…`: which isolation levels a history satisfies, and which
//! dependency cycles violate the others.

mod show;

use super::Outcome;
use super::context::Context;
use crate::args::check::CheckArgs;
use crate::exit_code::{ExitCode, Failure};
use isolde_checker::{History, Level, Options, Report, Verdict, check_with};
use isolde_histories::{FORMATS, Format, Progress, Read, ReadError, dot, picture};
use show::{earlier_with_same_witness, json_of, text_of};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the progress line is updated.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// A history and the report on it.
pub struct CheckedHistory {
    pub file: String,
    pub format: &'static str,
    pub history: History,
    pub report: Report,
    pub reading: Duration,
    pub checking: Duration,
}

pub fn run(context: &Context<'_>, args: &CheckArgs) -> Outcome {
    let format = match &args.format[..] {
        "auto" => None,
        name => Some(Format::named(name).ok_or_else(|| no_such_format(name))?),
    };
    let mut options = Options::default();
    if args.only {
        options.levels = vec![args.level];
    }
    let mut worst = ExitCode::Success;
    let mut pictures = Vec::new();
    for file in &args.files {
        // A bad file does not hide the results of the others.
        let checked = match check_file(context, file, format, &options) {
            Ok(checked) => checked,
            Err(failure) => {
                context.console.error(&failure.message);
                worst = worst.worse(failure.code);
                continue;
            }
        };
        if args.verbose {
            context.console.note(&details_of(&checked));
        }
        match context.json {
            true => context.console.print(&json_of(&checked, args.level).to_string()),
            false => context.console.print(&text_of(&checked, args.level, context.console)),
        }
        let code = code_of(checked.report.verdict(args.level));
        if code == ExitCode::Success && !checked.history.has_writes() {
            context.console.note(&nothing_checked(&checked));
            worst = worst.worse(ExitCode::Undecided);
        }
        worst = worst.worse(code);
        if args.dot.is_some() || args.svg.is_some() {
            pictures.push(checked);
        }
    }
    let drawn: Vec<picture::Group<'_>> = pictures.iter().flat_map(groups).collect();
    if let Some(path) = &args.dot {
        write(path, &dot::draw(&drawn))?;
    }
    if let Some(path) = &args.svg {
        write(path, &picture::draw(&drawn))?;
    }
    Ok(worst)
}

/// Why a history in which every level holds shows nothing.
fn nothing_checked(checked: &CheckedHistory) -> String {
    let CheckedHistory { file, history, .. } = checked;
    match history.len() {
        0 => format!("{file}: undecided: the history has no transaction"),
        n => format!(
            "{file}: undecided: none of the {n} transactions writes, and every level allows reads \
             of the initial values"
        ),
    }
}

fn no_such_format(name: &str) -> Failure {
    let lines: Vec<String> =
        FORMATS.iter().map(|format| format!("  {:14}{}", format.name, format.about)).collect();
    let message = format!("`{name}` is not a format; the formats are\n{}", lines.join("\n"));
    Failure::new(ExitCode::Usage, message)
}

fn check_file(
    context: &Context<'_>,
    file: &Path,
    format: Option<&'static Format>,
    options: &Options,
) -> Result<CheckedHistory, Failure> {
    let name = file.display().to_string();
    let begin = Instant::now();
    let read = read_with_progress(context, file, format);
    let read = read.map_err(|error| Failure::new(ExitCode::BadInput, error.to_string()))?;
    let reading = begin.elapsed();
    let count = read.history.len();
    context.console.progress(&format!("checking {count} transactions of {name}"));
    let begin = Instant::now();
    let report = check_with(&read.history, options);
    let checking = begin.elapsed();
    context.console.end_progress();
    let (history, format) = (read.history, read.format.name);
    Ok(CheckedHistory { file: name, format, history, report, reading, checking })
}

/// Reads a file while a progress line shows how much of it has been read.
fn read_with_progress(
    context: &Context<'_>,
    file: &Path,
    format: Option<&'static Format>,
) -> Result<Read, ReadError> {
    if !context.console.shows_progress() {
        return isolde_histories::read(file, format);
    }
    let name = file.display();
    let progress = Progress::default();
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let _done = done;
            isolde_histories::read_with_progress(file, format, &progress)
        });
        loop {
            let percent = progress.percent().map_or_else(String::new, |p| format!(", {p}%"));
            context.console.progress(&format!("reading {name}{percent}"));
            // Nothing is ever sent: the channel closes when the reader ends.
            if waiting.recv_timeout(PROGRESS_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                return reading.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        }
    })
}

/// The line of `--verbose`.
fn details_of(checked: &CheckedHistory) -> String {
    let CheckedHistory { file, format, history, report, reading, checking } = checked;
    format!(
        "{file}: read as {format} in {:.2} s, checked in {:.2} s; {} sessions, {} items, {} of {} \
         transactions committed",
        reading.as_secs_f64(),
        checking.as_secs_f64(),
        history.session_count(),
        history.item_count(),
        report.committed,
        report.transactions,
    )
}

pub fn code_of(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::Holds => ExitCode::Success,
        Verdict::Violated => ExitCode::Violation,
        Verdict::Unknown | Verdict::NotApplicable | Verdict::NotAsked => ExitCode::Undecided,
    }
}

/// The anomalies as groups of a picture, each witness once.
fn groups(checked: &CheckedHistory) -> impl Iterator<Item = picture::Group<'_>> {
    let (history, anomalies) = (&checked.history, &checked.report.anomalies);
    let is_new = |n: &usize| earlier_with_same_witness(anomalies, *n).is_none();
    let distinct: Vec<usize> = (0..anomalies.len()).filter(is_new).collect();
    distinct.into_iter().map(move |n| picture::Group { history, anomaly: &anomalies[n] })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::cannot_write(path, &error))
}

/// A note on the names that other checkers use for levels, where the verdict
/// would differ.
pub fn note_on_names(report: &Report) -> Option<String> {
    let holds = report.verdict(Level::ReadCommitted) == Verdict::Holds;
    let others = report.verdict(Level::StrongSessionMonotonicAtomicView);
    (holds && others == Verdict::Violated).then(|| {
        "\"read committed\" of AWDIT, Plume and dbcop is strong-session-monotonic-atomic-view \
         here, which is violated; their \"read atomic\" is strong-session-read-atomic"
            .into()
    })
}

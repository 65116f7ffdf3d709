//! How fast `isolde check` is, compared with `adya check` on the same files in the same run:
//! valid serializable histories of 50 sessions, 8 operations per transaction, 10,000
//! items, in Elle's formats. Then how long each level takes alone, for these and for histories
//! with anomalies. Time and peak memory are those of the whole process.

use isolde_bench::simulate::{Isolation, Plan, Planted, simulate};
use isolde_histories::{write_elle_edn, write_elle_json};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

const LEVELS: [&str; 5] =
    ["serializable", "snapshot-isolation", "causal", "read-atomic", "read-committed"];

/// What a process took.
struct Ran {
    seconds: f64,
    megabytes: f64,
    code: Option<i32>,
    stderr: String,
}

fn main() -> io::Result<()> {
    let arguments = std::env::args().skip(1);
    let mut sizes: Vec<usize> = arguments.filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    let isolde = std::env::var_os("ISOLDE").map_or_else(default_executable, PathBuf::from);
    let adya = std::env::var_os("ADYA").map(PathBuf::from);
    let folder = tempfile::tempdir()?;
    println!(
        "valid serializable histories, 50 sessions, 8 operations per transaction, 10,000 items"
    );
    println!(
        "{:22} {:>6} {:>9} {:>9} {:>8} {:>9} {:>8} {:>8} {:>8} {:>7} {:>7}",
        "",
        "MB",
        "isolde s",
        "reading",
        "MB/s",
        "peak MB",
        "growth",
        "adya s",
        "peak MB",
        "time",
        "memory"
    );
    for (lists, edn) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut before: Option<(usize, f64)> = None;
        for size in &sizes {
            let plan = Plan { transactions: *size, lists, ..Plan::default() };
            let file = write_history(folder.path(), &plan, "", edn)?;
            let seconds = measure(&isolde, adya.as_deref(), &file, *size, lists, before)?;
            before = Some((*size, seconds));
            fs::remove_file(file)?;
        }
    }
    println!();
    println!(
        "{:36} {:20} {:8} {:>8} {:>8} {:>8} {:>8}",
        "each level alone", "", "", "s", "peak MB", "growth", "of SER"
    );
    for lists in [true, false] {
        levels_alone(&isolde, folder.path(), &sizes, lists)?;
    }
    Ok(())
}

/// Valid serializable histories of all sizes; of the largest also a valid one of snapshots,
/// which is not serializable, and one in which a read saw half of a transaction.
fn levels_alone(isolde: &Path, folder: &Path, sizes: &[usize], lists: bool) -> io::Result<()> {
    let mut before = None;
    for size in sizes {
        let valid = Plan { transactions: *size, lists, ..Plan::default() };
        let times = each_level(isolde, folder, &valid, "", before)?;
        before = Some((*size, times));
    }
    let Some(largest) = sizes.iter().max() else { return Ok(()) };
    let snapshots =
        Plan { transactions: *largest, lists, isolation: Isolation::Snapshot, ..Plan::default() };
    each_level(isolde, folder, &snapshots, "-snapshots", None)?;
    let planted = Some(Planted::ReadSkew);
    let skewed = Plan { transactions: *largest, lists, planted, ..Plan::default() };
    each_level(isolde, folder, &skewed, "-read-skew", None)?;
    Ok(())
}

/// The seconds that each level takes, where it grew from those before.
fn each_level(
    isolde: &Path,
    folder: &Path,
    plan: &Plan,
    what: &str,
    before: Option<(usize, [f64; LEVELS.len()])>,
) -> io::Result<[f64; LEVELS.len()]> {
    let file = write_history(folder, plan, what, false)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut times = [0.0; LEVELS.len()];
    for (place, level) in LEVELS.iter().enumerate() {
        let ran = run(Command::new(isolde).args(["check", "--only", "--level", level]).arg(&file))?;
        times[place] = ran.seconds;
        let before = before.map(|(fewer, seconds)| (fewer, seconds[place]));
        println!(
            "{:36} {level:20} {:8} {:8.2} {:8.0} {:>8} {:8.2}",
            if place == 0 { &name } else { "" },
            match ran.code {
                Some(0) => "holds",
                Some(1) => "violated",
                _ => "unknown",
            },
            ran.seconds,
            ran.megabytes,
            growth(before, plan.transactions, ran.seconds),
            ran.seconds / times[0],
        );
    }
    fs::remove_file(file)?;
    Ok(times)
}

/// By how much the time grows where the history doubles.
fn growth(before: Option<(usize, f64)>, size: usize, seconds: f64) -> String {
    let Some((fewer, less)) = before else { return String::new() };
    let power = (seconds / less).ln() / (size as f64 / fewer as f64).ln();
    format!("x{:.2}", 2_f64.powf(power))
}

/// The binary that was built with this one.
fn default_executable() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.with_file_name("isolde")
}

fn write_history(folder: &Path, plan: &Plan, what: &str, edn: bool) -> io::Result<PathBuf> {
    let kind = if plan.lists { "lists" } else { "registers" };
    let ending = if edn { "edn" } else { "jsonl" };
    let path = folder.join(format!("{kind}-{}{what}.{ending}", plan.transactions));
    let history = simulate(plan);
    let mut out = BufWriter::new(File::create(&path)?);
    match edn {
        true => write_elle_edn(&history, &mut out)?,
        false => write_elle_json(&history, &mut out)?,
    }
    out.flush()?;
    Ok(path)
}

fn measure(
    isolde: &Path,
    adya: Option<&Path>,
    file: &Path,
    size: usize,
    lists: bool,
    before: Option<(usize, f64)>,
) -> io::Result<f64> {
    let megabytes = fs::metadata(file)?.len() as f64 / 1e6;
    let ran = run(Command::new(isolde).args(["check", "--verbose"]).arg(file))?;
    let reading = reading_time(&ran.stderr).unwrap_or(f64::NAN);
    let growth = growth(before, size, ran.seconds);
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    print!(
        "{name:22} {megabytes:6.1} {:9.2} {reading:9.2} {:8.0} {:9.0} {growth:>8}",
        ran.seconds,
        megabytes / reading,
        ran.megabytes
    );
    if let Some(adya) = adya {
        let model = if lists { "list-append" } else { "rw-register" };
        let other =
            run(Command::new(adya).args(["check", "-m", model, "-c", "serializable"]).arg(file))?;
        let (times, memory) = (other.seconds / ran.seconds, other.megabytes / ran.megabytes);
        print!(" {:8.2} {:8.0} {times:6.1}x {memory:6.1}x", other.seconds, other.megabytes);
        // 0 is "valid" for both; adya exits with 2 when it cannot decide.
        print!("{}", if other.code == Some(0) { "" } else { "  (adya: not valid or unknown)" });
    }
    println!("{}", if ran.code == Some(0) { "" } else { "  (isolde: not valid or unknown)" });
    Ok(ran.seconds)
}

/// From `… read as elle-json in 0.12 s, checked in …`.
fn reading_time(output: &str) -> Option<f64> {
    let (_, after) = output.split_once(": read as ")?;
    let (_, after) = after.split_once(" in ")?;
    after.split_once(" s,")?.0.parse().ok()
}

fn run(command: &mut Command) -> io::Result<Ran> {
    let begin = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut stderr = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        io::Read::read_to_string(&mut pipe, &mut stderr)?;
    }
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    let mut status = 0;
    // SAFETY: both places are ours and large enough, and the process is our child, which
    // no other code waits for: `child` is dropped without a wait.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        if libc::wait4(pid, &raw mut status, 0, &raw mut usage) != pid {
            return Err(io::Error::last_os_error());
        }
        usage
    };
    let seconds = begin.elapsed().as_secs_f64();
    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    Ok(Ran { seconds, megabytes: usage.ru_maxrss as f64 / 1000.0, code, stderr })
}

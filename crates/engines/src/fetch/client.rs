//! Runs a package client, reporting progress while it works.

use super::FetchError;
pub use super::install::on_path;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a long step reports progress.
pub const TICK: Duration = Duration::from_secs(3);
/// How much of a client's output an error repeats.
const TAIL_LINES: usize = 12;

/// Receives the progress of a fetch.
pub struct Reporter<'a> {
    pub progress: &'a mut dyn FnMut(&str),
}

impl Reporter<'_> {
    pub fn say(&mut self, line: impl AsRef<str>) {
        (self.progress)(line.as_ref());
    }
}

/// The client's path, or an error with instructions to install it.
pub fn require(client: &str) -> Result<PathBuf, FetchError> {
    on_path(client).ok_or_else(|| FetchError::MissingClient {
        client: client.to_string(),
        fix: how_to_install(client).to_string(),
    })
}

fn how_to_install(client: &str) -> &'static str {
    match client {
        "npm" => "install Node.js with npm",
        "mvn" => "install Apache Maven (Debian: apt install maven)",
        "go" => "install Go and put its bin directory on PATH",
        "python3" => "install Python 3 (Debian: apt install python3-venv)",
        "apt-get" | "apt-cache" | "dpkg-deb" => {
            "this recipe unpacks Debian packages and needs a Debian machine; \
             elsewhere use --via podman or --via docker"
        }
        "tar" => "install tar and xz-utils",
        _ => "install it and put it on PATH",
    }
}

/// Runs `command` to its end and returns its stdout. `label` precedes the
/// progress lines; `grows` is the folder whose size is reported as progress.
pub fn run(
    report: &mut Reporter,
    label: &str,
    command: &mut Command,
    grows: Option<&Path>,
) -> Result<String, FetchError> {
    let shown = show(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let client = command.get_program().to_string_lossy().into_owned();
            FetchError::MissingClient { fix: how_to_install(&client).to_string(), client }
        }
        _ => FetchError::ClientFailed { command: shown.clone(), tail: error.to_string() },
    })?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let begun = Instant::now();
    let mut next_tick = TICK;
    let mut pause = Duration::from_millis(5);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => {
                return Err(FetchError::ClientFailed { command: shown, tail: error.to_string() });
            }
        }
        let elapsed = begun.elapsed();
        if elapsed >= next_tick {
            next_tick += TICK;
            let size = grows.map(|dir| format!(", {}", human(size_of(dir)))).unwrap_or_default();
            report.say(format!("{label}: {} s{size}", elapsed.as_secs()));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
    };
    let out = stdout.join().unwrap_or_default();
    let err = stderr.join().unwrap_or_default();
    if status.success() {
        return Ok(out);
    }
    Err(FetchError::ClientFailed { command: shown, tail: tail(&format!("{out}\n{err}")) })
}

/// Reads output on a separate thread: a client with a full pipe would block.
fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn show(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Quotes any word for a shell.
pub fn shell_quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

pub fn tail(output: &str) -> String {
    let lines: Vec<&str> =
        output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// The number of bytes below a folder. A client may rename and delete files
/// meanwhile, so missing ones count as zero.
pub fn size_of(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => size_of(&entry.path()),
            Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |meta| meta.len()),
            _ => 0,
        })
        .sum()
}

pub fn human(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes / 1000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(test: impl FnOnce(&mut Reporter)) {
        test(&mut Reporter { progress: &mut |_| {} });
    }

    #[test]
    fn a_missing_client_is_named_with_its_fix() {
        let error = require("isolde-no-such-client").unwrap_err();
        assert!(matches!(&error, FetchError::MissingClient { client, .. }
            if client == "isolde-no-such-client"));
        assert!(error.to_string().contains("install it and put it on PATH"));
    }

    #[test]
    fn a_failed_client_shows_its_command_and_the_end_of_its_output() {
        quiet(|report| {
            let mut command = Command::new("sh");
            command.args(["-c", "seq 100; echo went wrong >&2; exit 3"]);
            let error = run(report, "sh", &mut command, None).unwrap_err();
            let FetchError::ClientFailed { command, tail } = error else { panic!("{error}") };
            assert!(command.starts_with("sh -c"));
            assert!(tail.ends_with("went wrong"));
            assert!(!tail.contains("\n5\n"));
        });
    }

    #[test]
    fn the_output_of_a_client_that_worked_is_returned() {
        quiet(|report| {
            let out = run(report, "echo", Command::new("echo").arg("hello"), None).unwrap();
            assert_eq!(out, "hello\n");
        });
    }
}

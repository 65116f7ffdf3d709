//! Describes how a driver's process ended: the exit code or the signal, and the
//! last lines that it wrote to stderr.

use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Enough for a panic's message together with the backtrace after it.
const TAIL: u64 = 16 << 10;

/// The end of a file that may still be written to; none if it is empty.
pub fn tail(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_string();
    (!text.is_empty()).then_some(text)
}

/// One sentence; no status means that the process had to be killed.
pub fn describe_exit(status: Option<ExitStatus>, killed: bool, stderr: Option<String>) -> String {
    let how = match status {
        _ if killed => "was killed by Isolde".into(),
        None => "closed its output without ending".into(),
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("ended by signal {signal} ({})", signal_name(signal)),
            (None, Some(code)) => format!("exited with code {code}"),
            (None, None) => format!("ended: {status}"),
        },
    };
    match stderr {
        Some(tail) => format!("the driver {how}; its last words: {}", last_lines(&tail)),
        None => format!("the driver {how}"),
    }
}

/// Enough of stderr for a message on one line; the log has the rest. A panic's
/// first line matters most, and a backtrace follows it.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let shown = match lines.iter().rposition(|l| l.contains("panicked at ")) {
        Some(panic) => &lines[panic..lines.len().min(panic + 2)],
        None => &lines[lines.len().saturating_sub(3)..],
    };
    shown.join(" | ")
}

fn signal_name(signal: i32) -> &'static str {
    match Signal::from_named_raw(signal) {
        Some(Signal::ABORT) => "abort",
        Some(Signal::SEGV) => "segmentation fault",
        Some(Signal::BUS) => "bus error",
        Some(Signal::ILL) => "illegal instruction",
        Some(Signal::FPE) => "arithmetic error",
        Some(Signal::KILL) => "kill",
        Some(Signal::TERM) => "terminate",
        Some(Signal::TRAP) => "trap",
        _ => "see signal(7)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_description_has_code_or_signal_and_last_lines() {
        let exit = |raw| Some(ExitStatus::from_raw(raw));
        assert_eq!(describe_exit(exit(7 << 8), false, None), "the driver exited with code 7");
        let aborted =
            describe_exit(exit(Signal::ABORT.as_raw()), false, Some("a\nb\n\nc\nd".into()));
        assert_eq!(aborted, "the driver ended by signal 6 (abort); its last words: b | c | d");
        let panic =
            "thread 'x' panicked at core/a.rs:1:2:\nno page\nstack backtrace:\n 0: f\n 1: g";
        let text = describe_exit(exit(Signal::ABORT.as_raw()), false, Some(panic.into()));
        assert!(text.ends_with("words: thread 'x' panicked at core/a.rs:1:2: | no page"), "{text}");
        assert!(describe_exit(None, false, None).contains("without ending"));
        assert!(
            describe_exit(exit(Signal::KILL.as_raw()), true, None).contains("killed by Isolde")
        );
    }

    #[test]
    fn only_the_end_of_a_long_log_is_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(tail(file.path()), None);
        std::fs::write(file.path(), format!("{}the end", "x".repeat(100_000))).unwrap();
        let text = tail(file.path()).unwrap();
        assert!(text.ends_with("xthe end") && text.len() as u64 == TAIL);
    }
}

//! How a driver's process ended, in words: the exit code or the signal, and
//! the last lines that it wrote to its stderr.

use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// Holds a panic's message together with the backtrace after it.
const TAIL: u64 = 16 << 10;

/// The end of a file that may still be written to; none if there is nothing.
pub fn tail(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_string();
    (!text.is_empty()).then_some(text)
}

/// One sentence; no status means that the process had to be ended.
pub fn tell(status: Option<ExitStatus>, killed: bool, stderr: Option<String>) -> String {
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

/// Enough of stderr for a message on one line; the log has the rest. A panic
/// says what matters first and ends in a backtrace.
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
    fn the_end_names_the_code_or_the_signal_and_the_last_words() {
        let exit = |raw| Some(ExitStatus::from_raw(raw));
        assert_eq!(tell(exit(7 << 8), false, None), "the driver exited with code 7");
        let aborted = tell(exit(Signal::ABORT.as_raw()), false, Some("a\nb\n\nc\nd".into()));
        assert_eq!(aborted, "the driver ended by signal 6 (abort); its last words: b | c | d");
        let panic =
            "thread 'x' panicked at core/a.rs:1:2:\nno page\nstack backtrace:\n 0: f\n 1: g";
        let told = tell(exit(Signal::ABORT.as_raw()), false, Some(panic.into()));
        assert!(told.ends_with("words: thread 'x' panicked at core/a.rs:1:2: | no page"), "{told}");
        assert!(tell(None, false, None).contains("without ending"));
        assert!(tell(exit(Signal::KILL.as_raw()), true, None).contains("killed by Isolde"));
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

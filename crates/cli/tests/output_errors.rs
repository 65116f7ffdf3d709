//! What cannot be written is an error with a code of its own, said as early
//! as it can be known; and a bug that was found is not hidden by it.

mod program;

use program::{hunting, isolde, stderr, stdout, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ISOLDE: &str = env!("CARGO_BIN_EXE_isolde");
const SOUND: [&str; 6] = ["hunt", "sqlite", "--seed", "3", "--cases", "30"];
const FAULTY: [&str; 4] = ["--fault", "statement-dropped", "--fault-rate", "1"];

fn hunt(out: &Path, more: &[&str]) -> Output {
    isolde(&[&SOUND[..], &["--out", text(out)], more].concat())
}

/// A hunt for which no file may grow beyond this many half kilobytes: what a
/// full disk looks like from inside.
fn cramped(out: &Path, blocks: u32, more: &[&str]) -> Output {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let args = [&SOUND[..], &["--out", text(out)], more].concat();
    let mut command = Command::new("sh");
    command.args(["-c", &limit, ISOLDE]).args(args).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_junit_file_that_cannot_be_written_is_told_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (out, nowhere) = (dir.path().join("out"), dir.path().join("none/results.xml"));
    for path in [nowhere.as_path(), dir.path(), Path::new("/proc/version")] {
        for output in
            [hunt(&out, &["--junit", text(path)]), isolde(&["test", "--junit", text(path)])]
        {
            assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
            assert!(stderr(&output).contains(text(path)), "{}", stderr(&output));
            assert_eq!(stdout(&output), "");
        }
    }
    assert!(!out.exists(), "nothing was begun");
}

#[test]
fn a_hunt_that_is_killed_leaves_a_junit_file_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (out, junit) = (dir.path().join("out"), dir.path().join("results.xml"));
    let mut child = hunting(&out, &["--junit", text(&junit)]);
    child.kill().unwrap();
    child.wait().unwrap();
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("errors=\"1\"") && xml.contains("did not come to its end"), "{xml}");
    assert_eq!(hunt(&dir.path().join("whole"), &["--junit", text(&junit)]).status.code(), Some(0));
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("errors=\"0\"") && xml.contains("30 cases"), "{xml}");
}

#[test]
fn results_that_do_not_fit_anywhere_are_an_error_and_a_bug_still_wins() {
    let dir = tempfile::tempdir().unwrap();
    let full = ["--junit", "/dev/full"];
    let output = hunt(&dir.path().join("sound"), &full);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write /dev/full"), "{}", stderr(&output));
    let output = hunt(&dir.path().join("faulty"), &[&full[..], &FAULTY].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write /dev/full"), "{}", stderr(&output));
}

#[test]
fn a_full_disk_ends_the_hunt_with_its_summary_and_a_bug_still_wins() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (name, blocks, what) in [("report", 16, "report.html"), ("early", 1, "hunt.json")] {
        let output = cramped(&at(name), blocks, &[]);
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
        assert!(stdout(&output).contains("violations:"), "{}", stdout(&output));
        assert!(!at(name).join(format!("{what}.new")).exists(), "nothing half is left");
    }
    let output = cramped(&at("faulty"), 48, &FAULTY);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    // With room again the hunt goes on from there.
    let resumed = hunt(&at("faulty"), &[&FAULTY[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(1), "{}", stderr(&resumed));
    assert!(stdout(&resumed).contains(": 30 cases"), "{}", stdout(&resumed));
}

#[test]
fn a_full_stdout_is_an_error_and_a_reader_that_went_away_is_none() {
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for args in [&["list"][..], &["matrix", "sqlite"], &["completions", "bash"]] {
        let output = Command::new(ISOLDE).args(args).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("cannot write to stdout"), "{args:?}");
    }
    let pipe = format!("{ISOLDE} list; echo $? >&2");
    let output = Command::new("sh").args(["-c", &format!("({pipe}) | true")]).output().unwrap();
    assert_eq!(stderr(&output).trim(), "0");
}

//! Output that cannot be written is an error with its own exit code, reported as
//! early as possible; it does not hide a bug that was found.

use isolde_testing::program::{self, command, hunting, isolde, stderr, stdout, text};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SOUND: [&str; 6] = ["hunt", "sqlite", "--seed", "3", "--cases", "30"];
const FAULTY: [&str; 6] = ["--fault", "statement-dropped", "--fault-rate", "1", "--depth", "0"];

fn hunt(out: &Path, more: &[&str]) -> Output {
    isolde(&[&SOUND[..], &["--out", text(out)], more].concat())
}

/// A hunt whose files may not grow beyond this many blocks of 512 bytes, which
/// fails like a full disk.
fn cramped(out: &Path, blocks: u32, more: &[&str]) -> Output {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let args = [&SOUND[..], &["--out", text(out)], more].concat();
    let mut command = Command::new("sh");
    command
        .args(["-c", &limit])
        .arg(program::path())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn an_unwritable_junit_file_is_an_error_before_the_hunt_starts() {
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
fn a_killed_hunt_leaves_a_junit_file_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (out, junit) = (dir.path().join("out"), dir.path().join("results.xml"));
    let mut child = hunting(&out, &["--junit", text(&junit)]);
    child.kill().unwrap();
    child.wait().unwrap();
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("errors=\"1\"") && xml.contains("has not finished"), "{xml}");
    assert_eq!(hunt(&dir.path().join("whole"), &["--junit", text(&junit)]).status.code(), Some(0));
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("errors=\"0\"") && xml.contains("30 cases"), "{xml}");
}

#[test]
fn an_unwritable_result_is_an_error_unless_a_bug_was_found() {
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
fn a_full_disk_ends_the_hunt_with_its_summary() {
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
    // With enough space the hunt resumes.
    let resumed = hunt(&at("faulty"), &[&FAULTY[..], &["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(1), "{}", stderr(&resumed));
    assert!(stdout(&resumed).contains(": 30 cases"), "{}", stdout(&resumed));
}

#[test]
fn a_full_stdout_is_an_error_and_a_closed_pipe_is_not() {
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for args in [&["list"][..], &["matrix", "sqlite"], &["completions", "bash"]] {
        let output = command(args).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("cannot write to stdout"), "{args:?}");
    }
    let pipe = format!("{} list; echo $? >&2", program::path().display());
    let output = Command::new("sh").args(["-c", &format!("({pipe}) | true")]).output().unwrap();
    assert_eq!(stderr(&output).trim(), "0");
}

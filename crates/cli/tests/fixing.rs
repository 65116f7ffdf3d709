//! The loop of whoever mends an engine: a hunt names the command that plays a
//! finding again, and that command says whether it still happens.

mod program;
mod terminal;

use program::{command, isolde, said, signal, text, wait_until};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The case file that the hunt says to try next.
fn case_to_try(hunt: &Output) -> PathBuf {
    let text = said(hunt);
    let line = text.lines().find(|l| l.contains("isolde replay ")).expect(&text);
    line.split_whitespace().nth(2).unwrap().into()
}

fn hunt(out: &Path, args: &[&str]) -> PathBuf {
    let all = [&["hunt"], args, &["--out", out.to_str().unwrap()]].concat();
    let output = isolde(&all);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    case_to_try(&output)
}

#[test]
fn a_planted_bug_still_happens_where_it_is_planted_and_is_gone_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let fault = ["--fault", "statement-dropped", "--fault-rate", "0.3"];
    let args = [&["sqlite+wal", "--seed", "7", "--cases", "240"], &fault[..]].concat();
    let case = hunt(&dir.path().join("out"), &args);
    let file = case.to_str().unwrap();
    let planted = isolde(&["replay", file]);
    assert_eq!(planted.status.code(), Some(1), "{}", said(&planted));
    assert!(said(&planted).contains("still happens: bug at SERIALIZABLE"), "{}", said(&planted));
    assert!(said(&planted).contains("planted fault statement-dropped"), "{}", said(&planted));
    assert!(said(&planted).contains("on sqlite+wal"), "{}", said(&planted));
    let sound = isolde(&["replay", file, "--on", "sqlite+wal", "--json"]);
    assert_eq!(sound.status.code(), Some(0), "{}", said(&sound));
    let json: serde_json::Value = serde_json::from_slice(&sound.stdout).unwrap();
    assert_eq!(json["runs"][0]["finding"]["now"], "gone");
    assert!(!json["runs"][0]["finding"]["sentence"].as_str().unwrap().contains("planted"));
    // On another engine it is not run, and so nobody knows.
    let elsewhere = isolde(&["replay", file, "--on", "sqlite"]);
    assert_eq!(elsewhere.status.code(), Some(3), "{}", said(&elsewhere));
    let script = std::fs::read_to_string(case.with_file_name("script.sql")).unwrap();
    assert!(script.contains("-- came: ") && script.contains("; expected: "), "{script}");
    // A case of somebody's own in the same folder is not the finding.
    let own = case.with_file_name("own.case");
    std::fs::write(&own, "case: own\n\ns1> select 1;\n").unwrap();
    let plain = isolde(&["replay", own.to_str().unwrap()]);
    assert_eq!(plain.status.code(), Some(0), "{}", said(&plain));
    assert!(!said(&plain).contains("gone"), "{}", said(&plain));
    std::fs::write(case.with_file_name("finding.json"), "{").unwrap();
    assert_eq!(isolde(&["replay", file]).status.code(), Some(5));
}

#[test]
fn a_bug_of_a_server_still_happens_on_that_server() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let fault = ["--fault", "row-skipped", "--fault-rate", "0.3"];
    let args = [&["postgres", "--seed", "5", "--cases", "120", "--level", "all"], &fault[..]];
    let case = hunt(&out, &args.concat());
    let replay = isolde(&["replay", case.to_str().unwrap()]);
    assert_eq!(replay.status.code(), Some(1), "{}", said(&replay));
    assert!(said(&replay).contains("still happens") && said(&replay).contains("on postgres "));
    let weaker = isolde(&["replay", case.to_str().unwrap(), "--level", "no such"]);
    assert_eq!(weaker.status.code(), Some(2), "{}", said(&weaker));
    let script = std::fs::read_to_string(case.with_file_name("script.sql")).unwrap();
    assert!(script.contains("-- came: ") && script.contains("; expected: "), "{script}");
}

#[test]
fn a_case_without_a_target_runs_where_it_is_at_home() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.case");
    let text = "case: own\nengines: mysql@4.1, sqlite+wal\n\ns1> select 1;\n";
    std::fs::write(&file, text).unwrap();
    let output = isolde(&["replay", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("on sqlite+wal "), "{}", said(&output));
    std::fs::write(&file, text.replace(", sqlite+wal", "")).unwrap();
    let missing = isolde(&["replay", file.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(4), "{}", said(&missing));
    assert!(said(&missing).contains("isolde fetch mysql@4.1"), "{}", said(&missing));
}

#[test]
fn after_ctrl_c_the_command_that_goes_on_is_named_and_works() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let arguments = ["hunt", "--cases", "1200", "--out", text(&out)];
    let child = command(&arguments).spawn().unwrap();
    let begun = out.join("current/worker-0.case");
    wait_until(|| begun.exists());
    // A terminal and `timeout` may both send theirs: that is one request.
    for each in [Signal::INT, Signal::TERM, Signal::INT] {
        signal(child.id(), each);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", said(&ended));
    let text = said(&ended);
    let line = text.lines().find(|l| l.contains("--resume")).expect(&text);
    let words: Vec<&str> = line.split("   ").next().unwrap().split_whitespace().collect();
    // Also where no `isolde` is on the PATH.
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains(": 1200 cases in"), "{}", said(&output));
}

#[test]
fn progress_fits_the_screen_and_says_how_long_it_takes() {
    for columns in [80, 40] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
        command.args(["hunt", "--time", "3s", "--out"]).arg(dir.path().join("out"));
        let mut screen = terminal::Terminal::start_with(command, columns);
        screen.expect(" left");
        screen.expect("report:");
        let drawn = screen.lines_drawn();
        let progress: Vec<&String> = drawn.iter().filter(|l| l.contains(" left")).collect();
        assert!(!progress.is_empty(), "{drawn:?}");
        for line in progress {
            assert!(line.chars().count() < usize::from(columns), "{columns}: {line}");
            assert!(line.contains(" cases, 0:0") && line.contains(" bug"), "{columns}: {line}");
        }
        assert_eq!(screen.ends().code(), Some(0));
    }
}

//! The loop of an engine developer: a hunt prints the command that replays a
//! finding, and that command reports whether the finding still happens.

use isolde_testing::processes::{signal, wait_until};
use isolde_testing::program::{all_output, command, isolde, text};
use isolde_testing::servers;
use isolde_testing::terminal::Terminal;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The case file in the command that the hunt suggests.
fn case_to_try(hunt: &Output) -> PathBuf {
    let text = all_output(hunt);
    let line = text.lines().find(|l| l.contains("isolde replay ")).expect(&text);
    line.split_whitespace().nth(2).unwrap().into()
}

fn hunt(out: &Path, args: &[&str]) -> PathBuf {
    let all = [&["hunt"], args, &["--out", out.to_str().unwrap()]].concat();
    let output = isolde(&all);
    assert_eq!(output.status.code(), Some(1), "{}", all_output(&output));
    case_to_try(&output)
}

#[test]
fn replay_in_which_every_statement_is_rejected_is_undecided() {
    let dir = tempfile::tempdir().unwrap();
    let replay = |steps: &str| {
        let file = dir.path().join("own.case");
        let setup = "case: own\nengines: sqlite\n\nsetup:\n  create table t (a int);\n\n";
        std::fs::write(&file, format!("{setup}{steps}")).unwrap();
        isolde(&["replay", text(&file)])
    };
    let rejected = "s1> begin;\ns1> insert into nowhere values (1);\ns1> commit;\n";
    let output = replay(rejected);
    assert_eq!(output.status.code(), Some(3), "{}", all_output(&output));
    let why = "undecided: the server rejected every statement, such as s1.2 (";
    assert!(all_output(&output).contains(why), "{}", all_output(&output));
    // One that ran is enough, and so is an expectation of the error.
    let one = replay(&format!("{rejected}s1> select a from t;\n"));
    assert_eq!(one.status.code(), Some(0), "{}", all_output(&one));
    let expected = replay(&format!("{rejected}\nexpect sqlite:\n  s1.2 error\n"));
    assert_eq!(expected.status.code(), Some(0), "{}", all_output(&expected));
}

#[test]
fn replay_of_a_planted_bug_still_happens_with_the_fault_only() {
    let dir = tempfile::tempdir().unwrap();
    let fault = ["--fault", "statement-dropped", "--fault-rate", "0.3"];
    let args = [&["sqlite+wal", "--seed", "7", "--cases", "240"], &fault[..]].concat();
    let case = hunt(&dir.path().join("out"), &args);
    let file = case.to_str().unwrap();
    let planted = isolde(&["replay", file]);
    assert_eq!(planted.status.code(), Some(1), "{}", all_output(&planted));
    assert!(
        all_output(&planted).contains("still happens: bug at SERIALIZABLE"),
        "{}",
        all_output(&planted)
    );
    assert!(
        all_output(&planted).contains("planted fault statement-dropped"),
        "{}",
        all_output(&planted)
    );
    assert!(all_output(&planted).contains("on sqlite+wal"), "{}", all_output(&planted));
    let sound = isolde(&["replay", file, "--on", "sqlite+wal", "--json"]);
    assert_eq!(sound.status.code(), Some(0), "{}", all_output(&sound));
    let json: serde_json::Value = serde_json::from_slice(&sound.stdout).unwrap();
    assert_eq!(json["runs"][0]["finding"]["now"], "gone");
    assert!(!json["runs"][0]["finding"]["sentence"].as_str().unwrap().contains("planted"));
    // On another engine the case is not run: unknown.
    let elsewhere = isolde(&["replay", file, "--on", "sqlite"]);
    assert_eq!(elsewhere.status.code(), Some(3), "{}", all_output(&elsewhere));
    let script = std::fs::read_to_string(case.with_file_name("script.sql")).unwrap();
    assert!(script.contains("-- observed: ") && script.contains("; expected: "), "{script}");
    // Another case in the same folder is not the finding.
    let own = case.with_file_name("own.case");
    std::fs::write(&own, "case: own\n\ns1> select 1;\n").unwrap();
    let plain = isolde(&["replay", own.to_str().unwrap()]);
    assert_eq!(plain.status.code(), Some(0), "{}", all_output(&plain));
    assert!(!all_output(&plain).contains("gone"), "{}", all_output(&plain));
    std::fs::write(case.with_file_name("finding.json"), "{").unwrap();
    assert_eq!(isolde(&["replay", file]).status.code(), Some(5));
}

#[test]
fn replay_of_a_server_bug_still_happens_on_that_server() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let fault = ["--fault", "row-skipped", "--fault-rate", "0.3"];
    let args = [
        &["postgres", "--seed", "5", "--cases", "120", "--level", "all", "--depth", "0"],
        &fault[..],
    ];
    let case = hunt(&out, &args.concat());
    let replay = isolde(&["replay", case.to_str().unwrap()]);
    assert_eq!(replay.status.code(), Some(1), "{}", all_output(&replay));
    assert!(
        all_output(&replay).contains("still happens")
            && all_output(&replay).contains("on postgres ")
    );
    let weaker = isolde(&["replay", case.to_str().unwrap(), "--level", "no such"]);
    assert_eq!(weaker.status.code(), Some(2), "{}", all_output(&weaker));
    let script = std::fs::read_to_string(case.with_file_name("script.sql")).unwrap();
    assert!(script.contains("-- observed: ") && script.contains("; expected: "), "{script}");
}

#[test]
fn replay_without_a_target_runs_on_an_engine_of_the_case() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("own.case");
    let text = "case: own\nengines: mysql@4.1, sqlite+wal\n\ns1> select 1;\n";
    std::fs::write(&file, text).unwrap();
    let output = isolde(&["replay", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    assert!(all_output(&output).contains("on sqlite+wal "), "{}", all_output(&output));
    std::fs::write(&file, text.replace(", sqlite+wal", "")).unwrap();
    let missing = isolde(&["replay", file.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(4), "{}", all_output(&missing));
    assert!(all_output(&missing).contains("isolde fetch mysql@4.1"), "{}", all_output(&missing));
}

#[test]
fn the_resume_command_printed_after_ctrl_c_works() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let arguments = ["hunt", "--cases", "1200", "--out", text(&out)];
    let child = command(&arguments).spawn().unwrap();
    let begun = out.join("current/worker-0.case");
    wait_until("the first case begins", || begun.exists());
    // A terminal and `timeout` may both send a signal: that is one request.
    for each in [Signal::INT, Signal::TERM, Signal::INT] {
        signal(child.id(), each);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", all_output(&ended));
    let text = all_output(&ended);
    let line = text.lines().find(|l| l.contains("--resume")).expect(&text);
    let words: Vec<&str> = line.split("   ").next().unwrap().split_whitespace().collect();
    // The command works without `isolde` on the PATH.
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", all_output(&output));
    assert!(all_output(&output).contains(": 1200 cases in"), "{}", all_output(&output));
}

#[test]
fn hunt_progress_fits_the_screen_and_shows_the_time_left() {
    for columns in [80, 40] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = command(&["hunt", "--time", "3s", "--out"]);
        command.arg(dir.path().join("out"));
        let mut screen = Terminal::start_with(command, columns);
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

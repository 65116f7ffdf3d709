//! `isolde hunt` on real engines: its output, findings of planted faults and none
//! on sound engines, and the same result with workers, shards, kills and
//! resumptions.

use isolde_hunt::cause::Verdict;
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::Summary;
use isolde_model::difference::Difference;
use isolde_testing::processes::{signal, wait_until};
use isolde_testing::program::{stderr, stdout};
use isolde_testing::{program, servers};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn hunt(out: &Path, args: &[&str]) -> Output {
    command(out, args).output().unwrap()
}

fn command(out: &Path, args: &[&str]) -> Command {
    let mut command = program::command(&["hunt"]);
    command.args(args).arg("--out").arg(out);
    command
}

fn started(out: &Path, args: &[&str]) -> Child {
    command(out, args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn summary(out: &Path) -> Summary {
    Folder::open(out).read_summary().unwrap()
}

fn findings(out: &Path) -> Vec<Finding> {
    let mut all = Folder::open(out).read_findings().unwrap();
    all.sort_by_key(|f| f.case_number);
    all
}

type Found = (u64, Verdict, Vec<String>, String, String);

/// The counts and findings without times and workers.
fn essence(out: &Path) -> (u64, u64, Vec<Found>) {
    let summary = summary(out);
    let found = findings(out)
        .into_iter()
        .map(|f| (f.case_number, f.cause.label, f.oracles, f.signature, f.case))
        .collect();
    (summary.cases, summary.statements, found)
}

const FAULT: [&str; 8] =
    ["sqlite", "--seed", "7", "--cases", "240", "--fault", "statement-dropped", "--fault-rate=0.3"];

#[test]
fn a_sound_engine_is_not_accused_and_the_output_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let junit = dir.path().join("junit.xml");
    let args = ["--seed", "3", "--cases", "300", "--junit", junit.to_str().unwrap()];
    let output = hunt(&out, &args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    for part in ["300 cases", "0 bug", "report.html", "Next:", "--fault", "turso"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("hunt.json")).unwrap()).unwrap();
    for key in [
        "version",
        "seed",
        "target",
        "server_version",
        "settings",
        "levels",
        "oracles",
        "cases",
        "statements",
        "valid_share",
        "seconds",
        "violations",
        "by_level",
        "by_oracle",
        "distinct",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["violations"]["bug"], 0);
    assert!(json["valid_share"].as_f64().unwrap() > 0.95);
    assert!(out.join("report.html").exists() && out.join("findings.jsonl").exists());
    assert!(std::fs::read_to_string(junit).unwrap().contains("failures=\"0\""));
}

#[test]
fn a_planted_fault_is_found_reduced_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let output = hunt(dir.path(), &FAULT);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = findings(dir.path());
    assert!(!found.is_empty() && found.iter().all(|f| f.cause.label == Verdict::Bug));
    let finding = found.iter().find(|f| f.reduced_by.is_some()).unwrap();
    let folder = dir.path().join("findings").join(&finding.id);
    for file in [
        "original.case",
        "case.case",
        "script.sql",
        "schedule.txt",
        "concurrent.json",
        "serial-tx.json",
        "serial-stmt.json",
        "diff.txt",
        "explanation.txt",
        "finding.json",
    ] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let reduction = finding.reduced_by.as_ref().unwrap();
    assert!(reduction.statements_after < reduction.statements_before);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("explanation.txt").contains("Cause: bug"));
    let case = isolde_model::case::parse(&read("case.case")).unwrap();
    // The operations of the generated case that are left.
    assert_eq!(finding.operations.len(), case.steps.len());
    let distinct: std::collections::BTreeSet<u32> = finding.operations.iter().copied().collect();
    assert_eq!(distinct.len(), case.steps.len());
    // Both sides of every table that differs, with the rows of only one side marked.
    let diff = read("diff.txt");
    let mut sides = 0;
    for difference in &finding.differences {
        let Difference::Final { query, only_concurrent, only_serial, .. } = difference else {
            continue;
        };
        let start = diff.find(query.as_str()).unwrap_or_else(|| panic!("{query} in {diff}"));
        let block = diff[start..].split("\n\n").next().unwrap();
        assert!(block.lines().nth(1).unwrap().split_whitespace().eq(["concurrent", "serial"]));
        let marked = |mark: &str| {
            let words = |l: &str| l.split_whitespace().any(|w| w == mark);
            block.lines().skip(2).filter(|l| words(l)).count()
        };
        assert_eq!(
            (marked("<"), marked(">")),
            (only_concurrent.len(), only_serial.len()),
            "{diff}"
        );
        sides += only_concurrent.len() + only_serial.len();
    }
    assert!(sides > 0, "a dropped write is seen in the final rows: {diff}");
}

#[test]
fn workers_and_shards_change_the_speed_and_not_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    hunt(&at("one"), &FAULT);
    let mut args = FAULT.to_vec();
    args.extend(["-j", "3"]);
    hunt(&at("three"), &args);
    assert_eq!(essence(&at("one")), essence(&at("three")));
    let parts: Vec<String> = (1..=4).map(|k| format!("{k}/4")).collect();
    for (i, part) in parts.iter().enumerate() {
        let mut args = FAULT.to_vec();
        args.extend(["--shard", part]);
        hunt(&at(&format!("part{i}")), &args);
    }
    let mut merge = program::command(&["merge"]);
    merge.args((0..4).map(|i| at(&format!("part{i}")))).arg("--out").arg(at("all"));
    let output = merge.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(essence(&at("one")), essence(&at("all")));
    assert!(essence(&at("one")).2.len() > 1);
}

#[test]
fn a_killed_hunt_resumes_and_finds_what_an_undisturbed_one_finds() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, killed) = (dir.path().join("whole"), dir.path().join("killed"));
    hunt(&whole, &FAULT);
    let mut child = started(&killed, &FAULT);
    wait_until("a finding is written", || {
        std::fs::read_to_string(killed.join("findings.jsonl")).is_ok_and(|t| !t.is_empty())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    for (args, printed) in [
        (["--seed", "8"], "seed differs: 7 there, 8 here"),
        (["--cases", "241"], "cases differs: 240 there, 241 here"),
        (["--shard", "1/2"], "shard differs: 1/1 there, 1/2 here"),
        (["--oracle", "crash"], "oracles differs"),
        (["--fault", "update-twice"], "fault differs: statement-dropped there"),
    ] {
        let other = hunt(&killed, &[&args[..], &["--resume"]].concat());
        assert_eq!(other.status.code(), Some(5), "{args:?}");
        assert!(stderr(&other).contains(printed), "{}", stderr(&other));
    }
    // The options come from hunt.json.
    let output = hunt(&killed, &["--resume"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(essence(&whole), essence(&killed));
}

#[test]
fn a_resumed_hunt_has_its_remaining_time_or_a_new_limit() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    assert_eq!(hunt(&out, &["--seed", "3", "--time", "1s", "-j", "2"]).status.code(), Some(0));
    let before = summary(&out);
    let over = hunt(&out, &["--resume"]);
    assert_eq!(over.status.code(), Some(2));
    assert!(stderr(&over).contains("has used up its time of 1s"), "{}", stderr(&over));
    let more = hunt(&out, &["--resume", "--time", "1s"]);
    assert_eq!(more.status.code(), Some(0), "{}", stderr(&more));
    let after = summary(&out);
    assert!(after.seconds > before.seconds && after.run_settings == before.run_settings);
    assert_eq!((after.identity, after.run_settings.jobs), (before.identity, 2));
}

#[test]
fn a_planted_fault_is_named_in_every_output() {
    let dir = tempfile::tempdir().unwrap();
    let (out, junit) = (dir.path().join("out"), dir.path().join("junit.xml"));
    let args = ["--seed", "7", "--cases", "30", "--fault", "statement-dropped", "--fault-rate=1"];
    let output = hunt(&out, &[&args[..], &["--junit", junit.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let printed = stdout(&output);
    let first = printed.lines().next().unwrap();
    assert!(first.contains("with the planted fault statement-dropped"), "{first}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let head = &page[page.find("<header>").unwrap()..page.find("</header>").unwrap()];
    assert!(head.contains("A fault was planted: <code>statement-dropped</code>"), "{head}");
    let xml = std::fs::read_to_string(junit).unwrap();
    let suite = xml.lines().find(|l| l.contains("<testsuite ")).unwrap();
    assert!(suite.contains("planted fault statement-dropped"), "{suite}");
}

#[test]
fn ctrl_c_ends_a_hunt_with_a_summary() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path(), &["--seed", "1", "--time", "5m"]);
    let current = || {
        let text = std::fs::read_to_string(dir.path().join("current/worker-0.case")).ok()?;
        isolde_model::case::parse(&text).ok()
    };
    wait_until("the first case begins", || current().is_some());
    let first = current();
    wait_until("the second case begins", || current().is_some_and(|c| Some(c) != first));
    signal(child.id(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(summary(dir.path()).cases > 0);
    assert!(dir.path().join("report.html").exists());
}

#[test]
fn servers_are_not_accused_and_their_documented_behaviour_is_named() {
    for target in servers::available(&["postgres", "mariadb"]) {
        let dir = tempfile::tempdir().unwrap();
        let sound = dir.path().join("sound");
        let shallow = ["--depth", "0", "-j", "2"];
        let args = [&[target, "--seed", "42", "--cases", "450"], &shallow[..]].concat();
        let output = hunt(&sound, &args);
        assert_eq!(output.status.code(), Some(0), "{target}: {}", stdout(&output));
        let summary = summary(&sound);
        assert_eq!(summary.violations.bug, 0, "{target}");
        assert!(summary.violations.documented > 0, "{target}");
        assert!(summary.valid_share > 0.9, "{target}");
        let documented = Folder::open(&sound).read_documented().unwrap();
        assert!(documented.iter().all(|f| {
            let behaviour = f.cause.behaviour.as_ref().unwrap();
            behaviour.link.starts_with("https://") && !f.cause.evidence.is_empty()
        }));
        // Documented behaviour does not hide bugs: the same engine with a planted
        // fault has some.
        let faulty = dir.path().join("faulty");
        let fault = ["--level", "SER", "--fault", "statement-dropped", "--fault-rate=1"];
        let args = [&[target, "--seed", "42", "--cases", "90"], &fault[..]].concat();
        let output = hunt(&faulty, &args);
        assert_eq!(output.status.code(), Some(1), "{target}: {}", stdout(&output));
        let found = self::summary(&faulty).violations;
        assert!(found.bug > 3 && found.documented < found.bug, "{target}: {found:?}");
    }
}

#[test]
fn documented_violations_are_findings_with_all() {
    if !servers::is_available("mariadb") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let args = ["mariadb", "--seed", "4", "--cases", "150", "--level", "read committed"];
    let output = hunt(&out, &[&args[..], &["--all"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let (summary, found) = (summary(&out), findings(&out));
    assert!(!found.is_empty() && found.len() as u64 == summary.violations.documented);
    let kinds: BTreeSet<&str> = found.iter().map(|f| f.defect()).collect();
    assert_eq!(summary.distinct, kinds.len() as u64);
    let printed = stdout(&output);
    assert!(printed.contains(&format!("{} distinct finding", kinds.len())), "{printed}");
    let shown = |f: &Finding| printed.contains(&format!("findings/{}", f.id));
    assert!(found.iter().any(shown), "{printed}");
    let without = dir.path().join("without");
    let output = hunt(&without, &args);
    assert!(stdout(&output).contains("; 0 distinct findings"), "{}", stdout(&output));
    assert!(findings(&without).is_empty());
}

#[test]
fn a_server_that_dies_is_a_finding_and_the_hunt_goes_on() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let args = ["postgres", "--seed", "1", "--cases", "60", "--fault", "crash", "--fault-rate=0.3"];
    let output = hunt(dir.path(), &args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found = findings(dir.path());
    let crash = found.iter().find(|f| f.oracles == ["crash"]).unwrap();
    assert!(dir.path().join("findings").join(&crash.id).join("server.log").exists());
    assert_eq!(summary(dir.path()).cases, 60);
}

#[test]
fn invalid_hunt_options_are_refused_before_the_hunt_starts() {
    let dir = tempfile::tempdir().unwrap();
    for (args, printed) in [
        (["--oracle", "delphi"], "tx-wss"),
        (["--fault", "gremlin"], "row-skipped"),
        (["--level", "RC"], "SERIALIZABLE"),
        (["--shard", "5/4"], "1/4"),
        (["--time", "soon"], "10m"),
        (["--fault-rate", "2"], "from 0 to 1"),
        (["--shard", "1/4"], "--seed"),
        (["--cases", "0"], "0 is not in 1.."),
        (["--time", "0s"], "longer than zero"),
        (["--fault", "weaker-level"], "cannot be planted in sqlite"),
        (["--fault", "stale-read"], "cannot be planted in sqlite"),
    ] {
        let output = hunt(dir.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(printed), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was begun");
    let nothing = hunt(&dir.path().join("nothing"), &["--resume"]);
    assert_eq!(nothing.status.code(), Some(5));
    assert!(stderr(&nothing).contains("no such folder"));
}

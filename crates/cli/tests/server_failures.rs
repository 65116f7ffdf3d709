//! `isolde hunt` when its server is killed, hangs or cannot be restarted: always a
//! finding, always a summary.

use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_testing::processes::{children, is_running, signal, wait_until};
use isolde_testing::program::{all_output, command};
use isolde_testing::servers;
use isolde_testing::user_server::UserServer;
use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Output};

fn started(out: &Path, args: &[&str]) -> Child {
    command(&["hunt"]).args(args).arg("--out").arg(out).spawn().unwrap()
}

/// Waits until the hunt runs its second case, and returns its server.
fn server_at_work(hunt: &Child, out: &Path) -> u32 {
    let current = || std::fs::read(out.join("current/worker-0.case")).unwrap_or_default();
    wait_until("the first case begins", || !current().is_empty());
    let first = current();
    wait_until("the second case begins", || current() != first);
    *children(hunt.id()).last().expect("a server")
}

fn ended(hunt: Child) -> (Output, String) {
    let output = hunt.wait_with_output().unwrap();
    let printed = all_output(&output);
    (output, printed)
}

fn crashes(out: &Path) -> Vec<Finding> {
    let all = Folder::open(out).read_findings().unwrap();
    all.into_iter().filter(|f| f.oracles == ["crash"]).collect()
}

fn is_whole(out: &Path, finding: &Finding) {
    let folder = out.join("findings").join(&finding.id);
    for name in ["case.case", "original.case", "server.log", "finding.json"] {
        assert!(folder.join(name).exists(), "{name}");
    }
    let text = std::fs::read_to_string(folder.join("case.case")).unwrap();
    isolde_model::case::parse(&text).unwrap();
}

#[test]
fn a_killed_server_is_a_finding_and_the_hunt_completes() {
    for target in servers::available(&["postgres", "mariadb"]) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let hunt = started(&out, &[target, "--seed", "5", "--cases", "240"]);
        signal(server_at_work(&hunt, &out), Signal::KILL);
        let (output, printed) = ended(hunt);
        assert_eq!(output.status.code(), Some(1), "{target}: {printed}");
        assert!(printed.contains("the server died"), "{target}: {printed}");
        let found = crashes(&out);
        assert_eq!(found.len(), 1, "{target}: {printed}");
        is_whole(&out, &found[0]);
        assert!(found[0].explanation.iter().any(|s| s.contains("SIGKILL")), "{:?}", found[0]);
        let summary = Folder::open(&out).read_summary().unwrap();
        assert_eq!((summary.cases, summary.violations.bug), (240, 1), "{target}: {printed}");
        assert!(out.join("report.html").exists() && !out.join("current").exists());
    }
}

#[test]
fn a_stopped_server_is_a_hang_and_is_replaced() {
    for target in servers::available(&["postgres", "mariadb"]) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let hunt = started(&out, &[target, "--seed", "5", "--cases", "120"]);
        let server = server_at_work(&hunt, &out);
        signal(server, Signal::STOP);
        let family = children(server);
        family.iter().for_each(|process| signal(*process, Signal::STOP));
        let (output, printed) = ended(hunt);
        assert_eq!(output.status.code(), Some(1), "{target}: {printed}");
        let found = crashes(&out);
        assert_eq!(found.len(), 1, "{target}: {printed}");
        assert!(found[0].title.contains("the server hangs"), "{target}: {}", found[0].title);
        is_whole(&out, &found[0]);
        assert_eq!(Folder::open(&out).read_summary().unwrap().cases, 120, "{target}: {printed}");
        // Not even the stopped processes are left.
        assert_eq!(family.iter().filter(|p| is_running(**p)).count(), 0, "{target}");
        assert!(!is_running(server), "{target}");
    }
}

#[test]
fn a_user_server_that_does_not_come_back_ends_the_hunt_with_a_summary() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = UserServer::start("postgres", &[]);
    let out = dir.path().join("out");
    // The server has a minute to come back; the time limit of the hunt ends first.
    let hunt = started(&out, &[&server.url(), "--seed", "5", "--time", "8s"]);
    wait_until("the first case begins", || out.join("current/worker-0.case").exists());
    signal(children(server.child.id())[0], Signal::KILL);
    let (output, printed) = ended(hunt);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("60 seconds to come back"), "{printed}");
    assert!(printed.contains("did not come back"), "{printed}");
    assert_eq!(crashes(&out).len(), 1, "{printed}");
    assert!(printed.contains("violations: 1 bug"), "{printed}");
    assert!(out.join("report.html").exists());
    assert!(out.join("current/worker-0.case").exists(), "the suspect stays");
}

#[test]
fn a_server_that_accepts_no_new_connections_is_a_hang() {
    if !servers::is_available("postgres") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let hunt = started(&out, &["postgres", "--seed", "5", "--cases", "90"]);
    // Existing connections have their own processes, which continue.
    signal(server_at_work(&hunt, &out), Signal::STOP);
    let (output, printed) = ended(hunt);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let found = crashes(&out);
    assert_eq!(found.len(), 1, "{printed}");
    assert!(found[0].title.contains("the server hangs"), "{}", found[0].title);
    is_whole(&out, &found[0]);
}

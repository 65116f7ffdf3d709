//! `isolde hunt` when its server is killed, stands still or cannot come back:
//! always a finding, always a summary.

mod program;
mod servers;

use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use program::{children, signal, wait_until};
use rustix::process::Signal;
use servers::Server;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn started(out: &Path, args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolde"));
    command.arg("hunt").args(args).arg("--out").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the hunt is under way, and gives its server.
fn server_at_work(hunt: &Child, out: &Path) -> u32 {
    wait_until(|| out.join("current/worker-0.case").exists());
    std::thread::sleep(Duration::from_millis(300));
    *children(hunt.id()).last().expect("a server")
}

fn ended(hunt: Child) -> (Output, String) {
    let output = hunt.wait_with_output().unwrap();
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    (output, String::from_utf8_lossy(&said).into_owned())
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
    isolde_core::case::parse(&text).unwrap();
}

#[test]
fn a_killed_server_is_a_finding_and_the_hunt_goes_on_to_its_end() {
    for target in ["postgres", "mariadb"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let hunt = started(&out, &[target, "--seed", "5", "--cases", "240"]);
        signal(server_at_work(&hunt, &out), Signal::KILL);
        let (output, said) = ended(hunt);
        assert_eq!(output.status.code(), Some(1), "{target}: {said}");
        assert!(said.contains("the server died"), "{target}: {said}");
        let found = crashes(&out);
        assert_eq!(found.len(), 1, "{target}: {said}");
        is_whole(&out, &found[0]);
        assert!(found[0].explanation.iter().any(|s| s.contains("SIGKILL")), "{:?}", found[0]);
        let summary = Folder::open(&out).read_summary().unwrap();
        assert_eq!((summary.cases, summary.violations.bug), (240, 1), "{target}: {said}");
        assert!(out.join("report.html").exists() && !out.join("current").exists());
    }
}

#[test]
fn a_server_that_stands_still_hangs_and_is_replaced() {
    for target in ["postgres", "mariadb"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let hunt = started(&out, &[target, "--seed", "5", "--cases", "120"]);
        let server = server_at_work(&hunt, &out);
        signal(server, Signal::STOP);
        let family = children(server);
        family.iter().for_each(|process| signal(*process, Signal::STOP));
        let (output, said) = ended(hunt);
        assert_eq!(output.status.code(), Some(1), "{target}: {said}");
        let found = crashes(&out);
        assert_eq!(found.len(), 1, "{target}: {said}");
        assert!(found[0].title.contains("the server hangs"), "{target}: {}", found[0].title);
        is_whole(&out, &found[0]);
        assert_eq!(Folder::open(&out).read_summary().unwrap().cases, 120, "{target}: {said}");
        // Not even those that stood still are left.
        let left = |p: &&u32| Path::new(&format!("/proc/{p}")).exists();
        assert_eq!(family.iter().filter(left).count(), 0, "{target}");
        assert!(!Path::new(&format!("/proc/{server}")).exists(), "{target}");
    }
}

#[test]
fn a_users_server_that_does_not_come_back_ends_the_hunt_with_all_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start("postgres", &[]);
    let out = dir.path().join("out");
    // The minute that it has is cut short by the hunt's own end.
    let hunt = started(&out, &[&server.url(), "--seed", "5", "--time", "8s"]);
    wait_until(|| out.join("current/worker-0.case").exists());
    signal(children(server.child.id())[0], Signal::KILL);
    let (output, said) = ended(hunt);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("60 seconds to come back"), "{said}");
    assert!(said.contains("did not come back"), "{said}");
    assert_eq!(crashes(&out).len(), 1, "{said}");
    assert!(said.contains("violations: 1 bug"), "{said}");
    assert!(out.join("report.html").exists());
    assert!(out.join("current/worker-0.case").exists(), "the suspect stays");
}

#[test]
fn a_server_that_lets_nobody_new_in_is_noticed_while_the_others_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let hunt = started(&out, &["postgres", "--seed", "5", "--cases", "90"]);
    // Those that are connected have processes of their own, which go on.
    signal(server_at_work(&hunt, &out), Signal::STOP);
    let (output, said) = ended(hunt);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let found = crashes(&out);
    assert_eq!(found.len(), 1, "{said}");
    assert!(found[0].title.contains("the server hangs"), "{}", found[0].title);
    is_whole(&out, &found[0]);
}

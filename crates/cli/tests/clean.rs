//! `isolde clean` removes the databases that a killed Isolde has left on a user's
//! server, and nothing else.

use isolde_engines::target::Target;
use isolde_testing::processes::wait_until;
use isolde_testing::program::{all_output, command, isolde, text};
use isolde_testing::servers;
use isolde_testing::user_server::UserServer;
use std::path::Path;
use std::process::Child;

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = isolde(arguments);
    (output.status.code(), all_output(&output))
}

fn databases(url: &str) -> Vec<String> {
    Target::parse(url).unwrap().admin_connection().unwrap().databases().unwrap()
}

/// A hunt that is killed when it is dropped.
struct Hunting(Child);

impl Drop for Hunting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a hunt and waits until it has a database and a summary. Returns the
/// name of the database.
fn hunting(url: &str, out: &Path) -> (Hunting, String) {
    let before = databases(url);
    let arguments = ["hunt", url, "--seed", "3", "--cases", "90000", "--out", text(out)];
    let child = Hunting(command(&arguments).spawn().unwrap());
    let mut database = None;
    wait_until("the hunt creates its database and its summary", || {
        database = databases(url).into_iter().find(|name| !before.contains(name));
        database.is_some() && out.join("hunt.json").exists()
    });
    (child, database.unwrap())
}

fn killed(url: &str, out: &Path) -> String {
    let (child, name) = hunting(url, out);
    drop(child);
    assert!(databases(url).contains(&name), "a killed hunt cannot tidy up");
    name
}

fn on_each_server(test: impl Fn(&str, &Path)) {
    for target in servers::available(&["postgres", "mariadb"]) {
        let server = UserServer::start(target, &[]);
        let folder = tempfile::tempdir().unwrap();
        test(&server.url(), folder.path());
    }
}

#[test]
fn clean_removes_databases_of_ended_processes_only() {
    on_each_server(|url, folder| {
        let others = ["isolde_notes", "isolde_ffffffff_ffff_1_2_3"];
        let mut user = servers::start_engine(url);
        for name in others {
            user.control(&format!("create database {name}")).unwrap();
        }
        let dead = killed(url, &folder.join("dead"));
        let (living, at_work) = hunting(url, &folder.join("living"));

        let (code, text) = run(&["clean", url]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(&format!("removed     {dead}")), "{text}");
        assert!(text.contains(&format!("kept        {at_work}: its process is running")), "{text}");
        assert!(text.contains("isolde_ffffffff_ffff_1_2_3: created on another machine"), "{text}");
        let left = databases(url);
        assert!(!left.contains(&dead), "{left:?}");
        for name in others.iter().copied().chain([at_work.as_str(), "isolde"]) {
            assert!(left.iter().any(|l| l == name), "{name} in {left:?}");
        }

        drop(living);
        let (code, text) = run(&["--json", "clean", url]);
        let printed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((code, &printed["removed"]), (Some(0), &serde_json::json!([at_work])));
    });
}

#[test]
fn a_resumed_hunt_removes_its_own_databases_only() {
    on_each_server(|url, folder| {
        let mine = killed(url, &folder.join("mine"));
        let anothers = killed(url, &folder.join("another"));
        let out = folder.join("mine");
        let (code, text) = run(&[
            "hunt",
            url,
            "--seed",
            "3",
            "--cases",
            "90000",
            "--time",
            "1s",
            "--resume",
            "--out",
            out.to_str().unwrap(),
        ]);
        assert!(matches!(code, Some(0 | 1)), "{text}");
        assert!(text.contains(&format!("removed {mine}")), "{text}");
        let left = databases(url);
        assert!(!left.contains(&mine) && left.contains(&anothers), "{left:?}");
        // The resumed hunt has dropped its own databases.
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(!out.join("current/owner").exists());
    });
}

#[test]
fn clean_accepts_only_a_url() {
    let (code, text) = run(&["clean", "postgres"]);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = run(&["clean", "postgres://nobody@127.0.0.1:1/"]);
    assert_eq!(code, Some(4), "{text}");
}

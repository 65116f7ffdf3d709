//! What a killed Isolde leaves on a user's server is found again, and nothing
//! else there is touched.

mod program;
mod servers;

use isolde_engines::target::Target;
use program::command;
use servers::Server;
use std::path::Path;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code(), text)
}

fn databases(url: &str) -> Vec<String> {
    Target::parse(url).unwrap().door().unwrap().databases().unwrap()
}

/// A hunt that ends as `kill -9` ends it.
struct Hunting(Child);

impl Drop for Hunting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a hunt and waits until it has done something.
fn hunting(url: &str, out: &Path) -> (Hunting, String) {
    let before = databases(url);
    let out = out.to_str().unwrap();
    let arguments = ["hunt", url, "--seed", "3", "--cases", "90000", "--out", out];
    let child = Hunting(command(&arguments).spawn().unwrap());
    let file = Path::new(out).join("hunt.json");
    let since = Instant::now();
    loop {
        let new = databases(url).into_iter().find(|name| !before.contains(name));
        if let (Some(name), true) = (new, file.exists()) {
            return (child, name);
        }
        assert!(since.elapsed() < Duration::from_secs(60), "the hunt begins");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn killed(url: &str, out: &Path) -> String {
    let (child, name) = hunting(url, out);
    drop(child);
    assert!(databases(url).contains(&name), "a killed hunt cannot tidy up");
    name
}

fn on_each_server(test: impl Fn(&str, &Path)) {
    if std::env::var_os("ISOLDE_TEST_QUICK").is_some() {
        return println!("skipped: ISOLDE_TEST_QUICK is set");
    }
    for target in ["postgres", "mariadb"] {
        let server = Server::start(target, &[]);
        let folder = tempfile::tempdir().unwrap();
        test(&server.url(), folder.path());
    }
}

#[test]
fn clean_removes_what_the_dead_have_made_and_nothing_else() {
    on_each_server(|url, folder| {
        let others = ["isolde_notes", "isolde_ffffffff_ffff_1_2_3"];
        let mut user = Target::parse(url)
            .unwrap()
            .open(&isolde_engines::target::Options {
                cache: isolde_engines::fetch::install::Cache::open(),
                via: None,
            })
            .unwrap();
        for name in others {
            user.control(&format!("create database {name}")).unwrap();
        }
        let dead = killed(url, &folder.join("dead"));
        let (living, at_work) = hunting(url, &folder.join("living"));

        let (code, text) = run(&["clean", url]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(&format!("removed     {dead}")), "{text}");
        assert!(text.contains(&format!("left alone  {at_work}: its owner is at work")), "{text}");
        assert!(text.contains("isolde_ffffffff_ffff_1_2_3: made on another machine"), "{text}");
        let left = databases(url);
        assert!(!left.contains(&dead), "{left:?}");
        for name in others.iter().copied().chain([at_work.as_str(), "isolde"]) {
            assert!(left.iter().any(|l| l == name), "{name} in {left:?}");
        }

        drop(living);
        let (code, text) = run(&["--json", "clean", url]);
        let said: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((code, &said["removed"]), (Some(0), &serde_json::json!([at_work])));
    });
}

#[test]
fn a_resumed_hunt_removes_its_own_and_leaves_those_of_others() {
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
        // Its own of the second time are gone as ever.
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(!out.join("current/owner").exists());
    });
}

#[test]
fn only_a_url_can_be_cleaned() {
    let (code, text) = run(&["clean", "postgres"]);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = run(&["clean", "postgres://nobody@127.0.0.1:1/"]);
    assert_eq!(code, Some(4), "{text}");
}

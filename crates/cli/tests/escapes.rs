//! What a database says (rows, errors, its version) cannot steer the terminal
//! of whoever looks at it, nor become HTML in a report.

mod terminal;

use std::path::{Path, PathBuf};
use std::process::Output;
use terminal::Terminal;
use terminal::at_hand::{isolde, pipe};

const EVIL: &str = "\x1b]0;owned\x07<script>";
const CASE: &str = "case: evil\n\nsetup:\n  create table t (a text);\n\n\
    s1> insert into t values (char(27) || ']0;owned' || char(7) || '<script>' || char(155));\n\
    s1> select a from t;\ns1> select * from \"no EVIL\";\n";

/// The example driver, with a version that is an attack.
fn driver(folder: &Path) -> String {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers/sqlite3_driver.py");
    let text = std::fs::read_to_string(example).unwrap();
    let version = format!("sqlite3.sqlite_version + {EVIL:?}").replace("\\u{1b}", "\\x1b");
    let evil = text.replace("sqlite3.sqlite_version", &version.replace("\\u{7}", "\\x07"));
    assert_ne!(evil, text);
    let path = folder.join("evil.py");
    std::fs::write(&path, evil).unwrap();
    format!("driver:python3 {}", path.display())
}

fn case(folder: &Path) -> PathBuf {
    let path = folder.join("evil.case");
    std::fs::write(&path, CASE.replace("EVIL", EVIL)).unwrap();
    path
}

#[track_caller]
fn assert_harmless(output: &Output, said: &str) {
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(stream);
        let bad = |c: char| c != '\n' && c != '\t' && c.is_control();
        assert!(!text.contains(bad), "{text:?}");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(said), "{text:?}");
}

#[test]
fn rows_errors_and_versions_are_shown_with_their_control_characters_visible() {
    let folder = tempfile::tempdir().unwrap();
    let (driver, case) = (driver(folder.path()), case(folder.path()));
    let case = case.to_str().unwrap();
    let run = |arguments: &[&str]| isolde(arguments).output().unwrap();
    assert_harmless(&run(&["replay", case]), "\\x1b]0;owned");
    assert_harmless(&run(&["--json", "replay", case]), "\\u001b]0;owned");
    assert_harmless(&run(&["matrix", &driver]), "\\x1b]0;owned");
    assert_harmless(&run(&["replay", case, "--on", &driver]), "\\x1b]0;owned");
    let typed = "s1> select char(27) || ']0;owned' || char(7);\n";
    assert_harmless(&pipe(&["repl", "sqlite"], typed.as_bytes()), "\\x1b]0;owned");
    let spec = folder.path().join("evil.spec");
    let step = "session s1\nstep a { select char(27) || ']0;owned'; }\n";
    std::fs::write(&spec, step).unwrap();
    let mut screen = Terminal::start(isolde(&["spec", spec.to_str().unwrap(), "--on", "sqlite"]));
    screen.expect("\\x1b]0;owned");
    let mut screen = Terminal::start(isolde(&["replay", case]));
    screen.expect("\\x1b]0;owned");
}

#[test]
fn a_report_in_markdown_has_no_html_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let (driver, case) = (driver(folder.path()), case(folder.path()));
    let out = folder.path().join("out.md");
    let arguments = ["replay", case.to_str().unwrap(), "--on", &driver, "--out"];
    isolde(&arguments).arg(&out).output().unwrap();
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("owned"), "{text}");
    assert!(!text.contains("<script") && !text.contains('\x1b'), "{text}");
}

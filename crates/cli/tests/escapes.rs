//! Text from a database (rows, errors, its version) can neither control the user's
//! terminal nor become HTML in a report.

use isolde_testing::program::{command, isolde, isolde_with_input, text};
use isolde_testing::servers;
use isolde_testing::terminal::Terminal;
use std::path::{Path, PathBuf};
use std::process::Output;

const EVIL: &str = "\x1b]0;owned\x07<script>";
const CASE: &str = "case: evil\n\nsetup:\n  create table t (a text);\n\n\
    s1> insert into t values (char(27) || ']0;owned' || char(7) || '<script>' || char(155));\n\
    s1> select a from t;\ns1> select * from \"no EVIL\";\n";

/// The example driver with an attack in its version.
fn driver(folder: &Path) -> String {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../engines/drivers/sqlite3_driver.py");
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
fn assert_harmless(output: &Output, printed: &str) {
    for stream in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(stream);
        let bad = |c: char| c != '\n' && c != '\t' && c.is_control();
        assert!(!text.contains(bad), "{text:?}");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(printed), "{text:?}");
}

#[test]
fn rows_errors_and_versions_are_shown_with_their_control_characters_visible() {
    if servers::tool("python3").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (driver, case) = (driver(folder.path()), case(folder.path()));
    let case = text(&case);
    assert_harmless(&isolde(&["replay", case]), "\\x1b]0;owned");
    assert_harmless(&isolde(&["--json", "replay", case]), "\\u001b]0;owned");
    assert_harmless(&isolde(&["matrix", &driver]), "\\x1b]0;owned");
    assert_harmless(&isolde(&["replay", case, "--on", &driver]), "\\x1b]0;owned");
    let typed = "s1> select char(27) || ']0;owned' || char(7);\n";
    assert_harmless(&isolde_with_input(&["repl", "sqlite"], typed.as_bytes()), "\\x1b]0;owned");
    let spec = folder.path().join("evil.spec");
    let step = "session s1\nstep a { select char(27) || ']0;owned'; }\n";
    std::fs::write(&spec, step).unwrap();
    let mut screen = Terminal::start(command(&["spec", text(&spec), "--on", "sqlite"]));
    screen.expect("\\x1b]0;owned");
    let mut screen = Terminal::start(command(&["replay", case]));
    screen.expect("\\x1b]0;owned");
}

#[test]
fn markdown_reports_escape_html_from_the_database() {
    if servers::tool("python3").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (driver, case) = (driver(folder.path()), case(folder.path()));
    let out = folder.path().join("out.md");
    isolde(&["replay", text(&case), "--on", &driver, "--out", text(&out)]);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("owned"), "{text}");
    assert!(!text.contains("<script") && !text.contains('\x1b'), "{text}");
}

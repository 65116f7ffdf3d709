//! `--out` of `isolde hunt` and `isolde merge`: foreign files are never changed,
//! and findings are never deleted.

use isolde_testing::program::{hunting, isolde, stderr, text};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

fn hunt(out: &Path, more: &[&str]) -> Output {
    let mut args = vec!["hunt", "sqlite", "--seed", "3", "--cases", "30", "--out", text(out)];
    args.extend(more);
    isolde(&args)
}

#[test]
fn an_output_folder_of_something_else_is_refused_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let part = dir.path().join("part");
    assert_eq!(hunt(&part, &[]).status.code(), Some(0));
    let mine = dir.path().join("mine");
    fs::create_dir_all(mine.join("findings")).unwrap();
    fs::write(mine.join("findings/thesis.tex"), "years of work").unwrap();
    let link = dir.path().join("link");
    symlink(&part, &link).unwrap();
    for (out, reason) in [
        (mine.as_path(), "is not empty"),
        (Path::new("/"), "root of the file system"),
        (&link, "is a symbolic link"),
        (Path::new("/dev/null"), "is a file"),
    ] {
        let merged = isolde(&["merge", text(&part), "--out", text(out)]);
        for output in [hunt(out, &[]), merged] {
            assert_eq!(output.status.code(), Some(6), "{}: {}", out.display(), stderr(&output));
            let named = stderr(&output).contains(reason) || stderr(&output).contains("is the part");
            assert!(named, "{reason}: {}", stderr(&output));
        }
    }
    assert_eq!(fs::read_to_string(mine.join("findings/thesis.tex")).unwrap(), "years of work");
    assert_eq!(fs::read_dir(&mine).unwrap().count(), 1);
    assert_eq!(hunt(&link, &["--resume"]).status.code(), Some(6));
}

#[test]
fn an_earlier_hunt_is_moved_aside_by_a_hunt_and_by_a_merge() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for n in 1..=3 {
        let output = hunt(&at("out"), &[]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let is_named = stderr(&output).contains("moved the earlier hunt to");
        assert_eq!(is_named, n > 1, "{}", stderr(&output));
        fs::write(at("out").join("note.txt"), n.to_string()).unwrap();
    }
    let note = |name: &str| fs::read_to_string(at(name).join("note.txt")).unwrap();
    assert_eq!(
        (note("out.old"), note("out.old.2"), note("out")),
        ("1".into(), "2".into(), "3".into())
    );
    let output = isolde(&["merge", text(&at("out.old")), "--out", text(&at("out"))]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(note("out.old.3"), "3");
    assert!(at("out/isolde.hunt").exists() && !at("out/note.txt").exists());
    // A folder that contains a part of the merge may not be moved.
    fs::rename(at("out.old"), at("out/part")).unwrap();
    let output = isolde(&["merge", text(&at("out/part")), "--out", text(&at("out"))]);
    assert_eq!(output.status.code(), Some(6));
    assert!(at("out/part/hunt.json").exists(), "{}", stderr(&output));
}

#[test]
fn a_second_hunt_in_the_same_folder_is_refused_while_the_first_runs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut first = hunting(&out, &[]);
    let merged = isolde(&["merge", text(&out), "--out", text(&dir.path().join("union"))]);
    assert_eq!(merged.status.code(), Some(0), "reading is allowed: {}", stderr(&merged));
    for output in [hunt(&out, &[]), hunt(&out, &["--resume"])] {
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
        let process = format!("another isolde (process {})", first.id());
        assert!(stderr(&output).contains(&process), "{}", stderr(&output));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The lock ends with its process.
    assert_eq!(hunt(&out, &[]).status.code(), Some(0));
    assert!(dir.path().join("out.old/hunt.json").exists());
}

#[test]
fn symbolic_links_in_a_part_leak_nothing_into_a_merge_or_report() {
    let dir = tempfile::tempdir().unwrap();
    let (part, union) = (dir.path().join("part"), dir.path().join("union"));
    let fault = ["--fault", "statement-dropped", "--fault-rate=1"];
    assert_eq!(hunt(&part, &fault).status.code(), Some(1));
    let secret = dir.path().join("secret");
    fs::write(&secret, "the secret of another file").unwrap();
    let finding = fs::read_dir(part.join("findings")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(finding.join("script.sql")).unwrap();
    symlink(&secret, finding.join("script.sql")).unwrap();
    assert_eq!(isolde(&["report", text(&part)]).status.code(), Some(0));
    assert!(!fs::read_to_string(part.join("report.html")).unwrap().contains("the secret"));
    let output = isolde(&["merge", text(&part), "--out", text(&union)]);
    assert!(stderr(&output).contains("script.sql: it is a symbolic link"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(6));
}

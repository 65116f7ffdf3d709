//! `--baseline`: only new signatures fail a hunt.

use isolde_testing::program::{isolde, stderr, stdout, text};
use std::fs;
use std::path::Path;
use std::process::Output;

fn hunt(out: &Path, more: &[&str]) -> Output {
    let args = ["hunt", "sqlite", "--seed", "7", "--cases", "90", "--out", text(out)];
    let fault = ["--fault", "statement-dropped", "--fault-rate", "1"];
    isolde(&[&args[..], &fault, more].concat())
}

/// The lines of a baseline that are signatures.
fn signatures(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_string).collect()
}

#[test]
fn baseline_signatures_do_not_fail_a_hunt_and_new_ones_do() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (file, junit) = (at("known.txt"), at("junit.xml"));
    let baseline = ["--baseline", text(&file)];
    let none = hunt(&at("none"), &baseline);
    assert_eq!(none.status.code(), Some(5), "{}", stderr(&none));
    assert!(stderr(&none).contains("--update-baseline creates it"), "{}", stderr(&none));
    assert!(!at("none").exists(), "nothing was begun");

    let made = hunt(&at("made"), &[&baseline[..], &["--update-baseline"]].concat());
    assert_eq!(made.status.code(), Some(0), "all of it is known now: {}", stderr(&made));
    let all = signatures(&file);
    assert!(all.len() > 2, "{all:?}");
    assert!(stderr(&made).contains(&format!("added {} signatures", all.len())));

    let again = hunt(&at("again"), &[&baseline[..], &["--junit", text(&junit)]].concat());
    assert_eq!(again.status.code(), Some(0), "{}", stdout(&again));
    assert!(stdout(&again).contains(" known, 0 new)"), "{}", stdout(&again));
    assert!(stdout(&again).contains("  known: bug at"), "{}", stdout(&again));
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("failures=\"0\"") && xml.contains("known: in the baseline"));
    let page = fs::read_to_string(at("again/report.html")).unwrap();
    assert!(page.contains("in the baseline, 0 new)") && page.contains("known: in the baseline"));

    // One of the signatures is new.
    let kept = fs::read_to_string(&file).unwrap().replace(&format!("{}\n", all[0]), "");
    fs::write(&file, &kept).unwrap();
    let new = hunt(&at("new"), &[&baseline[..], &["--junit", text(&junit)]].concat());
    assert_eq!(new.status.code(), Some(1), "{}", stdout(&new));
    let judged: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(at("new/hunt.json")).unwrap()).unwrap();
    let (known, fresh) = (&judged["baseline"]["known"], &judged["baseline"]["new"]);
    assert!(known.as_u64().unwrap() > 0 && fresh.as_u64().unwrap() > 0, "{known} {fresh}");
    assert_eq!(
        known.as_u64().unwrap() + fresh.as_u64().unwrap(),
        judged["violations"]["bug"].as_u64().unwrap()
    );
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<failure ") && xml.contains("<skipped "), "{xml}");

    // The same for a merge; the signatures of a folder can be accepted afterwards.
    let merged =
        isolde(&[&["merge", text(&at("new")), "--out", text(&at("all"))], &baseline[..]].concat());
    assert_eq!(merged.status.code(), Some(1), "{}", stderr(&merged));
    let new = at("new");
    let accepted = isolde(&[&["report", text(&new), "--update-baseline"], &baseline[..]].concat());
    assert_eq!(accepted.status.code(), Some(0), "{}", stderr(&accepted));
    assert!(stderr(&accepted).contains("added 1 signature to"), "{}", stderr(&accepted));
    assert!(fs::read_to_string(&file).unwrap().starts_with(&kept), "nothing was removed");
    let merged =
        isolde(&[&["merge", text(&at("new")), "--out", text(&at("all"))], &baseline[..]].concat());
    assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
}

#[test]
fn a_malformed_baseline_is_refused_before_the_hunt_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("known.txt"), dir.path().join("out"));
    fs::write(&file, "# fine\nnot a signature\n").unwrap();
    let output = hunt(&out, &["--baseline", text(&file)]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("line 2"), "{}", stderr(&output));
    let nowhere = dir.path().join("none/known.txt");
    let output = hunt(&out, &["--baseline", text(&nowhere), "--update-baseline"]);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert_eq!(hunt(&out, &["--update-baseline"]).status.code(), Some(2));
    assert!(!out.exists());
}

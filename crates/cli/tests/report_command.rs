//! `isolde report` and `isolde merge`: paths, refusals, exit codes.

use isolde_hunt::cause::{Cause, Verdict};
use isolde_hunt::confirm::Rate;
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::{Identity, Progress, Shard, Summary};
use isolde_hunt::tally::Tally;
use isolde_testing::program::{isolde, stderr, stdout, text};
use std::path::{Path, PathBuf};

fn part(dir: &Path, seed: u64, part: u64, of: u64, bug: bool) -> PathBuf {
    let path = dir.join(format!("seed-{seed}-part-{part}-of-{of}"));
    let folder = Folder::create(&path).unwrap();
    let mut tally = Tally { cases: 100, statements: 900, ..Tally::default() };
    if bug {
        tally.violations.add(Verdict::Bug);
        folder.note_finding(&finding(part, seed)).unwrap();
    }
    let identity = Identity {
        version: "0.1.0".into(),
        seed,
        target: "sqlite".into(),
        server_version: "3.50.4".into(),
        settings: [].into(),
        levels: vec!["SERIALIZABLE".into()],
        oracles: vec!["tx-wss".into()],
        options: [].into(),
    };
    let shards = vec![Shard { part, of }];
    let summary = Summary::new(identity, shards, &tally, 1.0, Progress::default());
    folder.write_summary(&summary).unwrap();
    path
}

fn finding(number: u64, seed: u64) -> Finding {
    Finding {
        id: number.to_string(),
        case_number: number,
        seed,
        target: "sqlite".into(),
        server_version: "3.50.4".into(),
        level: None,
        oracles: vec!["tx-wss".into()],
        cause: Cause { label: Verdict::Bug, behaviour: None, evidence: Vec::new(), level: None },
        rate: Rate { seen: 2, runs: 2 },
        defect: String::new(),
        features: None,
        signature: "x".into(),
        title: "a title".into(),
        explanation: Vec::new(),
        differences: Vec::new(),
        known: Vec::new(),
        known_link: None,
        operations: Vec::new(),
        case: "case: x\n".into(),
        reduced_by: None,
        account: None,
    }
}

#[test]
fn a_report_is_written_into_the_folder_and_its_path_printed() {
    let dir = tempfile::tempdir().unwrap();
    let hunt = part(dir.path(), 7, 1, 1, true);
    let output = isolde(&["report", text(&hunt)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = hunt.join("report.html");
    assert_eq!(stdout(&output).trim(), text(&page));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("a title") && page.contains("the folder findings/1 is missing"));
    let output = isolde(&["report", text(&hunt), "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(answer["report"].as_str().unwrap().ends_with("report.html"));
}

#[test]
fn report_refuses_a_folder_without_a_hunt() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("nowhere");
    for path in [dir.path(), &none] {
        let output = isolde(&["report", text(path)]);
        assert_eq!(output.status.code(), Some(5));
        assert!(stderr(&output).contains(text(path)), "{}", stderr(&output));
    }
    std::fs::write(dir.path().join("hunt.json"), "{\"version\": 1}").unwrap();
    let output = isolde(&["report", text(dir.path())]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("hunt.json: missing field"), "{}", stderr(&output));
    assert!(!dir.path().join("report.html").exists());
}

#[test]
fn a_merge_has_the_exit_code_of_the_whole_hunt() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let (a, b) = (part(dir.path(), 7, 1, 3, false), part(dir.path(), 7, 2, 3, true));
    let output = isolde(&["merge", text(&a), "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("missing shards: 2/3, 3/3"), "{}", stderr(&output));
    let output = isolde(&["merge", text(&a), text(&b), "--out", text(&out)]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("200 cases"), "{}", stdout(&output));
    assert!(stdout(&output).contains("1 bug"));
    assert!(out.join("report.html").exists());
    let output = isolde(&["merge", text(&a), text(&b), "--out", text(&out), "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&answer["cases"], &answer["violations"]["bug"]), (&200.into(), &1.into()));
}

#[test]
fn merge_refuses_parts_of_different_hunts() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let a = part(dir.path(), 7, 1, 2, false);
    let other = part(dir.path(), 8, 2, 2, false);
    let refused = |parts: &[&Path], out: &Path| {
        let mut args = vec!["merge"];
        args.extend(parts.iter().map(|p| text(p)));
        args.extend(["--out", text(out)]);
        let output = isolde(&args);
        (output.status.code(), stderr(&output))
    };
    let (code, printed) = refused(&[&a, &other], &out);
    assert_eq!(code, Some(5));
    assert!(printed.contains("their seed differs"), "{printed}");
    let (code, printed) = refused(&[&a, &a], &out);
    assert_eq!(code, Some(5));
    assert!(printed.contains("shard 1/2"), "{printed}");
    let (code, printed) = refused(&[&a], &a);
    assert_eq!(code, Some(6));
    assert!(printed.contains("name another --out"), "{printed}");
    let (code, printed) = refused(&[&a, dir.path()], &out);
    assert_eq!(code, Some(5));
    assert!(printed.contains("no hunt.json"), "{printed}");
    assert!(!out.exists());
    let output = isolde(&["merge", text(&a)]);
    assert_eq!(output.status.code(), Some(2), "--out must be said");
}

#[test]
fn absurd_numbers_in_hunt_json_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (part(dir.path(), 7, 1, 2, false), part(dir.path(), 7, 2, 2, false));
    let file = b.join("hunt.json");
    let good: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    for (path, value) in [
        ("/progress/blocks", serde_json::json!([[0, 18_446_744_073_709_551_615_u64]])),
        ("/shards/0/of", 0.into()),
        ("/shards/0/of", 4_000_000_000_u64.into()),
        ("/cases", u64::MAX.into()),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap() = value;
        std::fs::write(&file, bad.to_string()).unwrap();
        let out = dir.path().join("out");
        for args in [
            vec!["merge", text(&a), text(&b), "--out", text(&out)],
            vec!["report", text(&b)],
            vec!["hunt", "sqlite", "--seed", "7", "--resume", "--out", text(&b)],
        ] {
            let output = isolde(&args);
            assert_eq!(output.status.code(), Some(5), "{path}, {args:?}: {}", stderr(&output));
            assert!(stderr(&output).contains(text(&file)), "{path}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_damaged_list_of_findings_is_restored() {
    let dir = tempfile::tempdir().unwrap();
    let hunt = part(dir.path(), 7, 1, 1, true);
    let finding = finding(1, 7);
    std::fs::create_dir_all(hunt.join("findings/1")).unwrap();
    let json = serde_json::to_string(&finding).unwrap();
    std::fs::write(hunt.join("findings/1/finding.json"), json).unwrap();
    let list = hunt.join("findings.jsonl");
    let whole = std::fs::read(&list).unwrap();
    std::fs::write(&list, &whole[..40]).unwrap();
    let output = isolde(&["report", text(&hunt)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of its lines"), "{}", stderr(&output));
    assert_eq!(std::fs::read(&list).unwrap(), whole);
}

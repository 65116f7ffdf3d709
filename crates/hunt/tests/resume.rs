//! A hunt that is interrupted anywhere and resumed leaves the same folder as an
//! undisturbed one, and its counts match its findings at any time.

use isolde_engines::engine::Engine;
use isolde_engines::fault::{self, Planted};
use isolde_engines::sqlite::{Mode, Sqlite};
use isolde_generator::{Generator, Options};
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::hunt::{self, Hunt, HuntMonitor, HuntResult};
use isolde_hunt::known::KnownBugs;
use isolde_hunt::resume::PreviousRun;
use isolde_hunt::summary::{Identity, RunSettings, Shard, Summary};
use isolde_oracles::DEFAULT_ORACLES;
use isolde_sql::Dialect;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

const SEED: u64 = 7;
const CASES: u64 = 36;
/// How many points of interruption are tested: enough to hit reductions.
const POINTS: u64 = 19;

thread_local! {
    /// How often the hunt may still poll for an interrupt. With one worker it
    /// polls on the thread of its caller.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

fn interrupted() -> bool {
    LEFT.with(|left| {
        left.set(left.get().saturating_sub(1));
        left.get() == 0
    })
}

fn engine() -> Box<dyn Engine> {
    let plain = Sqlite::private(Mode::RollbackJournal, "sqlite").unwrap();
    let fault = fault::find("statement-dropped").unwrap();
    fault::plant(Box::new(plain), Planted { fault, rate: 1.0, seed: SEED })
}

/// Hunts to the end, or until it has polled for an interrupt `asks` times.
fn hunt(out: &Path, resume: bool, asks: u64, time: Option<Duration>) -> Summary {
    let first = engine();
    let info = first.info().clone();
    let levels = first.profile().level_names();
    let options = Options::new(levels.clone(), first.profile().default_level);
    let dialect = Dialect::for_engine(&info.engine, &info.version);
    let generator = Generator::new(dialect, SEED, options);
    let identity = Identity {
        version: "test".into(),
        seed: SEED,
        target: info.target,
        server_version: info.version,
        settings: info.settings,
        levels: levels.iter().map(|l| l.name().to_string()).collect(),
        oracles: DEFAULT_ORACLES.iter().map(|o| o.name().to_string()).collect(),
        options: BTreeMap::new(),
    };
    let (folder, earlier) = if resume {
        let folder = Folder::reopen(out).unwrap();
        let earlier = PreviousRun::read(&folder, &identity, Shard::WHOLE).unwrap();
        (folder, Some(earlier))
    } else {
        (Folder::create(out).unwrap(), None)
    };
    let hunt = Hunt {
        identity,
        generator: &generator,
        oracles: DEFAULT_ORACLES,
        known: &KnownBugs::default(),
        shard: Shard::WHOLE,
        cases: Some(CASES),
        time,
        workers: 1,
        run_settings: RunSettings::default(),
        all: false,
        reduces: true,
        rounds: None,
        oracle_options: Default::default(),
        open: &|| Ok(engine()),
        interrupted,
    };
    LEFT.set(asks);
    let HuntResult { summary, failure } =
        hunt::run(&hunt, first, &folder, earlier, &HuntMonitor::default());
    assert!(failure.is_none(), "{failure:?}");
    summary
}

/// The contents of a folder without times.
fn contents(out: &Path) -> (Summary, BTreeMap<String, Vec<u8>>) {
    let folder = Folder::open(out);
    let mut summary = folder.read_summary().unwrap();
    summary.seconds = 0.0;
    let mut files = BTreeMap::new();
    for name in ["findings.jsonl", "documented.jsonl"] {
        files.insert(name.to_string(), fs::read(out.join(name)).unwrap());
    }
    for finding in fs::read_dir(out.join("findings")).unwrap() {
        let finding = finding.unwrap();
        for file in fs::read_dir(finding.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(out).unwrap().display().to_string();
            files.insert(name, fs::read(path).unwrap());
        }
    }
    (summary, files)
}

fn listed(out: &Path) -> Vec<Finding> {
    Folder::open(out).read_findings().unwrap()
}

/// Asserts that the counts match the listed findings, in the folder and in the
/// returned summary.
fn consistent(out: &Path, summary: &Summary) {
    let (found, in_folder) = (listed(out), Folder::open(out).read_summary().unwrap());
    assert_eq!(in_folder.violations, summary.violations);
    assert_eq!(summary.violations.bug + summary.violations.undecided, found.len() as u64);
    assert!(found.iter().all(|f| summary.signatures.contains(&f.signature)));
    assert!(found.iter().all(|f| out.join("findings").join(&f.id).join("finding.json").exists()));
}

fn same(undisturbed: &(Summary, BTreeMap<String, Vec<u8>>), out: &Path, when: &str) {
    let (summary, files) = contents(out);
    assert_eq!(undisturbed.0, summary, "{when}");
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&undisturbed.1), names(&files), "{when}");
    for (name, text) in &undisturbed.1 {
        let (a, b) = (String::from_utf8_lossy(text), String::from_utf8_lossy(&files[name]));
        assert_eq!(a, b, "{when}: {name}");
    }
}

#[test]
fn a_hunt_interrupted_anywhere_and_resumed_equals_an_undisturbed_one() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let summary = hunt(&whole, false, u64::MAX, None);
    let asked = u64::MAX - LEFT.get();
    let undisturbed = contents(&whole);
    let found = listed(&whole);
    assert!(found.len() > 4, "{} findings", found.len());
    let reduced = found.iter().filter(|f| f.reduced_by.is_some()).count();
    // One finding per signature in a block.
    assert!(reduced > 2, "{reduced} reduced");
    consistent(&whole, &summary);
    let mut cut = 0;
    for point in 1..=POINTS {
        let out = dir.path().join(format!("at-{point}"));
        let asks = asked * point / (POINTS + 1);
        let broken = hunt(&out, false, asks, None);
        consistent(&out, &broken);
        assert!(broken.cases < CASES, "point {point} is before the end");
        cut += listed(&out).iter().filter(|f| f.reduced_by.as_ref().is_some_and(|r| r.cut)).count();
        // Interrupted again at once, before any progress.
        let again = hunt(&out, true, 2, None);
        consistent(&out, &again);
        assert_eq!(again.violations, broken.violations, "nothing that was found is lost");
        let resumed = hunt(&out, true, u64::MAX, None);
        consistent(&out, &resumed);
        same(&undisturbed, &out, &format!("broken off after {asks} of {asked} questions"));
    }
    assert!(cut > 0, "no interruption fell into a reduction");
}

#[test]
fn findings_are_reduced_and_counted_when_the_time_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    hunt(&whole, false, u64::MAX, None);
    let undisturbed = contents(&whole);
    for millis in [1, 30, 90, 200, 400] {
        let out = dir.path().join(format!("after-{millis}"));
        let summary = hunt(&out, false, u64::MAX, Some(Duration::from_millis(millis)));
        consistent(&out, &summary);
        // The findings of the undisturbed hunt for the same cases.
        for finding in listed(&out) {
            let text = serde_json::to_string(&finding).unwrap() + "\n";
            let all = String::from_utf8_lossy(&undisturbed.1["findings.jsonl"]).into_owned();
            assert!(all.contains(&text), "{millis} ms: {}", finding.title);
        }
        hunt(&out, true, u64::MAX, None);
        same(&undisturbed, &out, &format!("after {millis} ms"));
    }
}

#[test]
fn a_finding_that_does_not_recur_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let whole = hunt(&out, false, u64::MAX, None);
    // The folder of a hunt that was killed in its last block, after a finding
    // that does not recur.
    let folder = Folder::reopen(&out).unwrap();
    let mut by_chance = listed(&out)[0].clone();
    let number = (30..CASES).find(|n| listed(&out).iter().all(|f| f.case_number != *n)).unwrap();
    by_chance.case_number = number;
    by_chance.id = format!("{number:08}");
    by_chance.signature = "by chance".into();
    folder.note_finding(&by_chance).unwrap();
    let mut summary = folder.read_summary().unwrap();
    summary.progress.blocks = vec![(0, 0)];
    summary.progress.done = None;
    folder.write_summary(&summary).unwrap();
    drop(folder);
    let resumed = hunt(&out, true, u64::MAX, None);
    let found = listed(&out);
    assert!(found.contains(&by_chance));
    assert!(resumed.signatures.contains("by chance") && !whole.signatures.contains("by chance"));
}

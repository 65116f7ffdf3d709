//! Whole hunts on a scripted engine: at any call the server crashes, hangs or
//! returns nonsense, or the user presses Ctrl-C, or the time is over. Apart from
//! the crash the findings stay the same; none is lost or doubled.

use isolde_engines::engine::{Engine, EngineError, Outcome};
use isolde_engines::fault::{self, Planted};
use isolde_engines::runner::{RunError, Runner};
use isolde_generator::{Generator, Options};
use isolde_hunt::HuntError;
use isolde_hunt::executor::{Executor, Fixture};
use isolde_hunt::finding::Finding;
use isolde_hunt::folder::Folder;
use isolde_hunt::hunt::{self, Hunt, HuntMonitor, HuntResult};
use isolde_hunt::resume::PreviousRun;
use isolde_hunt::summary::{Identity, RunSettings, Shard};
use isolde_model::inquiry::Inquiry;
use isolde_model::profile::Waiting;
use isolde_oracles::DEFAULT_ORACLES;
use isolde_sql::Dialect;
use isolde_testing::scripted::{Act, Call, Counter, Script, Scripted};
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

thread_local! {
    /// Whether the script has pressed Ctrl-C. A hunt with one worker stays on the
    /// thread of its caller.
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

const SEED: u64 = 7;

struct Setting {
    waiting: Waiting,
    /// The share of statements that the planted fault strikes; `None` for a sound
    /// engine.
    fault: Option<f64>,
    cases: u64,
    time: Option<Duration>,
}

fn engine(setting: &Setting, script: Script) -> (Box<dyn Engine>, Counter) {
    let scripted = Scripted::new(setting.waiting, script).unwrap();
    let counter = scripted.counter();
    let fault = fault::find("statement-dropped").unwrap();
    let engine: Box<dyn Engine> = match setting.fault {
        Some(rate) => fault::plant(Box::new(scripted), Planted { fault, rate, seed: SEED }),
        None => Box::new(scripted),
    };
    (engine, counter)
}

/// Runs a hunt into a folder, or resumes the hunt in it.
fn hunt(setting: &Setting, out: &Path, script: Script) -> (HuntResult, Counter) {
    let (first, counter) = engine(setting, script);
    let info = first.info().clone();
    let profile = first.profile().clone();
    let levels = profile.level_names();
    let dialect = Dialect::for_engine(&info.engine, &info.version);
    let options = Options::new(levels.clone(), profile.default_level);
    let generator = Generator::new(dialect, SEED, options);
    let identity = Identity {
        version: "test".into(),
        seed: SEED,
        target: info.target.clone(),
        server_version: info.version.clone(),
        settings: Default::default(),
        levels: levels.iter().map(|l| l.name().to_string()).collect(),
        oracles: DEFAULT_ORACLES.iter().map(|o| o.name().to_string()).collect(),
        options: Default::default(),
    };
    let (folder, earlier) = match out.join("hunt.json").exists() {
        true => {
            let folder = Folder::reopen(out).unwrap();
            let earlier = PreviousRun::read(&folder, &identity, Shard::WHOLE).unwrap();
            (folder, Some(earlier))
        }
        false => (Folder::create(out).unwrap(), None),
    };
    let hunt = Hunt {
        identity,
        generator: &generator,
        oracles: DEFAULT_ORACLES,
        known: &isolde_hunt::known::KnownBugs::default(),
        shard: Shard::WHOLE,
        cases: Some(setting.cases),
        time: setting.time,
        workers: 1,
        run_settings: RunSettings::default(),
        all: false,
        reduces: true,
        rounds: None,
        oracle_options: Default::default(),
        open: &|| Err(EngineError::Refused("there is one worker".into())),
        interrupted: || INTERRUPTED.get(),
    };
    let ended = hunt::run(&hunt, first, &folder, earlier, &HuntMonitor::default());
    (ended, counter)
}

fn sound(waiting: Waiting, cases: u64) -> Setting {
    Setting { waiting, fault: None, cases, time: None }
}

/// A setting with findings to confirm, to explain and to reduce.
fn faulty(waiting: Waiting, cases: u64) -> Setting {
    Setting { waiting, fault: Some(0.3), cases, time: None }
}

fn calm() -> Script {
    Box::new(|_, _| None)
}

fn at(number: u64, act: Act) -> Script {
    Box::new(move |call, _| (call == number).then(|| act.clone()))
}

fn findings(out: &Path) -> (Vec<Finding>, Vec<Finding>) {
    let all = Folder::open(out).read_findings().unwrap();
    all.into_iter().partition(|f| f.oracles == ["crash"])
}

type Found = Vec<(String, String, String)>;

/// The findings without their times.
fn essence(found: &[Finding]) -> Found {
    let mut all: Found =
        found.iter().map(|f| (f.id.clone(), f.signature.clone(), f.case.clone())).collect();
    all.sort();
    all
}

/// The calls at which a test interferes: all of few, a sample of many, since each
/// one takes a whole hunt.
fn sampled(calls: u64) -> impl Iterator<Item = u64> {
    const MANY: u64 = 90;
    (1..=calls).step_by(usize::try_from(calls / MANY + 1).expect("few calls"))
}

/// An undisturbed hunt: its number of calls and its findings.
fn undisturbed(setting: &Setting) -> (u64, Found) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let (ended, counter) = hunt(setting, &out, calm());
    assert!(ended.failure.is_none());
    let (crashes, others) = findings(&out);
    assert!(crashes.is_empty());
    (counter.calls(), essence(&others))
}

fn falls_once(setting: &Setting, number: u64, act: Act, undisturbed: &Found) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let (ended, counter) = hunt(setting, &out, at(number, act.clone()));
    let what = format!("{act:?} at call {number}, {:?}", setting.waiting);
    if counter.calls() < number {
        // How often the lock view of a server is queried depends on timing.
        return;
    }
    assert!(ended.failure.is_none(), "{what}: {:?}", ended.failure);
    assert_eq!(ended.summary.cases + ended.summary.not_run, setting.cases, "{what}");
    let (crashes, others) = findings(&out);
    assert_eq!(crashes.len(), 1, "{what}: {crashes:#?}");
    // A server that crashes after the last case is not needed any more.
    let needed = !crashes[0].id.ends_with("-after");
    assert_eq!(counter.revived(), u32::from(needed), "{what}");
    assert_eq!(essence(&others), *undisturbed, "{what}");
    assert_eq!(ended.summary.by_oracle["crash"].bug, 1, "{what}");
    let folder = out.join("findings").join(&crashes[0].id);
    assert!(folder.join("server.log").exists(), "{what}");
    let case = std::fs::read_to_string(folder.join("case.case")).unwrap();
    isolde_model::case::parse(&case).unwrap_or_else(|e| panic!("{what}: {e}"));
}

#[test]
fn a_crash_at_any_call_is_one_finding_and_the_hunt_goes_on() {
    for waiting in [Waiting::Retry, Waiting::Probe] {
        let setting = sound(waiting, 1);
        let (calls, found) = undisturbed(&setting);
        for number in sampled(calls) {
            let act = if number % 2 == 0 { Act::Die } else { Act::DieUnseen };
            falls_once(&setting, number, act, &found);
        }
    }
}

#[test]
fn a_crash_while_a_violation_is_examined_loses_neither() {
    for waiting in [Waiting::Retry, Waiting::Probe] {
        let setting = faulty(waiting, 4);
        let (calls, found) = undisturbed(&setting);
        assert!(!found.is_empty());
        for part in 1..=6 {
            falls_once(&setting, calls * part / 7, Act::Die, &found);
        }
    }
}

#[test]
fn a_hang_at_any_call_is_one_finding() {
    let setting = sound(Waiting::Probe, 2);
    let (calls, found) = undisturbed(&setting);
    for part in 1..=12 {
        falls_once(&setting, calls * part / 13, Act::StandStill, &found);
    }
}

#[test]
fn a_nonsensical_response_at_any_call_ends_in_a_summary() {
    let odd = Outcome::Rows { columns: vec!["x".into()], rows: vec![Vec::new()] };
    let setting = sound(Waiting::Probe, 1);
    let (calls, _) = undisturbed(&setting);
    for number in sampled(calls) {
        let answers = [odd.clone(), Outcome::Affected(u64::MAX), Outcome::Done];
        let answer = answers[(number % 3) as usize].clone();
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let (ended, _) = hunt(&setting, &out, at(number, Act::Answer(answer)));
        match ended.failure {
            None => assert_eq!(ended.summary.cases + ended.summary.not_run, 1, "call {number}"),
            // A COMMIT that was confirmed and not executed leaves locks.
            Some(HuntError::Run(RunError::Engine(EngineError::Refused(_)))) => {}
            Some(other) => panic!("call {number}: {other}"),
        }
        assert!(Folder::open(&out).read_summary().is_ok(), "call {number}");
    }
}

#[test]
fn a_server_that_cannot_be_revived_ends_the_hunt_with_a_summary() {
    let (calls, _) = undisturbed(&sound(Waiting::Probe, 3));
    for part in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let number = calls * part / 5;
        let script =
            move |n: u64, call: &Call| (n == number || *call == Call::Revive).then_some(Act::Die);
        let (ended, counter) = hunt(&sound(Waiting::Probe, 3), &out, Box::new(script));
        if counter.calls() < number {
            continue;
        }
        let failure = ended.failure.expect("it did not come back");
        assert!(matches!(failure, HuntError::Run(RunError::NotRestored(_))), "{failure}");
        assert_eq!(counter.revived(), 0);
        assert_eq!(findings(&out).0.len(), 1, "call {number}");
        assert_eq!(ended.summary.violations.bug, 1);
        assert_eq!(Folder::open(&out).read_summary().unwrap().violations.bug, 1);
        let suspect = std::fs::read_to_string(out.join("current/worker-0.case")).unwrap();
        isolde_model::case::parse(&suspect).unwrap();
    }
}

#[test]
fn a_hunt_interrupted_at_any_call_and_resumed_finds_the_same() {
    let setting = faulty(Waiting::Retry, 6);
    let (calls, found) = undisturbed(&setting);
    for part in 1..=6 {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let number = calls * part / 7;
        let press = move |n: u64, _: &Call| {
            if n == number {
                INTERRUPTED.set(true);
            }
            None
        };
        let (ended, _) = hunt(&setting, &out, Box::new(press));
        assert!(ended.failure.is_none() && ended.summary.cases < 6, "call {number}");
        INTERRUPTED.set(false);
        let (ended, _) = hunt(&setting, &out, calm());
        assert_eq!(ended.summary.cases, 6, "call {number}");
        let (crashes, others) = findings(&out);
        assert!(crashes.is_empty());
        assert_eq!(essence(&others), found, "call {number}");
        assert_eq!(ended.summary.violations.total() as usize, found.len(), "call {number}");
    }
}

#[test]
fn a_hunt_resumed_after_each_time_limit_finds_the_same() {
    let mut setting = faulty(Waiting::Retry, 6);
    let (_, found) = undisturbed(&setting);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut turns = 0;
    loop {
        turns += 1;
        setting.time = Some(Duration::from_millis(200 * turns));
        let (ended, _) = hunt(&setting, &out, calm());
        assert!(ended.failure.is_none());
        if ended.summary.cases == 6 {
            break;
        }
    }
    assert_eq!(essence(&findings(&out).1), found);
}

/// No transaction committed, so the serial run has no statements. The failure belongs to the
/// case itself, which can be replayed.
#[test]
fn a_crash_in_an_empty_serial_run_is_attributed_to_the_case() {
    let text = "case: no-commit\ntitle: no transaction commits\n\nsetup:\n  create table t (a int);\n\n\
                s1> begin;\ns1> insert into t values (1);\ns1> rollback;\n\n\
                final:\n  select a from t;\n";
    let case = isolde_model::case::parse(text).unwrap();
    let mut serial = case.clone();
    serial.steps.clear();
    let mut calls = 1;
    loop {
        let (engine, counter) = engine(&sound(Waiting::Probe, 1), at(calls, Act::Die));
        let info = engine.info().clone();
        let level = engine.profile().default_level;
        let fixture = Fixture::of_case(&case, &info, level);
        let mut executor = Executor::new(Runner::new(engine));
        let inquiry = Inquiry::new(|channel| {
            let serial = serial.clone();
            async move { channel.run(serial).await }
        });
        let ran = executor.inquire((&fixture, &case), inquiry, &mut Vec::new());
        if counter.calls() < calls {
            assert!(ran.is_ok() && calls > 1);
            break;
        }
        let Err(HuntError::ServerFailure(broke)) = ran else { panic!("call {calls}: {ran:?}") };
        assert_eq!(broke.case, case, "call {calls}");
        assert!(broke.checked.concurrent.death.is_some(), "call {calls}");
        calls += 1;
    }
}

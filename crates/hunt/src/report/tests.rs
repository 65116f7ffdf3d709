//! Whole pages, from folders that are made here out of recorded runs.

use super::*;
use crate::cause::{Cause, Explained, Label};
use crate::confirm::Rate;
use crate::finding::{Evidence, Finding, Reduction};
use crate::summary::{Identity, Progress, Shard, Summary};
use crate::tally::{Coverage, Refusal, Tally};
use isolde_core::history::{SentStep, What};
use isolde_core::oracle::Difference;
use isolde_core::value::Row;
use isolde_core::{Case, History, Level, Value, case};
use std::fs;

const EVIL: &str = "</script></style><img src=x onerror=alert(1)>\"'&\u{202e}";

/// A run that was recorded on MariaDB or PostgreSQL.
pub fn fixture(name: &str) -> History {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/report/fixtures/{name}.json"));
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The case that a recorded run is of.
fn case_of(history: &History) -> Case {
    let mut text = format!(
        "case: hunt/{}\nengines: {}\n\nsetup:\n  create table t (id int primary key, v int, note varchar(20));\n  insert into t values (1, 10, 'a'), (2, 20, null), (3, 30, 'c');\n\n",
        history.case, history.on.engine
    );
    for step in &history.steps {
        text.push_str(&format!("{}> {};\n", step.session, step.sql.replace(EVIL, "evil")));
    }
    text.push_str("\nfinal:\n  select * from t order by id;\n");
    case::parse(&text).unwrap()
}

fn changed(history: &History) -> Vec<Difference> {
    let rows = &history.final_state[0];
    let mut serial: Vec<Row> = rows.rows.clone();
    serial[0][1] = Value::Int(21);
    serial.push(vec![Value::Int(9), Value::Int(90), Value::Null]);
    vec![
        Difference::Final {
            query: rows.query.clone(),
            columns: rows.columns.clone(),
            concurrent: rows.rows.clone(),
            only_concurrent: vec![rows.rows[0].clone()],
            only_serial: vec![serial[0].clone(), serial[serial.len() - 1].clone()],
            serial,
        },
        Difference::Affected {
            label: "s2.3".into(),
            sql: "update t set v = v * 2 where v > 5".into(),
            concurrent: 4,
            serial: 3,
        },
    ]
}

pub fn made(number: u64, run: &str, label: Label, signature: &str) -> Evidence {
    let concurrent = fixture(run);
    let mut case = case_of(&concurrent);
    case.level = concurrent.level;
    let level = concurrent.level.map_or("default", Level::name);
    let finding = Finding {
        id: format!("{number:06}"),
        case_number: number,
        seed: 7,
        target: concurrent.on.target.clone(),
        server_version: concurrent.on.version.clone(),
        level: concurrent.level,
        oracles: vec!["tx-wss".into(), "stmt-wss".into()],
        cause: Cause {
            label,
            behaviour: None,
            bug_at: None,
            evidence: vec!["no serial order of the committed transactions explains it".into()],
        },
        rate: Rate { seen: 2, runs: if number.is_multiple_of(3) { 12 } else { 2 } },
        signature: signature.into(),
        title: format!(
            "{} at {level}: the final rows are those of no such serial run (delete update | update insert)",
            label.name()
        ),
        explanation: vec![
            format!("The statements ran concurrently at {level}. Committed, in this order: s1, s2."),
            "On the way s2.3 waited for s1.".into(),
            "Compared with the committed transactions run one after the other in the order of their commits (tx-wss):".into(),
            "s2.3 changed 4 rows concurrently and 3 serially.".into(),
            "It happened again on fresh tables.".into(),
        ],
        differences: changed(&concurrent),
        known: vec!["mariadb/mdev-26642".into(), "papers/writecheck-figure-1".into()],
        case: case::format(&case),
        reduced_by: Some(Reduction { statements_before: 17, statements_after: 9, trials: 41, cut: false }),
    };
    let serial = match run {
        "serialization" => vec![],
        run => vec![("serial-tx".to_string(), fixture(&format!("{run}-serial")))],
    };
    Evidence { finding, original: case.clone(), case, concurrent, serial }
}

pub fn summary(seed: u64, shard: Shard, bugs: u64) -> Summary {
    let mut tally = Tally {
        cases: 18_204,
        statements: 241_377,
        statements_in_all: 702_113,
        invalid: 6_400,
        waited: 20_117,
        transactions: 54_012,
        aborted: 3_120,
        not_confirmed: 2,
        unknown: Default::default(),
        ..Tally::default()
    };
    for _ in 0..bugs {
        tally.violations.add(Label::Bug);
        tally.by_level.entry("REPEATABLE READ".into()).or_default().add(Label::Bug);
        tally.by_oracle.entry("tx-wss".into()).or_default().add(Label::Bug);
    }
    tally.violations.add(Label::Documented);
    tally.by_level.entry("READ COMMITTED".into()).or_default().add(Label::Documented);
    tally.by_behaviour.insert("semi-consistent-read".into(), 1);
    for (i, name) in
        ["select", "join", "update", "delete-using", "savepoint", "for-update"].iter().enumerate()
    {
        let appeared = 900 - 100 * i as u64;
        tally
            .features
            .insert((*name).into(), Coverage { appeared, succeeded: appeared - 40 * i as u64 });
    }
    tally.refusals.insert(
        "1064".into(),
        Refusal {
            count: 3,
            message: "You have an error in your SQL syntax".into(),
            sql: "select".into(),
        },
    );
    let text = |s: &str| s.to_string();
    let identity = Identity {
        version: "0.1.0".into(),
        seed,
        target: "mariadb".into(),
        server_version: "10.11.19".into(),
        settings: [(text("innodb_snapshot_isolation"), text("0"))].into(),
        levels: vec!["READ COMMITTED".into(), "REPEATABLE READ".into()],
        oracles: vec!["tx-wss".into(), "stmt-wss".into(), "crash".into()],
        options: [(text("ddl"), text("false")), (text("prepared"), text("true"))].into(),
    };
    Summary::new(identity, vec![shard], &tally, 61.3, Progress::default())
}

/// An output folder with `count` findings of `kinds` signatures.
pub fn hunt(dir: &Path, count: u64, kinds: u64) {
    let folder = Folder::create(dir).unwrap();
    let runs = ["wait", "deadlock", "serialization"];
    for n in 0..count {
        let kind = n % kinds;
        let label = if kind % 4 == 3 { Label::Undecided } else { Label::Bug };
        let run = runs[(kind % 3) as usize];
        let signature = format!("{} / RR / affected+final rows / kind {kind:03}", label.name());
        let evidence = made(n, run, label, &signature);
        // Only those that a page shows whole need their folders.
        if n / kinds < 3 {
            folder.write(&evidence).unwrap();
        } else {
            folder.note_finding(&evidence.finding).unwrap();
        }
    }
    let mut documented = made(77, "wait", Label::Documented, "documented").finding;
    documented.level = Some(Level::ReadCommitted);
    documented.cause.behaviour = Some(Explained {
        name: "semi-consistent-read".into(),
        about: "an UPDATE skips rows whose last committed version does not match".into(),
        link: "https://mariadb.com/kb/en/set-transaction/".into(),
    });
    folder.note_documented(&documented).unwrap();
    folder.write_summary(&summary(7, Shard::WHOLE, count)).unwrap();
}

fn read(dir: &Path) -> String {
    fs::read_to_string(write(dir).unwrap()).unwrap()
}

#[test]
fn a_page_has_the_summary_the_findings_and_nothing_from_the_network() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), 3, 3);
    let page = read(dir.path());
    for wanted in [
        "<title>mariadb 10.11.19",
        "<dt>seed</dt><dd>7</dd>",
        "<dt>prepared</dt><dd>yes</dd>",
        "97.3 %",
        "61.3",
        "waits for s1",
        "✗ aborted by the engine",
        "href=\"https://jira.mariadb.org/browse/MDEV-26642\"",
        "semi-consistent-read",
        "delete-using",
        "reduced from 17 to 9 statements",
        "Script for the engine",
        "serially: 3 rows",
        "isolde replay findings/000002/case.case",
        "isolde replay case.case --on mariadb<",
        "<p class=sentences>The statements ran concurrently",
        "The tables at the start",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    // Sent alone it lacks nothing: no file of the folder is linked.
    for forbidden in [
        "<link",
        "src=",
        "@import",
        "url(",
        "javascript:",
        "href=\"findings",
        ".jsonl",
        "schedule.txt",
        "`",
    ] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(!page.contains("<dt>ddl</dt>") && !page.contains("<dt>cases not run</dt>"));
    assert_eq!(page.matches("<section class=group").count(), 3);
    assert!(!dir.path().join("report.html.new").exists());
}

#[test]
fn the_policy_of_the_page_allows_its_script() {
    use base64::Engine;
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(include_bytes!("script.js"));
    let hash = base64::engine::general_purpose::STANDARD.encode(digest);
    assert_eq!(hash, include_str!("script.sha256").trim(), "put it into script.sha256");
}

#[test]
fn what_comes_from_outside_stays_text_wherever_it_stands() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create(dir.path()).unwrap();
    let mut evidence = made(1, "deadlock", Label::Bug, EVIL);
    for step in &mut evidence.concurrent.steps {
        *step =
            SentStep { label: EVIL.into(), session: EVIL.into(), sql: EVIL.into(), anyway: false };
    }
    for event in &mut evidence.concurrent.events {
        event.session = EVIL.into();
        match &mut event.what {
            What::Error(error) => (error.code, error.message) = (EVIL.into(), EVIL.into()),
            What::NotSent { why } => *why = EVIL.into(),
            What::Waiting { on } => *on = vec![EVIL.into()],
            _ => {}
        }
    }
    evidence.concurrent.final_state[0].query = EVIL.into();
    evidence.concurrent.final_state[0].rows = vec![vec![Value::Text(EVIL.into())]];
    let (how, why) = (isolde_core::history::Fall::Died, EVIL.to_string());
    evidence.concurrent.death =
        Some(isolde_core::history::Death { how, why, log: Some(EVIL.into()) });
    evidence.serial = vec![("serial-tx".into(), evidence.concurrent.clone())];
    let finding = &mut evidence.finding;
    (finding.title, finding.target, finding.case) = (EVIL.into(), EVIL.into(), EVIL.into());
    finding.explanation = vec![EVIL.into()];
    finding.oracles = vec![EVIL.into()];
    finding.known = vec![EVIL.into(), format!("mysql/{EVIL}")];
    finding.cause.behaviour =
        Some(Explained { name: EVIL.into(), about: EVIL.into(), link: format!("https://{EVIL}") });
    folder.write(&evidence).unwrap();
    folder.note_documented(&evidence.finding).unwrap();
    let mut odd = evidence.finding.clone();
    odd.id = EVIL.into();
    folder.note_finding(&odd).unwrap();
    let mut summary = summary(7, Shard::WHOLE, 1);
    let identity = &mut summary.identity;
    (identity.target, identity.server_version, identity.version) =
        (EVIL.into(), EVIL.into(), EVIL.into());
    identity.settings.insert(EVIL.into(), EVIL.into());
    identity.options.insert(EVIL.into(), EVIL.into());
    identity.levels.push(EVIL.into());
    identity.oracles.push(EVIL.into());
    summary.by_level.insert(EVIL.into(), Default::default());
    summary.by_oracle.insert(EVIL.into(), Default::default());
    summary.by_behaviour.insert(EVIL.into(), 1);
    summary.features.insert(EVIL.into(), Coverage::default());
    summary
        .refusals
        .insert(EVIL.into(), Refusal { count: 1, message: EVIL.into(), sql: EVIL.into() });
    folder.write_summary(&summary).unwrap();
    let page = read(dir.path());
    assert!(!page.contains("<img") && !page.contains('\u{202e}'));
    assert_eq!(page.matches("</script>").count(), 1, "its own");
    assert_eq!(page.matches("</style>").count(), 1, "its own");
    assert!(page.matches("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;").count() > 30);
}

#[test]
fn a_folder_that_is_missing_or_damaged_is_said_in_place() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), 4, 4);
    let at = |path: &str| dir.path().join("findings").join(path);
    fs::remove_dir_all(at("000000")).unwrap();
    fs::write(at("000001/concurrent.json"), b"\xff{").unwrap();
    fs::write(at("000001/serial-tx.json"), "{}").unwrap();
    fs::remove_file(at("000003/script.sql")).ok();
    fs::write(dir.path().join("documented.jsonl"), "nonsense\n").unwrap();
    let page = read(dir.path());
    assert!(page.contains("the folder findings/000000 is missing"));
    assert!(page.contains("concurrent.json is damaged"));
    assert!(page.contains("serial-tx.json is damaged"));
    assert!(page.contains("documented.jsonl: line 1"));
    fs::write(dir.path().join("findings.jsonl"), "{}\n".repeat(9)).unwrap();
    assert!(write(dir.path()).unwrap_err().to_string().contains("findings.jsonl: line 1"));
    fs::write(dir.path().join("hunt.json"), "{").unwrap();
    assert!(write(dir.path()).unwrap_err().to_string().contains("hunt.json"));
    fs::remove_file(dir.path().join("hunt.json")).unwrap();
    assert!(write(dir.path()).unwrap_err().to_string().contains("hunt.json"));
}

#[test]
fn a_thousand_findings_are_grouped_and_the_page_stays_small() {
    let dir = tempfile::tempdir().unwrap();
    hunt(dir.path(), 1000, 40);
    let page = read(dir.path());
    assert_eq!(page.matches("<section class=group").count(), 40);
    assert_eq!(page.matches("<details class=finding").count(), 120);
    assert_eq!(page.matches("<details class=finding open>").count(), 1);
    assert!(page.contains("22 more like it"));
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    let bug = page.find("data-cause=bug").unwrap();
    assert!(bug < page.find("data-cause=undecided").unwrap());
}

#[test]
fn a_hunt_without_findings_has_a_page_too() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create(dir.path()).unwrap();
    folder.write_summary(&summary(7, Shard { part: 2, of: 4 }, 0)).unwrap();
    let page = read(dir.path());
    assert!(page.contains("No violation that the documentation does not explain"));
    assert!(page.contains("2/4 (1 of 4 are here)") && page.contains("nothing to show"));
}

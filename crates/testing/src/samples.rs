//! Findings and output folders made from runs that were recorded on MariaDB and
//! PostgreSQL.
//!
//! The unit tests of `isolde-hunt` include this file as a module.

use isolde_hunt::confirm::Rate;
use isolde_hunt::finding::{Evidence, Finding, Reduction};
use isolde_hunt::folder::Folder;
use isolde_hunt::summary::{Identity, Progress, Shard, Summary};
use isolde_hunt::tally::{Coverage, Refusal, Tally};
use isolde_model::Verdict;
use isolde_model::difference::Difference;
use isolde_model::value::Row;
use isolde_model::{Case, History, Level, Value, case};
use isolde_reference::cause::{Cause, Explained};
use std::path::Path;

/// A run that was recorded on MariaDB or PostgreSQL.
pub fn recorded(name: &str) -> History {
    let text = match name {
        "wait" => include_str!("samples/wait.json"),
        "wait-serial" => include_str!("samples/wait-serial.json"),
        "deadlock" => include_str!("samples/deadlock.json"),
        "deadlock-serial" => include_str!("samples/deadlock-serial.json"),
        "serialization" => include_str!("samples/serialization.json"),
        _ => panic!("no run {name} was recorded"),
    };
    serde_json::from_str(text).expect("it was written by a hunt")
}

/// The case of a recorded run.
fn case_of(history: &History) -> Case {
    let mut text = format!(
        "case: hunt/{}\nengines: {}\n\nsetup:\n  create table t (id int primary key, v int, note varchar(20));\n  insert into t values (1, 10, 'a'), (2, 20, null), (3, 30, 'c');\n\n",
        history.case, history.on.engine
    );
    for step in &history.steps {
        text.push_str(&format!("{}> {};\n", step.session, step.sql));
    }
    text.push_str("\nfinal:\n  select * from t order by id;\n");
    case::parse(&text).unwrap()
}

/// Differences between a recorded run and its serial run.
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

/// A finding with its evidence, from a recorded run.
pub fn made(number: u64, run: &str, label: Verdict, signature: &str) -> Evidence {
    let concurrent = recorded(run);
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
            level: None,
            evidence: vec!["no serial order of the committed transactions explains it".into()],
        },
        rate: Rate { seen: 5, runs: if number.is_multiple_of(3) { 12 } else { 5 } },
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
        defect: String::new(),
        features: None,
        known: vec!["mariadb/mdev-26642".into(), "papers/writecheck-figure-1".into()],
        known_link: Some("https://jira.mariadb.org/browse/MDEV-26642".into()),
        operations: Vec::new(),
        case: case::format(&case),
        reduced_by: Some(Reduction { statements_before: 17, statements_after: 9, trials: 41, cut: false }),
        account: None,
    };
    let serial = match run {
        "serialization" => vec![],
        run => vec![("serial-tx".to_string(), recorded(&format!("{run}-serial")))],
    };
    let files = Vec::new();
    Evidence { finding, original: case.clone(), case, concurrent, serial, files }
}

/// The summary of a hunt with this many bugs.
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
        predicted: 0,
        not_modelled: Default::default(),
        ..Tally::default()
    };
    for _ in 0..bugs {
        tally.violations.add(Verdict::Bug);
        tally.by_level.entry("REPEATABLE READ".into()).or_default().add(Verdict::Bug);
        tally.by_oracle.entry("tx-wss".into()).or_default().add(Verdict::Bug);
    }
    tally.violations.add(Verdict::Documented);
    tally.by_level.entry("READ COMMITTED".into()).or_default().add(Verdict::Documented);
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
        let label = if kind % 4 == 3 { Verdict::Undecided } else { Verdict::Bug };
        let run = runs[(kind % 3) as usize];
        let signature = format!("{} / RR / affected+final rows / kind {kind:03}", label.name());
        let evidence = made(n, run, label, &signature);
        // Only findings that a page shows in full need their folders.
        if n / kinds < 3 {
            folder.write(&evidence).unwrap();
        } else {
            folder.note_finding(&evidence.finding).unwrap();
        }
    }
    let mut documented = made(77, "wait", Verdict::Documented, "documented").finding;
    documented.level = Some(Level::ReadCommitted);
    documented.cause.behaviour = Some(Explained {
        name: "semi-consistent-read".into(),
        about: "an UPDATE skips rows whose last committed version does not match".into(),
        link: "https://mariadb.com/kb/en/set-transaction/".into(),
    });
    folder.note_documented(&documented).unwrap();
    folder.write_summary(&summary(7, Shard::WHOLE, count)).unwrap();
}

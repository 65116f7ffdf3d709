use super::run::Run;
use super::*;
use isolde_model::breach::{Breach, KeyOwner, Obstacle, RowChange, RowDiff, RowRole, Wait};
use isolde_model::case;
use isolde_model::case::Case;
use isolde_model::difference::Difference;
use isolde_model::history::{
    DbError, ErrorClass, ErrorEffect, Event, EventKind, FinalRows, History, SentStep, TargetInfo,
    Transaction, TxEnd,
};
use isolde_model::random::Random;
use isolde_model::{Level, Value, Verdict};
use isolde_reference::{Account, StepAccount, StepVerdict};

const TABLE: &str = "setup:\n  create table t (a int primary key, b int);\n  \
                     insert into t values (1, 0);\n\n";

fn read(steps: &str) -> Case {
    case::parse(&format!("case: x\nengines: sqlite\n\n{TABLE}{steps}")).unwrap()
}

fn concurrent(theirs: RowChange, ours: RowChange) -> Breach {
    let (other, table) = ("s1".into(), "t".into());
    Breach::Proceeded { obstacle: Obstacle::ConcurrentChange { other, table, theirs, ours } }
}

fn row_count(observed: u64, predicted: u64) -> Breach {
    Breach::RowCount { observed, predicted, returned: false }
}

fn ints(row: &[i64]) -> Vec<Vec<Value>> {
    match row {
        [] => Vec::new(),
        row => vec![row.iter().map(|n| Value::Int(*n)).collect()],
    }
}

fn diff(extra: &[i64], missing: &[i64]) -> RowDiff {
    RowDiff { extra: ints(extra), missing: ints(missing) }
}

/// An account with a breach at one step.
fn account(case: &Case, label: &str, rule: &str, breach: &Breach) -> Account {
    let step = |n: usize| {
        let here = case.label(n) == label;
        StepAccount {
            step: case.label(n),
            sql: case.steps[n].sql.clone(),
            outcome: String::new(),
            verdict: if here { StepVerdict::Broken } else { StepVerdict::Allowed },
            rules: vec![rule.into()],
            why: if here { breach.to_string() } else { String::new() },
        }
    };
    let steps = (0..case.steps.len()).map(step).collect();
    let (why, breach) = (breach.to_string(), Some(breach.clone()));
    Account { label: Verdict::Bug, why, anomaly: None, breach, steps, rules: Vec::new() }
}

fn subject<'a>(case: &'a Case, account: Option<&'a Account>) -> Subject<'a> {
    Subject {
        case,
        history: None,
        account,
        differences: &[],
        oracles: &[],
        engine: "sqlite",
        version: "3.50.4",
        level: Some(Level::Serializable),
    }
}

fn features(steps: &str, (label, rule, breach): (&str, &str, Breach)) -> Features {
    let case = read(steps);
    let account = account(&case, label, rule, &breach);
    Features::of(subject(&case, Some(&account)))
}

/// A run of a case in its order: each step is answered as `reply` says, and
/// every session is one transaction that ends as its last step does.
fn history(case: &Case, finals: &[(i64, i64)], reply: &dyn Fn(usize) -> EventKind) -> History {
    let mut history = History {
        isolde: "0".into(),
        case: case.id.clone(),
        on: TargetInfo { engine: "sqlite".into(), version: "3".into(), ..TargetInfo::default() },
        level: None,
        seed: None,
        steps: (0..case.steps.len()).map(|n| SentStep::of(case, n)).collect(),
        events: Vec::new(),
        transactions: Vec::new(),
        final_state: vec![FinalRows {
            query: "select a, b from t".into(),
            columns: vec!["a".into(), "b".into()],
            rows: finals.iter().map(|(a, b)| vec![Value::Int(*a), Value::Int(*b)]).collect(),
            error: None,
        }],
        death: None,
    };
    for session in case.sessions() {
        let begin = case.steps.iter().position(|s| s.session == session).unwrap();
        let back = case.steps.iter().any(|s| s.session == session && s.sql == "rollback");
        let how = if back { TxEnd::RolledBack } else { TxEnd::Committed };
        let session = session.to_string();
        history.transactions.push(Transaction { session, begin, autocommit: false, how });
    }
    for (n, step) in case.steps.iter().enumerate() {
        let event = |what| Event { session: step.session.clone(), step: Some(n), what };
        history.events.push(event(EventKind::Sent { as_sql: None }));
        history.events.push(event(reply(n)));
        if step.kind().ends_transaction() {
            let at = history.transactions.iter().position(|t| t.session == step.session).unwrap();
            let how = history.transactions[at].how;
            history.events.push(event(EventKind::Ended { transaction: at, how }));
        }
    }
    history
}

fn done(_: usize) -> EventKind {
    EventKind::Done
}

const DELETE_UPDATE: &str = "s1> begin;\ns2> begin;\ns1> delete from t;\ns2> update t set b = 2;\n\
                             s1> commit;\ns2> commit;\n";

#[test]
fn deviation_is_independent_of_names_and_session_order() {
    let one =
        features(DELETE_UPDATE, ("s2.3", "D2", concurrent(RowChange::Delete, RowChange::Update)));
    let other = features(
        &DELETE_UPDATE.replace("s1", "a").replace("s2", "s1").replace("a>", "s2>"),
        ("s2.3", "D2", concurrent(RowChange::Update, RowChange::Delete)),
    );
    assert!(same(&one, &other), "{} / {}", one.key(), other.key());
    assert_eq!(one.deviation.between, ["delete", "update"]);
    let key = features(
        &DELETE_UPDATE.replace("delete from t", "update t set a = 9"),
        ("s2.3", "D2", concurrent(RowChange::Delete, RowChange::Update)),
    );
    assert!(!same(&one, &key), "an update of a key is another thing than a delete");
    assert_eq!(key.deviation.between, ["update", "update of a key"]);
    let rule =
        features(DELETE_UPDATE, ("s2.3", "D3", concurrent(RowChange::Delete, RowChange::Update)));
    assert!(!same(&one, &rule), "another rule");
}

#[test]
fn a_row_changed_before_an_optimistic_commit_names_both_statements() {
    let (by, table) = (Some("s1".into()), Some("t".into()));
    let obstacle = Obstacle::RowChanged { by, table, role: RowRole::Needed };
    let found = features(DELETE_UPDATE, ("s2.3", "T2", Breach::Proceeded { obstacle }));
    assert_eq!(found.deviation.between, ["delete", "update"]);
}

#[test]
fn deviation_distinguishes_writes_of_null() {
    let two = "s1> begin;\ns2> begin;\ns1> update t set b = 5;\ns2> update t set b = 6;\n\
               s1> commit;\ns2> commit;\n";
    let breach = || concurrent(RowChange::Value, RowChange::Value);
    let plain = features(two, ("s2.2", "D2", breach()));
    let null = features(&two.replace("b = 6", "b = null"), ("s2.2", "D2", breach()));
    assert!(!same(&plain, &null));
    assert_eq!(null.deviation.between, ["update", "update to null"]);
    assert_eq!(
        plain.deviation.how,
        "a write proceeded although another transaction changed a value that it changed"
    );
}

#[test]
fn counts_are_more_or_fewer_whatever_they_are() {
    let at = |breach: Breach| features(DELETE_UPDATE, ("s2.2", "S1", breach));
    let fewer = at(row_count(0, 1));
    assert!(same(&fewer, &at(row_count(2, 7))));
    assert!(!same(&fewer, &at(row_count(2, 1))));
    assert_eq!(fewer.deviation.how, "a write changed fewer rows than predicted");
}

const FAMILY: &str = "setup:\n  create table p (a int primary key, b int);\n  \
                      create table c (x int primary key, a int, foreign key (a) references p (a));\n  \
                      insert into p values (1, 0);\n  insert into c values (9, 1);\n\n";

/// The deviation of a run on a parent and a child table, with a breach at a step or
/// in the final rows.
fn of_family(steps: &str, label: &str, breach: &Breach) -> Deviation {
    let case = case::parse(&format!("case: x\nengines: mysql\n\n{FAMILY}{steps}")).unwrap();
    let run = history(&case, &[], &done);
    let difference = [Difference::Rule {
        label: label.into(),
        sql: String::new(),
        rule: "I18".into(),
        about: String::new(),
        page: String::new(),
        why: breach.to_string(),
        breach: Some(Box::new(breach.clone())),
    }];
    let subject = Subject {
        history: Some(&run),
        differences: &difference,
        engine: "mysql",
        version: "9.7.4",
        ..subject(&case, None)
    };
    Features::of(subject).deviation
}

#[test]
fn replace_of_a_parent_is_one_defect_however_it_shows() {
    let steps =
        "s1> begin;\ns1> replace into p values (1, 2);\ns1> select * from c;\ns1> commit;\n";
    let table = |name: &str| Breach::FinalRows { table: name.into(), diff: diff(&[9, 1], &[]) };
    let child = Obstacle::ChildExists { child: "c".into(), added: false };
    let keys: Vec<String> = [
        ("s1.2", row_count(2, 1)),
        ("s1.2", Breach::Proceeded { obstacle: child.clone() }),
        ("s1.3", Breach::Rows { diff: diff(&[9, 1], &[]) }),
        ("", table("c")),
        ("", table("p")),
    ]
    .iter()
    .map(|(label, breach)| of_family(steps, label, breach).key())
    .collect();
    assert_eq!(keys, ["replace-of-a-parent"; 5]);
}

#[test]
fn other_defects_are_not_taken_for_a_replace_of_a_parent() {
    let key = |steps: &str, label: &str, breach: Breach| of_family(steps, label, &breach).key();
    let of_child = "s1> replace into c values (9, 1);\n";
    assert_ne!(key(of_child, "s1.1", row_count(2, 1)), "replace-of-a-parent");
    let update = "s1> update p set b = 1;\n";
    assert_ne!(key(update, "s1.1", row_count(2, 1)), "replace-of-a-parent");
    // A breach before the REPLACE, and a wait after it.
    let later = "s1> select * from c;\ns1> replace into p values (1, 2);\n";
    let rows = Breach::Rows { diff: diff(&[9, 1], &[]) };
    assert_ne!(key(later, "s1.1", rows), "replace-of-a-parent");
    let waits = "s1> replace into p values (1, 2);\ns2> select * from c for update;\n";
    assert_ne!(
        key(waits, "s2.1", Breach::UnexpectedWait { wait: Wait::NoHolder }),
        "replace-of-a-parent"
    );
}

#[test]
fn final_rows_are_described_by_their_writers() {
    let steps = "s1> begin;\ns1> insert into t values (7, 7);\ns1> rollback;\n\
                 s2> update t set b = 4;\n";
    let case = read(steps);
    let run = history(&case, &[], &done);
    let answer = |extra: &[i64], missing: &[i64]| {
        let breach = Breach::FinalRows { table: "t".into(), diff: diff(extra, missing) };
        let difference = [Difference::Rule {
            label: String::new(),
            sql: String::new(),
            rule: "S11".into(),
            about: String::new(),
            page: String::new(),
            why: breach.to_string(),
            breach: Some(Box::new(breach)),
        }];
        let subject =
            Subject { history: Some(&run), differences: &difference, ..subject(&case, None) };
        Features::of(subject).deviation
    };
    assert_eq!(answer(&[7, 7], &[]).rows, ["a row whose insert was rolled back too many"]);
    assert_eq!(answer(&[7, 7], &[]).after, ["a rollback"]);
    assert_eq!(answer(&[], &[1, 0]).rows, ["a first row missing"]);
    assert_eq!(answer(&[1, 0], &[1, 4]).rows, ["a first row instead of a changed row"]);
    assert_eq!(answer(&[1, 8], &[1, 4]).rows, ["a changed row instead of a changed row"]);
}

#[test]
fn transaction_undone_by_a_failed_statement_is_recognised_by_the_final_rows() {
    let steps =
        "s1> begin;\ns1> update t set b = 5;\ns1> insert into t values (1, 1);\ns1> commit;\n";
    let case = read(steps);
    let failed = DbError {
        code: "19".into(),
        sqlstate: None,
        message: "unique".into(),
        class: ErrorClass::Constraint,
        effect: ErrorEffect::Statement,
    };
    let reply = |n: usize| if n == 2 { EventKind::Error(failed.clone()) } else { EventKind::Done };
    let row = |b: i64| vec![Value::Int(1), Value::Int(b)];
    let of = |left: i64| {
        let run = history(&case, &[(1, left)], &reply);
        let differences = [Difference::Final {
            query: "select a, b from t".into(),
            columns: Vec::new(),
            concurrent: vec![row(left)],
            serial: vec![row(5)],
            only_concurrent: vec![row(left)],
            only_serial: vec![row(5)],
        }];
        let subject =
            Subject { history: Some(&run), differences: &differences, ..subject(&case, None) };
        Features::of(subject).deviation.how
    };
    assert!(of(0).starts_with("a statement failed, and nothing"), "{}", of(0));
    assert_eq!(of(9), "the final rows differ", "something of it is left");
}

#[test]
fn deviation_without_a_serial_order_names_the_overwritten_reads() {
    let nearest = Some(Box::new(row_count(1, 2)));
    let breach = Breach::NoSerialOrder { nearest, attempts: Vec::new() };
    let steps = "s1> begin;\ns2> begin;\ns1> insert into t values (1, 1), (2, 2) on conflict do nothing;\n\
                 s2> update t set a = a + 9;\ns1> commit;\ns2> commit;\n";
    let case = read(steps);
    let of = |label: &str, affected: u64| {
        let account = account(&case, label, "P7", &breach);
        let reply = |n: usize| {
            if n == 2 { EventKind::Affected { count: affected } } else { EventKind::Done }
        };
        let run = history(&case, &[], &reply);
        Features::of(Subject { history: Some(&run), ..subject(&case, Some(&account)) })
    };
    assert!(same(&of("s1.2", 1), &of("s2.2", 1)), "which order came farthest is chance");
    assert_eq!(of("s1.2", 1).deviation.between, ["an insert that left a row out"]);
    assert!(!same(&of("s1.2", 1), &of("s1.2", 2)), "it left nothing out");
}

#[test]
fn holder_of_a_read_row_is_open_committed_or_rolled_back() {
    let breach = Breach::Rows { diff: diff(&[1, 9], &[1, 0]) };
    let of = |steps: &str, label: &str| {
        let case = read(steps);
        let account = account(&case, label, "S2", &breach);
        let run = history(&case, &[], &done);
        Features::of(Subject { history: Some(&run), ..subject(&case, Some(&account)) }).deviation
    };
    let open = "s1> begin;\ns1> update t set b = 9;\ns2> begin;\ns2> select * from t;\ns1> commit;\ns2> commit;\n";
    let committed = "s2> begin;\ns1> begin;\ns1> update t set b = 9;\ns1> commit;\ns2> select * from t;\ns2> commit;\n";
    let gone = committed.replace("s1> commit", "s1> rollback");
    let unwritten = "s1> begin;\ns1> commit;\ns2> begin;\ns2> select * from t;\ns2> commit;\n";
    assert_eq!(of(open, "s2.2").holders, ["an open writer"]);
    assert_eq!(of(committed, "s2.2").holders, ["a committed writer"]);
    assert_eq!(of(&gone, "s2.2").holders, ["a writer that was rolled back"]);
    assert!(of(unwritten, "s2.2").holders.is_empty());
}

#[test]
fn pattern_is_independent_of_session_names() {
    let one = read(DELETE_UPDATE);
    let other = read(&DELETE_UPDATE.replace("s1>", "z>").replace("s2>", "a>"));
    let swapped = read(&DELETE_UPDATE.replace(
        "s1> delete from t;\ns2> update t set b = 2;",
        "s2> update t set b = 2;\ns1> delete from t;",
    ));
    let pattern = |case: &Case| Features::of(subject(case, None)).pattern;
    assert_eq!(pattern(&one), "1.delete -ww-> 2.update");
    assert_eq!(pattern(&one), pattern(&other));
    assert_ne!(pattern(&one), pattern(&swapped), "the order of the two writers matters here");
}

/// Each feature where it must be, and not where it must not.
#[test]
fn features_list_only_what_the_run_contains() {
    let of = |setup: &str, steps: &str| {
        let text = format!("case: x\nengines: mysql\n\nsetup:\n{setup}\n\n{steps}");
        let case = case::parse(&text).unwrap();
        Features::of(Subject { engine: "mysql+x", version: "8.0.46", ..subject(&case, None) }).all
    };
    let plain = of("  create table t (a int);\n", "s1> select a from t;\n");
    let rich = of(
        "  create table t (a int primary key, b int not null, unique (b), check (b > 0));\n  \
         create index i on t (b);\n",
        "s1> begin;\ns1> savepoint p;\ns1> select a from t for update;\n\
         s1> insert into t values (1, 1), (2, 2);\ns2> update t set b = (select max(b) from t);\n",
    );
    for feature in [
        "key: primary key",
        "key: unique",
        "index: yes",
        "constraint: check",
        "constraint: not null",
        "statement: locking read",
        "locking read: Update Wait",
        "statement: savepoint",
        "savepoints: yes",
        "statement: insert of several rows",
        "statement: update of a key",
        "statement: a subquery",
        "sessions: 2",
        "edge: insert -ww-> update of a key",
    ] {
        assert!(rich.contains(feature), "{feature}: {rich:#?}");
        assert!(!plain.contains(feature), "{feature}: {plain:#?}");
    }
    for feature in ["engine: mysql", "mode: x", "version: mysql 8.0", "level: SERIALIZABLE"] {
        assert!(plain.contains(feature), "{feature}: {plain:#?}");
    }
    assert!(plain.contains("key: no primary key") && plain.contains("savepoints: no"));
}

#[test]
fn server_failure_is_identified_by_its_location_without_numbers() {
    let case = read("s1> select * from t;\n");
    let of = |error: &str| {
        let (label, sql) = ("s1.1".to_string(), String::new());
        let differences = [Difference::Broken { label, sql, error: error.into() }];
        Features::of(Subject { differences: &differences, ..subject(&case, None) })
    };
    assert!(same(
        &of("panicked at core/mod.rs:397: cursor 1"),
        &of("panicked at core/mod.rs:12: cursor 99")
    ));
    assert!(!same(&of("panicked at core/mod.rs:397"), &of("panicked at core/join.rs:397")));
}

#[test]
fn findings_without_a_deviation_are_never_the_same() {
    assert!(!same(&Features::default(), &Features::default()), "no name without a reason");
}

#[test]
fn judge_prefers_the_same_deviation_then_the_same_pattern() {
    let breach = || concurrent(RowChange::Delete, RowChange::Update);
    let finding = features(DELETE_UPDATE, ("s2.3", "D2", breach()));
    let alike = features(
        &DELETE_UPDATE.replace("s1> delete", "s1> select * from t;\ns1> delete"),
        ("s2.3", "D2", breach()),
    );
    let otherwise = features(DELETE_UPDATE, ("s2.2", "D9", row_count(0, 1)));
    let answer = compare(&finding, &otherwise, &alike);
    assert_eq!((answer.nearer, answer.same), (Nearer::Second, true), "{}", answer.reason);
    assert_eq!(compare(&finding, &alike, &otherwise).nearer, Nearer::First);
    let answer = compare(&finding, &alike, &finding);
    assert_eq!(
        (answer.nearer, answer.reason.as_str()),
        (Nearer::Second, "its statements meet in the same way")
    );
    assert_eq!(compare(&finding, &alike, &alike).nearer, Nearer::Neither);
}

/// Groups and rankings are those of the set, not of the order.
#[test]
fn grouping_is_independent_of_the_order_of_reports() {
    let mut random = Random::stream(5, "shuffled", 0);
    let whys = [
        ("s2.3", "D2", concurrent(RowChange::Delete, RowChange::Update)),
        ("s2.2", "D9", row_count(0, 1)),
        ("s2.2", "D9", row_count(3, 1)),
        (
            "s2.2",
            "D3",
            Breach::Proceeded { obstacle: Obstacle::KeyTaken { owner: KeyOwner::Visible } },
        ),
    ];
    let steps = [
        DELETE_UPDATE.to_string(),
        DELETE_UPDATE.replace("b = 2", "a = 3"),
        DELETE_UPDATE.replace("s1> delete", "s1> select * from t;\ns1> delete"),
    ];
    let all: Vec<(String, Features)> = (0..40)
        .map(|n| {
            let (label, rule, breach) = whys[n % whys.len()].clone();
            (breach.to_string(), features(&steps[n % steps.len()], (label, rule, breach)))
        })
        .collect();
    let answer = |order: &[usize]| {
        let these: Vec<(String, &Features)> =
            order.iter().map(|n| (all[*n].1.key(), &all[*n].1)).collect();
        let groups: Vec<(String, Vec<usize>)> = groups(&these)
            .into_iter()
            .map(|g| {
                let mut members: Vec<usize> = g.members.iter().map(|m| order[*m]).collect();
                members.sort_unstable();
                (g.reason, members)
            })
            .collect();
        let labelled: Vec<LabelledReport<'_>> = order
            .iter()
            .map(|n| LabelledReport { features: &all[*n].1, bug: &all[*n].0 })
            .collect();
        let weights = Weights::counted(&labelled);
        let ranked: Vec<(String, u64)> = rank(&all[3].1, &labelled, &weights)
            .into_iter()
            .map(|r| (labelled[r.report].bug.to_string(), (r.similarity * 1e9) as u64))
            .collect();
        (groups, ranked)
    };
    let plain: Vec<usize> = (0..all.len()).collect();
    let expected = answer(&plain);
    assert!(expected.0.len() >= 4, "{:?}", expected.0);
    assert_eq!(expected.1[0].0, whys[3].2.to_string(), "its own kind is on top");
    for _ in 0..20 {
        let mut order = plain.clone();
        random.shuffle(&mut order);
        assert_eq!(answer(&order), expected);
    }
}

#[test]
fn history_of_another_case_is_rejected() {
    let (case, other) = (read(DELETE_UPDATE), read("s1> select * from t;\n"));
    let run = history(&other, &[], &done);
    let answer = Run::of(Subject { history: Some(&run), ..subject(&case, None) });
    assert_eq!(answer.order.len(), case.steps.len());
}

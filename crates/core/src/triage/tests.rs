use super::run::Run;
use super::*;
use crate::case::{self, Case};
use crate::history::{
    DbError, ErrorClass, ErrorEffect, Event, FinalRows, History, SentStep, TargetInfo, Transaction,
    TxEnd, What,
};
use crate::oracle::Difference;
use crate::random::Random;
use crate::semantics::{Account, StepAccount, StepVerdict, Whole};
use crate::{Level, Value};

const TABLE: &str = "setup:\n  create table t (a int primary key, b int);\n  \
                     insert into t values (1, 0);\n\n";

fn read(steps: &str) -> Case {
    case::parse(&format!("case: x\nengines: sqlite\n\n{TABLE}{steps}")).unwrap()
}

/// An account in which the rules have this against one step.
fn account(case: &Case, label: &str, rule: &str, why: &str) -> Account {
    let step = |n: usize| {
        let here = case.label(n) == label;
        StepAccount {
            step: case.label(n),
            sql: case.steps[n].sql.clone(),
            outcome: String::new(),
            verdict: if here { StepVerdict::Outside } else { StepVerdict::Inside },
            rules: vec![rule.into()],
            why: if here { why.into() } else { String::new() },
        }
    };
    let steps = (0..case.steps.len()).map(step).collect();
    Account { label: Whole::Bug, why: why.into(), steps, rules: Vec::new() }
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

fn features(steps: &str, (label, rule, why): (&str, &str, &str)) -> Features {
    let case = read(steps);
    let account = account(&case, label, rule, why);
    Features::of(subject(&case, Some(&account)))
}

/// A run of a case in its order: each step is answered as `reply` says, and
/// every session is one transaction that ends as its last step does.
fn history(case: &Case, finals: &[(i64, i64)], reply: &dyn Fn(usize) -> What) -> History {
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
        history.events.push(event(What::Sent { as_sql: None }));
        history.events.push(event(reply(n)));
        if step.kind().ends_transaction() {
            let at = history.transactions.iter().position(|t| t.session == step.session).unwrap();
            let how = history.transactions[at].how;
            history.events.push(event(What::Ended { transaction: at, how }));
        }
    }
    history
}

fn done(_: usize) -> What {
    What::Done
}

const DELETE_UPDATE: &str = "s1> begin;\ns2> begin;\ns1> delete from t;\ns2> update t set b = 2;\n\
                             s1> commit;\ns2> commit;\n";

#[test]
fn what_went_wrong_hangs_neither_on_names_nor_on_who_came_first() {
    let one = features(
        DELETE_UPDATE,
        ("s2.3", "D2", "it went through, but s1 has deleted a row of t that it has changed"),
    );
    let other = features(
        &DELETE_UPDATE.replace("s1", "a").replace("s2", "s1").replace("a>", "s2>"),
        ("s2.3", "D2", "it went through, but s1 has changed a row of t that it has deleted"),
    );
    assert!(same(&one, &other), "{} / {}", one.key(), other.key());
    assert_eq!(one.deviation.between, ["delete", "update"]);
    let key = features(
        &DELETE_UPDATE.replace("delete from t", "update t set a = 9"),
        ("s2.3", "D2", "it went through, but s1 has deleted a row of t that it has changed"),
    );
    assert!(!same(&one, &key), "an update of a key is another thing than a delete");
    assert_eq!(key.deviation.between, ["update", "update of a key"]);
    let rule = features(
        DELETE_UPDATE,
        ("s2.3", "D3", "it went through, but s1 has deleted a row of t that it has changed"),
    );
    assert!(!same(&one, &rule), "another rule");
}

#[test]
fn where_values_meet_it_matters_whether_one_is_null() {
    let two = "s1> begin;\ns2> begin;\ns1> update t set b = 5;\ns2> update t set b = 6;\n\
               s1> commit;\ns2> commit;\n";
    let why = "it went through, but s1 has changed a value of t that it changes";
    let plain = features(two, ("s2.2", "D2", why));
    let null = features(&two.replace("b = 6", "b = null"), ("s2.2", "D2", why));
    assert!(!same(&plain, &null));
    assert_eq!(null.deviation.between, ["update", "update to null"]);
    assert_eq!(
        plain.deviation.how,
        "it went through, but another has changed a value that it changes"
    );
}

#[test]
fn counts_are_more_or_fewer_whatever_they_are() {
    let at = |why: &str| features(DELETE_UPDATE, ("s2.2", "S1", why));
    let fewer = at("it changed 0 rows; the rules say 1");
    assert!(same(&fewer, &at("it changed 2 rows; the rules say 7")));
    assert!(!same(&fewer, &at("it changed 2 rows; the rules say 1")));
    assert_eq!(fewer.deviation.how, "a write changed fewer rows");
}

#[test]
fn rows_of_the_end_are_told_by_whose_they_are() {
    let steps = "s1> begin;\ns1> insert into t values (7, 7);\ns1> rollback;\n\
                 s2> update t set b = 4;\n";
    let case = read(steps);
    let run = history(&case, &[], &done);
    let told = |why: &str| {
        let difference = [Difference::Rule {
            label: String::new(),
            sql: String::new(),
            rule: "S11".into(),
            about: String::new(),
            page: String::new(),
            why: format!("the final rows of t: {why}"),
        }];
        let subject =
            Subject { history: Some(&run), differences: &difference, ..subject(&case, None) };
        Features::of(subject).deviation
    };
    assert_eq!(told("(7, 7) too many").rows, ["a row whose insert was rolled back too many"]);
    assert_eq!(told("(7, 7) too many").after, ["a rollback"]);
    assert_eq!(told("(1, 0) missing").rows, ["a first row missing"]);
    assert_eq!(told("(1, 0) instead of (1, 4)").rows, ["a first row instead of a changed row"]);
    assert_eq!(told("(1, 8) instead of (1, 4)").rows, ["a changed row instead of a changed row"]);
}

#[test]
fn a_transaction_that_a_failed_statement_undid_is_recognised_by_what_is_left() {
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
    let reply = |n: usize| if n == 2 { What::Error(failed.clone()) } else { What::Done };
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
    assert_eq!(of(9), "the final rows are others", "something of it is left");
}

#[test]
fn without_a_serial_order_it_is_reads_that_nobody_saw() {
    let why = "no serial order of the committed transactions explains it: it changed 1 row; the rules say 2";
    let steps = "s1> begin;\ns2> begin;\ns1> insert into t values (1, 1), (2, 2) on conflict do nothing;\n\
                 s2> update t set a = a + 9;\ns1> commit;\ns2> commit;\n";
    let case = read(steps);
    let of = |label: &str, affected: u64| {
        let account = account(&case, label, "P7", why);
        let reply = |n: usize| if n == 2 { What::Affected { count: affected } } else { What::Done };
        let run = history(&case, &[], &reply);
        Features::of(Subject { history: Some(&run), ..subject(&case, Some(&account)) })
    };
    assert!(same(&of("s1.2", 1), &of("s2.2", 1)), "which order came farthest is chance");
    assert_eq!(of("s1.2", 1).deviation.between, ["an insert that left a row out"]);
    assert!(!same(&of("s1.2", 1), &of("s1.2", 2)), "it left nothing out");
}

#[test]
fn who_held_what_a_read_saw_is_open_committed_or_gone() {
    let why = "(1, 9) instead of (1, 0)";
    let of = |steps: &str, label: &str| {
        let case = read(steps);
        let account = account(&case, label, "S2", why);
        let run = history(&case, &[], &done);
        Features::of(Subject { history: Some(&run), ..subject(&case, Some(&account)) }).deviation
    };
    let open = "s1> begin;\ns1> update t set b = 9;\ns2> begin;\ns2> select * from t;\ns1> commit;\ns2> commit;\n";
    let committed = "s2> begin;\ns1> begin;\ns1> update t set b = 9;\ns1> commit;\ns2> select * from t;\ns2> commit;\n";
    let gone = committed.replace("s1> commit", "s1> rollback");
    let nobody = "s1> begin;\ns1> commit;\ns2> begin;\ns2> select * from t;\ns2> commit;\n";
    assert_eq!(of(open, "s2.2").holders, ["an open writer"]);
    assert_eq!(of(committed, "s2.2").holders, ["a committed writer"]);
    assert_eq!(of(&gone, "s2.2").holders, ["a writer that was rolled back"]);
    assert!(of(nobody, "s2.2").holders.is_empty());
}

#[test]
fn a_pattern_does_not_hang_on_what_sessions_are_called() {
    let one = read(DELETE_UPDATE);
    let other = read(&DELETE_UPDATE.replace("s1>", "z>").replace("s2>", "a>"));
    let swapped = read(&DELETE_UPDATE.replace(
        "s1> delete from t;\ns2> update t set b = 2;",
        "s2> update t set b = 2;\ns1> delete from t;",
    ));
    let pattern = |case: &Case| Features::of(subject(case, None)).pattern;
    assert_eq!(pattern(&one), "1.delete -ww-> 2.update");
    assert_eq!(pattern(&one), pattern(&other));
    assert_ne!(pattern(&one), pattern(&swapped), "who came first matters here");
}

/// Each feature where it must be, and not where it must not.
#[test]
fn features_say_what_is_there_and_nothing_else() {
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
fn where_the_engine_broke_the_place_counts_and_not_the_numbers() {
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
fn nothing_known_is_the_same_as_nothing() {
    assert!(!same(&Features::default(), &Features::default()), "no name without a reason");
}

#[test]
fn the_judge_prefers_what_failed_alike_then_what_met_alike() {
    let why = "it went through, but s1 has deleted a row of t that it has changed";
    let finding = features(DELETE_UPDATE, ("s2.3", "D2", why));
    let alike = features(
        &DELETE_UPDATE.replace("s1> delete", "s1> select * from t;\ns1> delete"),
        ("s2.3", "D2", why),
    );
    let otherwise = features(DELETE_UPDATE, ("s2.2", "D9", "it changed 0 rows; the rules say 1"));
    let told = compare(&finding, &otherwise, &alike);
    assert_eq!((told.nearer, told.same), (Nearer::Second, true), "{}", told.reason);
    assert_eq!(compare(&finding, &alike, &otherwise).nearer, Nearer::First);
    let told = compare(&finding, &alike, &finding);
    assert_eq!(
        (told.nearer, told.reason.as_str()),
        (Nearer::Second, "its statements meet in the same way")
    );
    assert_eq!(compare(&finding, &alike, &alike).nearer, Nearer::Neither);
}

/// Groups and rankings are those of the set, not of the order.
#[test]
fn the_order_of_reports_changes_nothing() {
    let mut random = Random::stream(5, "shuffled", 0);
    let whys = [
        ("s2.3", "D2", "it went through, but s1 has deleted a row of t that it has changed"),
        ("s2.2", "D9", "it changed 0 rows; the rules say 1"),
        ("s2.2", "D9", "it changed 3 rows; the rules say 1"),
        ("s2.2", "D3", "it went through, but its key is taken"),
    ];
    let steps = [
        DELETE_UPDATE.to_string(),
        DELETE_UPDATE.replace("b = 2", "a = 3"),
        DELETE_UPDATE.replace("s1> delete", "s1> select * from t;\ns1> delete"),
    ];
    let all: Vec<(String, Features)> = (0..40)
        .map(|n| {
            let why = whys[n % whys.len()];
            (why.2.to_string(), features(&steps[n % steps.len()], why))
        })
        .collect();
    let told = |order: &[usize]| {
        let these: Vec<&Features> = order.iter().map(|n| &all[*n].1).collect();
        let groups: Vec<(String, Vec<usize>)> = groups(&these)
            .into_iter()
            .map(|g| {
                let mut members: Vec<usize> = g.members.iter().map(|m| order[*m]).collect();
                members.sort_unstable();
                (g.reason, members)
            })
            .collect();
        let labelled: Vec<Labelled<'_>> =
            order.iter().map(|n| Labelled { features: &all[*n].1, bug: &all[*n].0 }).collect();
        let weights = Weights::counted(&labelled);
        let ranked: Vec<(String, u64)> = rank(&all[3].1, &labelled, &weights)
            .into_iter()
            .map(|r| (labelled[r.report].bug.to_string(), (r.similarity * 1e9) as u64))
            .collect();
        (groups, ranked)
    };
    let plain: Vec<usize> = (0..all.len()).collect();
    let expected = told(&plain);
    assert!(expected.0.len() >= 4, "{:?}", expected.0);
    assert_eq!(expected.1[0].0, whys[3].2, "its own kind is on top");
    for _ in 0..20 {
        let mut order = plain.clone();
        random.shuffle(&mut order);
        assert_eq!(told(&order), expected);
    }
}

#[test]
fn a_history_of_another_case_is_not_believed() {
    let (case, other) = (read(DELETE_UPDATE), read("s1> select * from t;\n"));
    let run = history(&other, &[], &done);
    let told = Run::of(Subject { history: Some(&run), ..subject(&case, None) });
    assert_eq!(told.order.len(), case.steps.len());
}

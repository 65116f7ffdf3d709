//! The numbers that statements get, by engine.

use super::Operation;
use crate::history::{DbError, ErrorClass, Event, EventKind, History};
use crate::parsed_case::ParsedCase;
use crate::{Level, case};
use std::collections::BTreeMap;

/// The statements of a case with their numbers, after replies with these errors.
fn resolved(engine: &str, text: &str, errors: &[(usize, ErrorClass)]) -> Vec<String> {
    let case = case::parse(text).unwrap();
    let on = crate::history::TargetInfo {
        target: engine.into(),
        engine: engine.into(),
        version: "18.0".into(),
        settings: BTreeMap::new(),
        follows: None,
    };
    let reading = ParsedCase::of_case(&case, &on, Level::ReadCommitted);
    let mut history = History {
        isolde: "test".into(),
        case: case.id.clone(),
        on,
        level: None,
        seed: None,
        steps: Vec::new(),
        events: Vec::new(),
        transactions: Vec::new(),
        final_state: Vec::new(),
        death: None,
    };
    for (n, step) in case.steps.iter().enumerate() {
        history.steps.push(crate::history::SentStep::of(&case, n));
        let error = errors.iter().find(|(at, _)| *at == n).map(|(_, class)| *class);
        let reply = match error {
            Some(class) => EventKind::Error(DbError { class, ..DbError::lost("it fails") }),
            None => EventKind::Done,
        };
        for what in [EventKind::Sent { as_sql: None }, reply] {
            let session = step.session.clone();
            history.events.push(Event { session, step: Some(n), what });
        }
    }
    let read = reading.in_run(&history).into_owned();
    let text = |operation: &Operation| match operation {
        Operation::Statement(statement) => statement.render(&read.dialect),
        other => format!("{other:?}"),
    };
    read.operations.iter().map(text).collect()
}

const SERIAL: &str = "case: t\n\nsetup:\n  create table t (id serial primary key, v int);\n  \
                      insert into t (v) values (1), (2);\n\n";
const AUTO: &str = "case: t\n\nsetup:\n  create table t (id int auto_increment primary key, \
                    v int);\n  insert into t values (7, 1);\n\n";

#[test]
fn numbers_follow_the_setup_and_a_failed_insert_keeps_its_own() {
    let text = format!(
        "{SERIAL}a> insert into t (v) values (1);\nb> insert into t values (9, 1);\n\
         b> insert into t values (default, 2), (8, 3), (default, 4);\n"
    );
    let found = resolved("postgres", &text, &[(0, ErrorClass::Constraint)]);
    assert!(found[0].ends_with("values (1, 3)"), "{found:#?}");
    assert!(found[1].ends_with("values (9, 1)"), "{found:#?}");
    assert!(found[2].ends_with("values (4, 2), (8, 3), (5, 4)"), "{found:#?}");
}

#[test]
fn explicit_value_moves_auto_increment_and_a_failed_one_makes_it_unknown() {
    let text = format!(
        "{AUTO}a> insert into t (v) values (1), (2);\na> insert into t values (20, 1);\n\
         b> insert into t values (null, 2);\n"
    );
    let found = resolved("mysql", &text, &[]);
    assert!(found[0].ends_with("values (1, 8), (2, 9)"), "{found:#?}");
    assert!(found[2].ends_with("values (21, 2)"), "{found:#?}");
    let found = resolved("mysql", &text, &[(1, ErrorClass::Constraint)]);
    assert!(found[2].contains("Opaque"), "{found:#?}");
}

#[test]
fn last_number_is_one_of_the_session() {
    let text = format!(
        "{AUTO}a> insert into t (v) values (1);\nb> insert into t (v) values (1);\n\
         a> update t set v = 5 where id = last_insert_id();\nc> select last_insert_id();\n"
    );
    let found = resolved("mariadb", &text, &[]);
    assert!(found[2].contains("= 8"), "{found:#?}");
    assert!(found[3].ends_with("select 0"), "{found:#?}");
}

#[test]
fn sequence_is_drawn_from_where_a_statement_evaluates_it_once() {
    let text = "case: t\n\nsetup:\n  create sequence s start with 10 increment by 5;\n  \
                create table t (id int primary key, v int);\n\n\
                a> insert into t values (nextval('s'), 1);\na> select currval('s'), lastval();\n\
                b> select nextval('s') from t;\n";
    let found = resolved("postgres", text, &[]);
    assert!(found[0].ends_with("values (10, 1)"), "{found:#?}");
    assert!(found[1].ends_with("select 10, 10"), "{found:#?}");
    assert!(found[2].contains("Opaque"), "{found:#?}");
}

#[test]
fn numbers_of_other_engines_are_not_modelled() {
    let text = SERIAL.replace("id serial", "id integer")
        + "a> insert into t (v) values (1);\na> insert into t values (null, 1);\n\
           a> insert into t values (5, 1);\n";
    let found = resolved("sqlite", &text, &[]);
    assert!(found[0].contains("Opaque"), "{found:#?}");
    assert!(found[1].contains("Opaque"), "{found:#?}");
    assert!(found[2].ends_with("values (5, 1)"), "{found:#?}");
}

#[test]
fn null_and_values_that_the_engine_refuses_are_not_modelled() {
    let null = format!("{SERIAL}a> insert into t values (null, 1);\n");
    assert!(resolved("postgres", &null, &[])[0].contains("Opaque"));
    let always = SERIAL.replace("id serial", "id int generated always as identity");
    let given = format!("{always}a> insert into t values (5, 1);\n");
    assert!(resolved("postgres", &given, &[])[0].contains("Opaque"));
}

//! Strategies for the property tests of cases.

// Each test file uses a part of these.
#![allow(dead_code)]

use isolde_model::case::{Claim, Expected, Subject};
use isolde_model::{Level, Value};
use isolde_sql::selector::Selector;
use proptest::prelude::*;

pub fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        "[ -~]{0,12}".prop_map(Value::Text),
        "[0-9]{1,5}\\.[0-9]{1,5}".prop_map(Value::Decimal),
        proptest::collection::vec(any::<u8>(), 0..6).prop_map(Value::Bytes),
        (-1e9..1e9f64).prop_map(|x| Value::Float((x * 8.0).round() * 1e20)),
    ]
}

pub fn selector() -> impl Strategy<Value = Selector> {
    ("[b-z][a-z]{0,7}", proptest::option::of("[0-9]{1,2}(\\.[0-9]{1,2})?"))
        .prop_map(|(engine, version)| Selector { engine, from: version.clone(), to: version })
}

pub fn level() -> impl Strategy<Value = Level> {
    proptest::sample::select(Level::ALL.to_vec())
}

pub fn rows() -> impl Strategy<Value = Vec<Vec<Value>>> {
    proptest::collection::vec(proptest::collection::vec(value(), 1..4), 0..3)
}

/// A claim about a step, a session, the final rows or the setup.
pub fn claim() -> impl Strategy<Value = Claim> {
    let code = || "[0-9A-Z]{1,5}|lost";
    let error = move || proptest::option::of(code()).prop_map(Expected::Error);
    let read = || {
        prop_oneof![
            rows().prop_map(Expected::Rows),
            any::<u64>().prop_map(Expected::Counts),
            proptest::collection::vec(value(), 1..4).prop_map(Expected::Has),
            "[ -~]{1,12}".prop_map(Expected::Contains),
        ]
    };
    let step = prop_oneof![
        proptest::sample::select(vec![
            Expected::Waits,
            Expected::WaitsFor("s1".into()),
            Expected::DoesNotWait,
            Expected::Ok,
            Expected::NotSent,
        ]),
        any::<u64>().prop_map(Expected::Affects),
        error(),
        read(),
    ];
    let ending = proptest::sample::select(vec![
        Expected::Commits,
        Expected::DoesNotCommit,
        Expected::RollsBack,
        Expected::Aborts,
    ]);
    let about = |subject: Subject| move |expected| Claim { subject: subject.clone(), expected };
    prop_oneof![
        step.prop_map(about(Subject::Step { session: "s1".into(), nth: 1 })),
        ending.prop_map(about(Subject::Session("s1".into()))),
        prop_oneof![read(), error()].prop_map(about(Subject::Final(1))),
        error().prop_map(about(Subject::Setup)),
    ]
}

pub fn claims() -> impl Strategy<Value = Vec<Claim>> {
    proptest::collection::vec(claim(), 1..5)
}

pub fn notes() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("([a-z][a-z ,;:>]{0,12}[a-z])?", 0..3)
}

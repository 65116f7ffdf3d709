//! Unique indexes of expressions: their values are computed for every version.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, TABLE, changed, error};
use isolde_model::Level::ReadCommitted;
use isolde_model::history::{ErrorClass, EventKind};
use isolde_sql::dialect::Family;
use isolde_sql::read;

/// No two rows have values of `v` that differ in their signs only.
fn with_index() -> ScriptedRun {
    let mut run = ScriptedRun::on("postgres", ReadCommitted, &[(1, 10)]);
    let index = "create unique index i on t (abs(v))";
    run.reading.schema = read::schema([TABLE, index], Family::Sqlite).schema;
    run
}

#[test]
fn expression_of_a_unique_index_is_a_key() {
    let insert = "insert into t values (2, -10)";
    let fails = with_index().does("s1", insert, error(ErrorClass::Constraint));
    assert_allowed(&fails.leaves(&[(1, 10)]));
    let succeeds = with_index().does("s1", insert, changed(1)).leaves(&[(1, 10), (2, -10)]);
    assert_eq!(breaks(&succeeds, Some("s1.1")), "P10");
    let other = with_index().does("s1", "insert into t values (2, -11)", changed(1));
    assert_allowed(&other.leaves(&[(1, 10), (2, -11)]));
}

#[test]
fn conflict_target_that_is_an_expression_names_its_index() {
    let upsert = "insert into t values (2, -10) on conflict (abs(v)) do update set v = 12";
    let upserted = |left: &[(i64, i64)]| with_index().does("s1", upsert, changed(1)).leaves(left);
    assert_allowed(&upserted(&[(1, 12)]));
    assert_eq!(breaks(&upserted(&[(1, 10), (2, -10)]), None), "P17");
}

#[test]
fn writer_of_a_key_that_is_an_expression_blocks_others() {
    let run = |second: &str| {
        with_index()
            .does("s1", "begin", EventKind::Done)
            .does("s1", "insert into t values (2, -7)", changed(1))
            .does("s2", second, changed(1))
            .does("s1", "rollback", EventKind::Done)
            .leaves(&[(1, 10), (3, 7)])
    };
    assert_eq!(breaks(&run("insert into t values (3, 7)"), Some("s2.1")), "P10");
    let other = with_index()
        .does("s1", "begin", EventKind::Done)
        .does("s1", "insert into t values (2, -7)", changed(1))
        .does("s2", "insert into t values (3, 8)", changed(1))
        .does("s1", "rollback", EventKind::Done)
        .leaves(&[(1, 10), (3, 8)]);
    assert_allowed(&other);
}

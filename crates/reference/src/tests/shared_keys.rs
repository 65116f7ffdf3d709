//! Upserts whose new rows share a key.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, changed, error};
use crate::Conclusion;
use isolde_model::Level::{ReadCommitted, Snapshot};
use isolde_model::history::{ErrorClass, EventKind};
use isolde_sql::dialect::Dialect;

const UPSERT: &str = "insert into t values (5, 1), (5, 2) on conflict (id) do update set v = 9";
const NOTHING: &str = "insert into t values (5, 1), (5, 2) on conflict (id) do nothing";

fn on_postgres(sql: &str, what: EventKind) -> ScriptedRun {
    let mut run = ScriptedRun::on("postgres", ReadCommitted, &[(1, 10)]);
    run.reading.dialect = Dialect::for_engine("postgres", "18");
    // Only the quirks count: SQLite evaluates the statements.
    run.reading.dialect.family = isolde_sql::Family::Sqlite;
    run.does("s1", sql, what)
}

#[test]
fn postgres_refuses_to_write_a_row_twice() {
    assert_allowed(&on_postgres(UPSERT, error(ErrorClass::Other)).leaves(&[(1, 10)]));
    let succeeds = on_postgres(UPSERT, changed(2)).leaves(&[(1, 10), (5, 9)]);
    assert_eq!(breaks(&succeeds, Some("s1.1")), "P5");
    assert_allowed(&on_postgres(NOTHING, changed(1)).leaves(&[(1, 10), (5, 1)]));
    let last = on_postgres(NOTHING, changed(1)).leaves(&[(1, 10), (5, 2)]);
    assert_eq!(breaks(&last, None), "P17");
}

#[test]
fn duckdb_may_leave_out_all_but_the_first_and_nothing_else_is_known() {
    let run = |sql: &str, left: &[(i64, i64)]| {
        ScriptedRun::on("duckdb", Snapshot, &[(1, 10)]).does("s1", sql, changed(1)).leaves(left)
    };
    assert_allowed(&run(NOTHING, &[(1, 10), (5, 1)]));
    assert_allowed(&run(UPSERT, &[(1, 10), (5, 1)]));
    let last = run(UPSERT, &[(1, 10), (5, 2)]).predicted();
    assert!(matches!(last, Conclusion::NotModelled { .. }), "{last:?}");
}

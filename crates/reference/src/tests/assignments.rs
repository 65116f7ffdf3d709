//! Assignments from left to right: later ones read the values of earlier ones, also in a
//! subquery.

use super::runs::{assert_allowed, breaks};
use super::{ScriptedRun, changed};
use crate::Conclusion;
use isolde_model::Level::RepeatableRead;

fn updates(condition: &str, left: &[(i64, i64)]) -> ScriptedRun {
    let set = format!("v = 5, id = (select min(3) from t as r where {condition})");
    ScriptedRun::on("mysql", RepeatableRead, &[(1, 10)])
        .does("s1", &format!("update t set {set}"), changed(1))
        .leaves(left)
}

#[test]
fn subquery_reads_the_value_that_was_assigned_before() {
    assert_allowed(&updates("t.v = 5", &[(3, 5)]));
    assert_eq!(breaks(&updates("t.v = 5", &[(1, 5)]), None), "I27");
}

#[test]
fn name_that_may_be_of_the_subquery_is_not_modelled() {
    for condition in ["v = 5", "exists (select 1 from t where t.v = 5)"] {
        let run = updates(condition, &[(3, 5)]).predicted();
        assert!(matches!(run, Conclusion::NotModelled { .. }), "{condition}: {run:?}");
    }
    // The other table's column is not the one that was assigned.
    assert_allowed(&updates("r.v = 10", &[(3, 5)]));
}

/// The optimizer may execute such an UPDATE as a join.
#[test]
fn order_of_assignments_is_open_where_the_condition_has_a_subquery() {
    let run = |condition: &str, left: &[(i64, i64)]| {
        let sql = format!("update t set id = id + 5, v = id where {condition}");
        ScriptedRun::on("mysql", RepeatableRead, &[(1, 10)])
            .does("s1", &sql, changed(1))
            .leaves(left)
    };
    let subquery = "v in (select r.v from t as r)";
    assert_allowed(&run(subquery, &[(6, 6)]));
    assert_allowed(&run(subquery, &[(6, 1)]));
    assert_eq!(breaks(&run(subquery, &[(6, 10)]), None), "I27");
    assert_allowed(&run("v = 10", &[(6, 6)]));
    assert_eq!(breaks(&run("v = 10", &[(6, 1)]), None), "I27");
}

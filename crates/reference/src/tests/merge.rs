//! MERGE on PostgreSQL.

use super::runs::{assert_allowed, breaks, two};
use super::{ScriptedRun, changed, error};
use isolde_model::Level;
use isolde_model::Level::{ReadCommitted, RepeatableRead};
use isolde_model::history::{ErrorClass, EventKind};

const UPSERT: &str = "merge into t using (select 1 as k, 5 as w) as s on t.id = s.k \
                      when matched then update set v = t.v + s.w \
                      when not matched then insert (id, v) values (s.k, s.w)";

/// s1 sends a statement, and s2 a MERGE that waits for it.
fn blocked_by(first: &str, level: Level, merge: &str) -> ScriptedRun {
    two("postgres", level).does("s1", first, changed(1)).waits("s2", merge).does(
        "s1",
        "commit",
        EventKind::Done,
    )
}

#[test]
fn merge_applies_the_first_clause_whose_condition_holds() {
    let merge = "merge into t using (select 1 as k) as s on t.id = s.k \
                 when matched and t.v > 10 then delete when matched then update set v = 7";
    let run = |left: &[(i64, i64)]| {
        two("postgres", ReadCommitted)
            .does("s1", merge, changed(1))
            .does("s1", "commit", EventKind::Done)
            .does("s2", "commit", EventKind::Done)
            .leaves(left)
    };
    assert_allowed(&run(&[(1, 7), (2, 20)]));
    assert_eq!(breaks(&run(&[(2, 20)]), None), "P17");
    // The second clause is for rows that the first does not take.
    let second = merge.replace("t.v > 10", "t.v = 10");
    let run = two("postgres", ReadCommitted)
        .does("s1", &second, changed(1))
        .does("s1", "commit", EventKind::Done)
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(2, 20)]);
    assert_allowed(&run);
}

#[test]
fn merge_acts_on_the_newest_version_at_read_committed() {
    let run = |v| {
        blocked_by("update t set v = 11 where id = 1", ReadCommitted, UPSERT)
            .replies("s2", changed(1))
            .does("s2", "commit", EventKind::Done)
            .leaves(&[(1, v), (2, 20)])
    };
    assert_allowed(&run(16));
    assert!(!breaks(&run(15), None).is_empty());
}

#[test]
fn merge_inserts_where_the_matched_row_was_deleted() {
    let run = |count, left: &[(i64, i64)]| {
        blocked_by("delete from t where id = 1", ReadCommitted, UPSERT)
            .replies("s2", changed(count))
            .does("s2", "commit", EventKind::Done)
            .leaves(left)
    };
    assert_allowed(&run(1, &[(1, 5), (2, 20)]));
    assert_eq!(breaks(&run(0, &[(2, 20)]), Some("s2.2")), "P2");
}

#[test]
fn merge_fails_at_repeatable_read_if_its_row_was_changed() {
    let blocked = || blocked_by("update t set v = 11 where id = 1", RepeatableRead, UPSERT);
    let fails = blocked()
        .replies("s2", error(ErrorClass::Serialization))
        .does("s2", "rollback", EventKind::Done)
        .leaves(&[(1, 11), (2, 20)]);
    assert_allowed(&fails);
    let succeeds = blocked()
        .replies("s2", changed(1))
        .does("s2", "commit", EventKind::Done)
        .leaves(&[(1, 16), (2, 20)]);
    assert_eq!(breaks(&succeeds, Some("s2.2")), "P7w");
}

#[test]
fn merge_does_not_see_a_concurrent_insert_and_fails_on_its_key() {
    let merge = UPSERT.replace("select 1 as k", "select 3 as k");
    let run = |reply| {
        blocked_by("insert into t values (3, 30)", ReadCommitted, &merge)
            .replies("s2", reply)
            .does("s2", "rollback", EventKind::Done)
            .leaves(&[(1, 10), (2, 20), (3, 30)])
    };
    assert_allowed(&run(error(ErrorClass::Constraint)));
    assert!(!breaks(&run(changed(1)), Some("s2.2")).is_empty());
}

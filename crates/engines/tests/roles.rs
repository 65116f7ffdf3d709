//! Roles outlive the tables of a case: a run drops those that the last one made.

use isolde_testing::cases::{outcome, run, steps};
use isolde_testing::servers::open;

#[test]
fn case_that_makes_a_role_can_be_run_again() {
    let Some(mut runner) = open("postgres") else { return };
    let case = steps(
        "create role regress_isolde_one; create table t (id int primary key);
         grant select on t to regress_isolde_one; insert into t values (1);",
        "s1> create role regress_isolde_two;
         s2> set role regress_isolde_one;
         s2> select id from t;
         s2> delete from t;
         s2> reset role;",
    );
    for _ in 0..2 {
        let history = run(&mut runner, &case, None);
        assert_eq!(outcome(&history, "s1.1"), "ok");
        // The role may look into the schema, and has no rights but those that it was given.
        assert_eq!(outcome(&history, "s2.2"), "(1)");
        assert_eq!(outcome(&history, "s2.3"), "error 42501");
    }
}
